#include "modules/model/frame_encoder.h"

#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

Batch frames_batch(const Tensor& frames_BTF, const Tensor& mask_BT = {}) {
  Batch batch;
  batch.target_BT = torch::zeros({frames_BTF.size(0), frames_BTF.size(1)}, torch::kLong);
  batch.target_mask_BT = mask_BT;
  batch.side[frames_name] = frames_BTF;
  return batch;
}

}  // namespace

TEST_CASE("frames that are one 1 among zeros say what ids say, the map's columns for the table's rows", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto of_ids = small_encoder_only();
  of_ids.output.choose("tags");
  of_ids.embedding.scale = false;
  auto of_frames = small_frame_encoder();
  of_frames.embedding.frame_width = small_vocabulary;
  const auto reads = make_model(model_choice("encoder_only", of_ids)),
             hears = make_model(model_choice("frame_encoder", of_frames));
  auto from = reads->named_parameters(), to = hears->named_parameters();
  for (auto& item : to) {
    if (item.key() == "embed.project.weight")
      item.value().copy_(from["tokens.weight"].t());
    else if (item.key() == "embed.project.bias")
      item.value().zero_();
    else
      item.value().copy_(from[item.key()]);
  }
  const auto ids = random_ids({3, 8}, small_vocabulary, "ids");
  const auto mask = mask_of({8, 5, 6}, 8);
  const Batch text{{}, {}, ids, mask};
  const auto expected = logits_of(*reads, text),
             got = logits_of(*hears, frames_batch(torch::one_hot(ids, small_vocabulary).to(torch::kFloat64), mask));
  CHECK(difference(got.index({mask}), expected.index({mask})) < 1e-12);
}

TEST_CASE("a model of frames says what is wrong with what it is given", "[paper-30]") {
  const auto model = make_model(model_choice("frame_encoder", small_frame_encoder()));
  CHECK_THROWS_WITH(logits_of(*model, small_batch()),
                    "model: expected frames of numbers, got a text of ids; use a task whose data are frames, or a "
                    "model that reads ids");
  CHECK_THROWS_WITH(
      logits_of(*model, frames_batch(noise({2, 3, 4}, "x"))),
      "frames: expected [B, T, 5] as model.embedding.frame_width says, a frame for each place, got [2, 3, 4]");
  auto shorter = frames_batch(noise({2, 3, 5}, "x"));
  shorter.target_BT = shorter.target_BT.narrow(1, 0, 2);
  CHECK_THROWS_AS(logits_of(*model, shorter), ShapeError);
  CHECK_THROWS_WITH(logits_of(*model, frames_batch(noise({2, 17, 5}, "x"))),
                    "embedding: expected at most 16 frames, got 17; raise model.embedding.max_length");
  Forward run;
  CHECK_THROWS_AS(model->stepper({}, run), UsageError);
  auto options = small_frame_encoder();
  options.output.choose("language_model");
  Problems problems;
  options.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "output");
}

TEST_CASE("the work of a model of frames is that of its map, its layers and its output", "[paper-30]") {
  const auto frames = make_model(model_choice("frame_encoder", small_frame_encoder()));
  auto options = small_encoder_only();
  options.output.choose("tags");
  const auto ids = make_model(model_choice("encoder_only", options));
  for (const int64_t T : {1, 7, 12}) CHECK(frames->flops(0, T) == ids->flops(0, T) + 2 * T * 5 * small_width);
  CHECK(frames->parameter_count() ==
        ids->parameter_count() - small_vocabulary * small_width + 5 * small_width + small_width);
}

TEST_CASE("one class for all frames is asked of the mean of the real ones", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto options = small_frame_encoder();
  options.output.choose("classes");
  const auto model = make_model(model_choice("frame_encoder", options));
  const auto frames = noise({3, 8, 5}, "x");
  const auto mask = mask_of({8, 4, 6}, 8);
  const auto logits = logits_of(*model, frames_batch(frames, mask));
  CHECK(shape_text(logits) == "[3, 11]");
  CHECK(difference(logits.narrow(0, 1, 1), logits_of(*model, frames_batch(frames.narrow(0, 1, 1).narrow(1, 0, 4)))) <
        1e-12);
}
