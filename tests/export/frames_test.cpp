#include "src/export/frames.h"

#include <torch/script.h>

#include "modules/attention/gate/diversity.h"
#include "modules/attention/gate/windows.h"
#include "modules/model/frame_encoder.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

Batch batch_of(const Tensor& frames_BTF, const Tensor& mask_BT) {
  Batch batch;
  batch.target_mask_BT = mask_BT;
  batch.side[frames_name] = frames_BTF;
  return batch;
}

}  // namespace

TEST_CASE(
    "an exported model of frames gives the model's logits at any batch and length, conformers and removed heads too",
    "[paper-30]") {
  Scratch folder;
  auto windowed = small_attention();
  windowed.gates.items.emplace_back(gate_catalogue, "windows");
  windowed.gates.items.back().as<WindowsOptions>().windows = {3, 0, 3, 0};
  windowed.gates.items.emplace_back(gate_catalogue, "diversity");
  for (const std::string block : {"transformer", "conformer"})
    for (const std::string output : {"tags", "classes"})
      for (const bool pruned : {false, true}) {
        INFO(block << ", " << output << (pruned ? ", pruned" : ""));
        auto options = small_frame_encoder(windowed);
        options.encoder.block.choose(block);
        options.output.choose(output);
        const auto model = make_model(model_choice("frame_encoder", options));
        if (pruned) model->keep({{Stack::enc_self, {{1, 2}, {}}}});
        const auto path = folder / "frames.pt";
        CHECK(export_frames(*model, path, {{"spec.json", "{}"}}).max_difference < 1e-5);
        auto file = torch::jit::load(path.string());
        for (const auto& [B, T] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {2, 16}}) {
          const auto frames = noise({B, T, 5}, "frames");
          const auto mask = torch::arange(T).unsqueeze(0).lt(torch::arange(T, T - B, -1).clamp_min(1).unsqueeze(1));
          torch::NoGradGuard no_grad;
          const auto got = file.forward({frames, mask}).toTensor(),
                     expected = logits_of(*model, batch_of(frames, mask));
          CHECK(difference(output == "tags" ? got.index({mask}) : got,
                           output == "tags" ? expected.index({mask}) : expected) < 1e-5);
        }
        CHECK_THROWS(file.get_method("full")({noise({1, 17, 5}, "x"), torch::ones({1, 17}, torch::kBool)}));
        CHECK_THROWS(file.get_method("full")({noise({1, 3, 4}, "x"), torch::ones({1, 3}, torch::kBool)}));
      }
  CHECK_THROWS_AS(export_frames(*make_model(model_choice("encoder_only", small_encoder_only())), folder / "x.pt", {}),
                  UsageError);
}
