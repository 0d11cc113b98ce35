#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// The three stacks of attentions a Transformer can have.
enum class Stack { enc_self, dec_self, dec_cross };

/// "enc.self", "dec.self", "dec.cross".
const std::string& stack_name(Stack stack);
std::optional<Stack> stack_from(std::string_view name);
inline constexpr Stack all_stacks[] = {Stack::enc_self, Stack::dec_self, Stack::dec_cross};

/// One attention of a model.
struct Site {
  Stack stack = Stack::enc_self;
  int64_t layer = 0;
  auto operator<=>(const Site&) const = default;
};
std::string to_string(Site site);  // "enc.self.3"

/// One head, by its original index for ever: removing others never renames it. Text form "enc.self.3.7".
struct HeadId {
  Stack stack = Stack::enc_self;
  int64_t layer = 0;
  int64_t head = 0;
  auto operator<=>(const HeadId&) const = default;
  Site site() const { return {stack, layer}; }
};
std::string to_string(HeadId head);

/// Throws UsageError for a text that names no head.
HeadId parse_head(std::string_view text);

/// Heads that are there, by stack and layer, in original indices: kept[stack][layer] = {0, 3, 7}.
using HeadTable = std::map<Stack, std::vector<std::vector<int64_t>>>;
std::vector<HeadId> heads_of(const HeadTable& table);

/// Throws UsageError where `head` is not in `table`: says which layers and heads exist.
void check_head(const HeadTable& table, HeadId head);

}  // namespace headlab
