#pragma once

#include <vector>

namespace headlab {

/// A gate whose heads keep some tokens alone: what is known of that before there are data.
struct KeepsTokens {
  virtual ~KeepsTokens() = default;
  /// For each head (position) the share of tokens that it keeps where all heads that tokens choose from keep equally
  /// many. Such a head makes queries, keys and values of these tokens, and compares them with each other.
  virtual std::vector<double> kept_H() const = 0;
};

}  // namespace headlab
