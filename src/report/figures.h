#pragma once

#include <string>

namespace headlab {

/// How people write a metric's name: "BLEU" for "bleu"; unknown names stay.
std::string metric_title(const std::string& metric);

/// Whether a smaller value is the better one: loss, perplexity and names that end in "loss" or "error".
bool less_is_better(const std::string& metric);

/// A value with the digits that its metric deserves: BLEU 77.6, loss 1.204; others four significant digits.
std::string figure(const std::string& metric, double value);
std::string figure_signed(const std::string& metric, double value);  // "-31.2", "+0.4"

/// Up to `digits` significant digits, plain or with a power of ten: "0.0005", "2.5e-5", "1,600", "77.6".
std::string significant(double value, int digits);

}  // namespace headlab
