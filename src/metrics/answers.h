#pragma once

#include <string>
#include <vector>

namespace headlab {

/// An answer as SQuAD's evaluation compares it (1606.05250, section 6.1): lower case, without ASCII punctuation,
/// without the words a, an and the, white space made single.
std::string normalised_answer(const std::string& text);

/// 1 where the normalised answers are equal, else 0.
double exact_match(const std::string& gold, const std::string& predicted);

/// F1 over the words of the normalised answers, repeated words counted as often as they stand in both; where one has no
/// words: 1 if neither has, else 0.
double answer_f1(const std::string& gold, const std::string& predicted);

}  // namespace headlab
