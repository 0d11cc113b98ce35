#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlab {

/// Precision, recall and F1 of counts; each is 0 where it would divide by 0.
struct F1Score {
  double precision = 0, recall = 0, f1 = 0;
};
F1Score f1_score(int64_t right, int64_t predicted, int64_t gold);

/// The mean of the F1 of each class that occurs among gold or predicted labels, as scikit-learn's macro average.
/// Throws Error for lists of unequal length and for empty ones.
double macro_f1(const std::vector<int64_t>& gold, const std::vector<int64_t>& predicted);

/// An entity of a sentence: words [first, last].
struct Entity {
  std::string type;
  int64_t first = 0, last = 0;
  bool operator==(const Entity&) const = default;
};

/// The entities of a sentence's tags as conlleval (the script of CoNLL-2000 and CoNLL-2003) reads them: tags are "O",
/// or a letter and a type, "B-PER". An entity starts at B, and at any I, E whose type is not that of the word before or
/// which follows O, E or S; it ends before B, S, O and before another type, and after E and S. Tags without "-" are of
/// type "".
std::vector<Entity> entities_of(const std::vector<std::string>& tags);

/// Entities of a corpus, exactly right in type and both ends.          (conlleval's FB1, here in [0, 1])
F1Score entity_f1(const std::vector<std::vector<std::string>>& gold,
                  const std::vector<std::vector<std::string>>& predicted);

}  // namespace headlab
