#include "modules/base/heads.h"

#include <algorithm>
#include <charconv>

#include "modules/base/error.h"

namespace headlab {
namespace {

const std::string names[] = {"enc.self", "dec.self", "dec.cross"};
const char* part_of_model[] = {"the encoder", "the decoder", "the decoder"};

std::string range_of(Stack stack, const std::vector<std::vector<int64_t>>& layers) {
  int64_t last = -1;
  for (const auto& heads : layers)
    for (auto head : heads) last = std::max(last, head);
  const auto first_name = to_string(HeadId{stack, 0, 0});
  return first_name + " ... " +
         to_string(HeadId{stack, static_cast<int64_t>(layers.size()) - 1, std::max<int64_t>(last, 0)});
}

}  // namespace

const std::string& stack_name(Stack stack) { return names[static_cast<int>(stack)]; }

std::optional<Stack> stack_from(std::string_view name) {
  for (auto stack : all_stacks)
    if (stack_name(stack) == name) return stack;
  return std::nullopt;
}

std::string to_string(Site site) { return stack_name(site.stack) + "." + std::to_string(site.layer); }

std::string to_string(HeadId head) { return to_string(head.site()) + "." + std::to_string(head.head); }

HeadId parse_head(std::string_view text) {
  const auto wrong = [&] {
    return UsageError(std::string(text) +
                      ": not the name of a head; expected STACK.LAYER.HEAD with STACK one of enc.self, " +
                      "dec.self, dec.cross, for example enc.self.0.3");
  };
  const auto last = text.rfind('.');
  if (last == std::string_view::npos || last == 0) throw wrong();
  const auto middle = text.rfind('.', last - 1);
  if (middle == std::string_view::npos) throw wrong();
  const auto number = [&](std::string_view part) {
    int64_t value = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (code != std::errc() || end != part.data() + part.size() || value < 0) throw wrong();
    return value;
  };
  const auto stack = stack_from(text.substr(0, middle));
  if (!stack) throw wrong();
  return {*stack, number(text.substr(middle + 1, last - middle - 1)), number(text.substr(last + 1))};
}

std::vector<HeadId> heads_of(const HeadTable& table) {
  std::vector<HeadId> all;
  for (const auto& [stack, layers] : table)
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      for (auto head : layers[layer]) all.push_back({stack, static_cast<int64_t>(layer), head});
  return all;
}

void check_head(const HeadTable& table, HeadId head) {
  const auto found = table.find(head.stack);
  const auto layers = found == table.end() ? 0 : static_cast<int64_t>(found->second.size());
  std::string why;
  if (layers == 0) {
    why = "the model has no " + stack_name(head.stack) + " heads";
  } else if (head.layer >= layers) {
    why = std::string(part_of_model[static_cast<int>(head.stack)]) + " has layers 0 to " + std::to_string(layers - 1);
  } else {
    const auto& heads = found->second[static_cast<std::size_t>(head.layer)];
    if (std::find(heads.begin(), heads.end(), head.head) != heads.end()) return;
    why = to_string(head.site()) + (heads.empty() ? " has no heads left" : " has heads");
    for (std::size_t i = 0; i < heads.size(); ++i) why += (i ? ", " : " ") + std::to_string(heads[i]);
  }
  std::string exist;
  for (const auto& [stack, of_stack] : table)
    if (!of_stack.empty()) exist += (exist.empty() ? "" : ", ") + range_of(stack, of_stack);
  throw UsageError(to_string(head) + ": " + why + ". Heads that exist: " + exist);
}

}  // namespace headlab
