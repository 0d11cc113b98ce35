// What sees a text whole has no place where one is read causally or by segments.
#include "modules/layer/whole_text.h"

#include "modules/attention/gate/role_masks.h"
#include "modules/mixer/heads_by_length.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

std::vector<std::string> refused(const DecoderOnlyOptions& options) {
  Problems problems;
  options.rules(problems);
  std::vector<std::string> found;
  for (const auto& problem : problems.found) found.push_back(problem.field + ": " + problem.message);
  return found;
}

}  // namespace

TEST_CASE("what must see a text in one call is refused beside segments alone, in the stack and in each of its layers") {
  auto options = small_decoder_only();
  LayerOverride second;
  second.layers = {1};
  second.attention = options.decoder.attention;
  second.attention.gates.items.emplace_back(gate_catalogue, "scalar");
  second.attention.gates.items.emplace_back(gate_catalogue, "role_masks");
  second.attention.gates.items.back().as<RoleMasksOptions>().roles = {"a"};
  options.decoder.per_layer = {second};
  options.decoder.attention.gates.items.emplace_back(gate_catalogue, "diversity");
  CHECK(refused(options).empty());
  options.segments.length = 3;
  CHECK(refused(options) ==
        std::vector<std::string>{
            "decoder.attention.gates[0]: diversity must see a text in one call; it can't go with model.segments",
            "decoder.per_layer[0].attention.gates[1]: role_masks must see a text in one call; it can't go with "
            "model.segments"});
}

TEST_CASE("what goes by the length of a text is refused in a decoder, as a gate and as a mixer of one layer") {
  auto options = small_decoder_only();
  LayerOverride first;
  first.layers = {0};
  first.mixer.choose("heads_by_length");
  first.mixer.as<SeparateHeadsOptions>().heads = {2, 4};
  first.mixer.as<SeparateHeadsOptions>().thresholds = {4};
  first.attention = options.decoder.attention;
  options.decoder.per_layer = {first};
  CHECK(refused(options) ==
        std::vector<std::string>{"decoder.per_layer[0].mixer: heads_by_length goes by the length of the text, which a "
                                 "decoder does not know. Use it in an encoder: encoder_only, encoder_decoder"});
}

}  // namespace headlab
