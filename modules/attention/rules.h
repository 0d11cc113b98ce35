#pragma once

#include "modules/attention/attention.h"

namespace headlab {

/// The attention in whose options an entry stands, for the entry's rule (Registry::rule).
struct AttentionAround : Around {
  std::string attention;  // where its options stand: "encoder.attention"
  const AttentionOptions& options;
  int64_t width = 0, head_width = 0;  // of the model, of a head's queries and keys
  bool cross = false;
  std::size_t index = 0;  // of an adapter or gate: its place in the list

  AttentionAround(std::string attention, const AttentionOptions& options, int64_t width, bool cross, Problems& problems)
      : Around("", problems),
        attention(std::move(attention)),
        options(options),
        width(width),
        head_width(options.head_width.value_or(width / options.heads)),
        cross(cross) {}
  int64_t value_width() const { return options.value_width.value_or(head_width); }
  /// Key/value heads, where the project says no more of them than how many they are: standard and grouped; else
  /// nothing.
  std::optional<int64_t> key_heads() const;
  /// A problem of what stands beside the entry: "weigh.score.scale".
  void beside(const std::string& field, const std::string& message) const {
    problems.add(attention + "." + field, message);
  }
};

}  // namespace headlab
