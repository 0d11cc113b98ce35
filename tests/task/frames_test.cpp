#include "src/task/frames.h"

#include <cmath>
#include <set>

#include "modules/embedding/frames.h"
#include "modules/model/frame_encoder.h"
#include "src/data/frames/phones.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {

PhonesOptions small_phones() {
  PhonesOptions options;
  options.phones = 5;
  options.width = 6;
  options.symbols = SizeRange(3, 6);
  options.frames = SizeRange(2, 5);
  options.noise = 0.5;
  options.train = 60;
  options.valid = options.test = 20;
  return options;
}

const char* const small_task =
    R"({"type": "frames", "data": {"type": "phones", "phones": 5, "width": 6, "symbols": {"min": 3, "max": 6}, "frames": {"min": 2, "max": 5},
        "noise": 0.5, "train": 60, "valid": 20, "test": 20}})";

FrameEncoderOptions hearing() {
  auto options = small_frame_encoder();
  options.embedding.frame_width = 6;
  options.embedding.max_length = 64;
  return options;
}

}  // namespace

TEST_CASE("phones last as long as asked, and a frame is its phone's prototype with noise of the deviation asked",
          "[paper-30]") {
  const auto options = small_phones();
  const auto data = draw_phones(options, 1);
  CHECK(data.symbols == std::vector<std::string>{"p0", "p1", "p2", "p3", "p4"});
  auto quiet = options;
  quiet.noise = 0;
  quiet.symbols = SizeRange(60, 60);
  const auto clean = draw_phones(quiet, 1);
  // Prototypes are what frames without noise are.
  std::map<int64_t, std::vector<float>> prototypes;
  for (const auto& text : clean.parts.at("train"))
    for (std::size_t t = 0; t < text.at_frame.size(); ++t) {
      const std::vector<float> frame(text.frames.begin() + static_cast<std::ptrdiff_t>(6 * t),
                                     text.frames.begin() + static_cast<std::ptrdiff_t>(6 * t + 6));
      CHECK(prototypes.emplace(text.at_frame[t], frame).first->second == frame);
    }
  CHECK(prototypes.size() == 5);
  std::set<std::size_t> counts, lasted;
  double squares = 0, numbers = 0;
  for (const auto& [name, part] : data.parts)
    for (const auto& text : part) {
      counts.insert(text.symbols.size());
      REQUIRE(text.frames.size() == 6 * text.at_frame.size());
      std::size_t at = 0;
      for (std::size_t s = 0; s < text.symbols.size(); ++s) {
        const auto first = at;
        while (at < text.at_frame.size() && text.at_frame[at] == text.symbols[s]) ++at;
        if (s + 1 < text.symbols.size() && text.symbols[s + 1] == text.symbols[s])
          break;  // two equal ones look like one
        lasted.insert(at - first);
      }
      for (std::size_t i = 0; i < text.frames.size(); ++i) {
        const auto rest = text.frames[i] - prototypes.at(text.at_frame[i / 6])[i % 6];
        squares += rest * rest;
        numbers += 1;
      }
    }
  CHECK(counts == std::set<std::size_t>{3, 4, 5, 6});
  CHECK(lasted == std::set<std::size_t>{2, 3, 4, 5});
  CHECK(std::sqrt(squares / numbers) == Approx(0.5).epsilon(0.03));
}

TEST_CASE("phones are the same for the same seeds, prototypes for other seeds too", "[paper-30]") {
  auto options = small_phones();
  const auto one = draw_phones(options, 1), same = draw_phones(options, 2);
  CHECK(one.parts.at("test").front().frames == same.parts.at("test").front().frames);
  options.seed = -1;
  CHECK(draw_phones(options, 1).parts.at("test").front().frames == one.parts.at("test").front().frames);
  CHECK(draw_phones(options, 2).parts.at("test").front().frames != one.parts.at("test").front().frames);
  auto fewer = small_phones();
  fewer.train = 10;
  CHECK(draw_phones(fewer, 1).parts.at("train").back().frames == one.parts.at("train")[9].frames);
  CHECK(draw_phones(fewer, 1).parts.at("valid").back().frames == one.parts.at("valid").back().frames);
}

TEST_CASE("a batch of frames holds each text's frames, then zeros, and asks the class of each real frame",
          "[paper-30]") {
  const auto task = make_task(small_task);
  const auto& data = dynamic_cast<const FrameTask&>(*task).data();
  const std::vector<int64_t> examples{4, 0, 7, 11};
  const auto batch = task->batch("valid", examples, torch::kCPU);
  const auto& frames = batch.inputs.side.at(frames_name);
  const auto T = frames.size(1);
  CHECK(batch.inputs.target_BT.sizes() == at::IntArrayRef{4, T});
  std::vector<int64_t> targets, rows;
  for (int64_t b = 0; b < 4; ++b) {
    const auto& text = data.parts.at("valid")[static_cast<std::size_t>(examples[static_cast<std::size_t>(b)])];
    for (int64_t t = 0; t < T; ++t) {
      const bool real = t < text.length(6);
      CHECK(batch.inputs.target_mask_BT[b][t].item<bool>() == real);
      for (int64_t k = 0; k < 6; ++k)
        CHECK(frames[b][t][k].item<float>() == (real ? text.frames[static_cast<std::size_t>(6 * t + k)] : 0));
      if (!real) continue;
      targets.push_back(text.at_frame[static_cast<std::size_t>(t)]);
      rows.push_back(b * T + t);
    }
  }
  CHECK(torch::equal(batch.targets_N, torch::tensor(targets)));
  CHECK(torch::equal(batch.rows_N, torch::tensor(rows)));
  CHECK(batch.tokens == static_cast<int64_t>(targets.size()));
}

TEST_CASE("the frame error is the share of frames that are told wrong, text by text", "[paper-30]") {
  const auto task = make_task(small_task);
  const auto model = make_model(model_choice("frame_encoder", hearing()), task->context());
  EvaluateOptions options;
  options.split = "test";
  options.metrics = {"frame_error", "accuracy", "loss"};
  const auto measured = task->evaluate(*model, options, {}).metrics;
  torch::NoGradGuard no_grad;
  double wrong = 0, nats = 0, frames = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const auto batch = task->batch("test", {i}, torch::kCPU);
    const auto log_p = logits_of(*model, batch.inputs)[0].log_softmax(-1);
    for (int64_t t = 0; t < batch.tokens; ++t) {
      const auto right = batch.targets_N[t].item<int64_t>();
      wrong += log_p[t].argmax().item<int64_t>() != right;
      nats -= log_p[t][right].item<double>();
      frames += 1;
    }
  }
  CHECK(measured.at("frame_error") == Approx(wrong / frames));
  CHECK(measured.at("accuracy") == Approx(1 - wrong / frames));
  CHECK(measured.at("loss") == Approx(nats / frames).epsilon(1e-5));
}

TEST_CASE("a model that does not fit frames is refused before any are drawn", "[paper-30]") {
  FrameTaskOptions options;
  const auto refused = [&](const Choice& model) {
    Problems problems;
    options.model_rules(model, problems);
    return problems.found.empty() ? std::string()
                                  : problems.found.front().field + ": " + problems.found.front().message;
  };
  auto fitting = small_frame_encoder();
  fitting.embedding.frame_width = 16;
  CHECK(refused(model_choice("frame_encoder", fitting)).empty());
  CHECK(refused(model_choice("frame_encoder", small_frame_encoder())) ==
        "model.embedding.frame_width: expected the width of the task's frames (16), got 5");
  CHECK(refused(model_choice("encoder_only", small_encoder_only())) ==
        "model: expected frame_encoder for the task frames, got encoder_only");
  fitting.output.choose("classes");
  CHECK(refused(model_choice("frame_encoder", fitting)) ==
        "model.output: expected tags for the task frames, got classes");
}
