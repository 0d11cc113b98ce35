#pragma once

#include "src/heads/head_set.h"
#include "src/task/task.h"

namespace headlab {

/// Says how much each head matters; higher matters more.
struct Scorer {
  virtual ~Scorer() = default;
  virtual HeadScores score(Model& model, const Task& task, uint64_t seed) = 0;
};

using Scorers = Registry<Scorer>;
const Scorers& scorers();
const Catalogue& scorer_catalogue();

}  // namespace headlab
