#include "src/heads/score/random.h"

#include "modules/base/random.h"

namespace headlab {

HeadScores RandomScorer::score(Model& model, const Task&, uint64_t seed) {
  HeadScores scores;
  scores.method = "random";
  Random random(seed);
  for (auto head : heads_of(model.heads())) scores.heads[head] = random.uniform();
  return scores;
}

}  // namespace headlab
