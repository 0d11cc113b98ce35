#include "src/measure/maps.h"

#include <nlohmann/json.hpp>

#include "modules/attention/project/knocking.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;

TEST_CASE("how far maps are from the identity is 0 where they start, and sqrt of what is added squared") {
  const auto task = make_task(
      R"({"type": "translation", "data": {"type": "grammar", "train": 30, "valid": 20, "test": 20}, "tokenizer": {"type": "bpe", "vocabulary": 300}})");
  auto attention = small_attention();
  Choice knocking(adapter_catalogue, "knocking");
  knocking.as<KnockingOptions>().on = {"k", "v"};
  Choice gated(adapter_catalogue, "knocking");
  gated.as<KnockingOptions>().kind = "gate";
  attention.then.items = {knocking, gated};
  const auto model = make_model(model_choice("decoder_only", small_decoder_only(attention)));
  initialise(*model, 1);
  auto found = MapsMeasure({}).measure(*model, *task, 1);
  CHECK(found["distance"] == 0.0);
  CHECK(found["maps"] == 4);  // two layers: what a gate multiplies by is no matrix
  {
    torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters())
      if (item.key().find("value_map") != std::string::npos)
        item.value()[0][1].add_(item.key().find("layers.0") != std::string::npos ? 3 : 1);
  }
  found = MapsMeasure({}).measure(*model, *task, 1);
  CHECK(found["k"] == 0.0);
  CHECK(found["v"].get<double>() == Approx(2));
  CHECK(found["distance"].get<double>() == Approx(1));
  CHECK(!found.contains("q"));

  const auto plain = make_model(model_choice("decoder_only", small_decoder_only()));
  CHECK(MapsMeasure({}).measure(*plain, *task, 1) == nlohmann::ordered_json{{"maps", 0}});
}
