#include "src/task/transcription.h"

#include <cmath>
#include <functional>

#include "modules/base/random.h"
#include "modules/embedding/frames.h"
#include "modules/model/frame_ctc.h"
#include "modules/model/frame_transcriber.h"
#include "src/decode/best_path.h"
#include "src/heads/scorer.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {

const char* const small_task =
    R"({"type": "transcription", "data": {"type": "phones", "phones": 5, "width": 5, "symbols": {"min": 2, "max": 4},
        "frames": {"min": 2, "max": 3}, "train": 20, "valid": 12, "test": 12}})";

template <class Options>
Options small(Options options) {
  options.d_model = 8;
  options.dropout = 0;
  options.frame_width = 5;
  options.max_length = 40;
  return options;
}

std::shared_ptr<Model> transcriber(const ModelContext& context, const std::string& merge = "decoder",
                                   double deviation = 0.8) {
  auto options = small(FrameTranscriberOptions());
  options.merge.choose(merge);
  auto model = std::make_shared<FrameTranscriber>(options, context);
  fill(*model, deviation);
  model->eval();
  return model;
}

std::shared_ptr<Model> by_ctc(const ModelContext& context) {
  auto model = std::make_shared<FrameCtc>(small(FrameCtcOptions()), context);
  fill(*model, 0.8);
  model->eval();
  return model;
}

SearchOptions beams(int64_t beam, int64_t max_length = 8, double length_penalty = 0) {
  SearchOptions options;
  options.beam = beam;
  options.max_length = max_length;
  options.length_penalty = length_penalty;
  return options;
}

/// log p that a model gives to a text and its end, without pad and bos among what could be said.
double score(Model& model, Batch inputs, const std::vector<int64_t>& text) {
  std::vector<int64_t> read{2};
  read.insert(read.end(), text.begin(), text.end());
  inputs.target_BT = torch::tensor(read, torch::kLong).unsqueeze(0);
  inputs.target_mask_BT = Tensor();
  auto logits = logits_of(model, inputs)[0];
  for (const int64_t never : {0, 2}) logits.select(1, never).fill_(-INFINITY);
  const auto log_p = logits.log_softmax(-1);
  double sum = 0;
  for (std::size_t t = 0; t < read.size(); ++t)
    sum += log_p[static_cast<int64_t>(t)][t + 1 < read.size() ? read[t + 1] : 3].item<double>();
  return sum;
}

}  // namespace

TEST_CASE("the distance of two texts is the fewest edits, by trying all", "[paper-23]") {
  const std::function<int64_t(std::vector<int64_t>, std::vector<int64_t>)> slow =
      [&](std::vector<int64_t> a, std::vector<int64_t> b) -> int64_t {
    if (a.empty() || b.empty()) return static_cast<int64_t>(a.size() + b.size());
    const std::vector<int64_t> a_rest(a.begin() + 1, a.end()), b_rest(b.begin() + 1, b.end());
    return std::min({slow(a_rest, b_rest) + (a[0] != b[0]), slow(a_rest, b) + 1, slow(a, b_rest) + 1});
  };
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    std::vector<int64_t> a(random.below(6)), b(random.below(6));
    for (auto* list : {&a, &b})
      for (auto& one : *list) one = static_cast<int64_t>(random.below(3));
    CHECK(edit_distance(a, b) == slow(a, b));
  }
  CHECK(edit_distance({1, 2, 3}, {1, 3}) == 1);
  CHECK(edit_distance({}, {4, 4}) == 2);
}

TEST_CASE("the token error rate is the edits of greedy texts over the symbols said, text by text", "[paper-23]") {
  const auto task = make_task(small_task);
  const auto& data = dynamic_cast<const Transcription&>(*task).data();
  const auto model = transcriber(task->context());
  EvaluateOptions options;
  options.split = "test";
  options.metrics = {"token_error_rate", "loss"};
  options.search = beams(1);
  const auto measured = task->evaluate(*model, options, {}).metrics;
  torch::NoGradGuard no_grad;
  double edits = 0, symbols = 0, nats = 0, asked = 0;
  for (int64_t i = 0; i < 12; ++i) {
    auto batch = task->batch("test", {i}, torch::kCPU);
    const auto log_p = logits_of(*model, batch.inputs)[0].log_softmax(-1);
    for (int64_t t = 0; t < batch.tokens; ++t, ++asked)
      nats -= log_p[t][batch.targets_N[t].item<int64_t>()].item<double>();
    // The whole pass over what was written so far, again and again.
    std::vector<int64_t> ids{2}, said;
    while (said.size() < 8) {
      batch.inputs.target_BT = torch::tensor(ids, torch::kLong).unsqueeze(0);
      auto last = logits_of(*model, batch.inputs)[0][-1];
      last[0] = last[2] = -INFINITY;  // pad and bos are never written
      const auto best = last.argmax().item<int64_t>();
      if (best == 3) break;
      ids.push_back(best);
      said.push_back(best - 4);
    }
    const auto& reference = data.parts.at("test")[static_cast<std::size_t>(i)].symbols;
    edits += static_cast<double>(edit_distance(said, reference));
    symbols += static_cast<double>(reference.size());
  }
  CHECK(measured.at("token_error_rate") == Approx(edits / symbols));
  CHECK(measured.at("loss") == Approx(nats / asked).epsilon(1e-5));
}

TEST_CASE(
    "a beam as wide as the language finds the best transcription of all, and no beam worse ones than greedy search on "
    "the whole",
    "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto task = make_task(small_task);
  const auto& transcription = dynamic_cast<const Transcription&>(*task);
  for (const auto& model : {transcriber(task->context(), "head", 0.4), transcriber(task->context(), "decoder", 0.4),
                            by_ctc(task->context())}) {
    const bool ctc = dynamic_cast<FrameCtc*>(model.get()) != nullptr;
    INFO((ctc ? "frame_ctc" : "frame_transcriber"));
    std::map<int64_t, double> scores;  // by beam, summed over texts
    for (int64_t i = 0; i < 12; ++i) {
      const auto inputs = task->batch("test", {i}, torch::kCPU).inputs;
      // All texts of up to two symbols of unk and the five phones.
      double best = -INFINITY;
      std::vector<int64_t> best_text;
      const std::vector<int64_t> letters{1, 4, 5, 6, 7, 8};
      std::function<void(std::vector<int64_t>)> try_all = [&](std::vector<int64_t> text) {
        if (const auto found = score(*model, inputs, text); found > best) {
          best = found;
          best_text = text;
        }
        if (text.size() == 2) return;
        for (const auto letter : letters) {
          text.push_back(letter);
          try_all(text);
          text.pop_back();
        }
      };
      try_all({});
      CHECK(transcription.written(*model, "test", {i}, beams(64, 2), {})[0] == best_text);
      for (const int64_t beam : {1, 2, 4, 16})
        if (!ctc || beam > 1)  // of CTC the most probable path, which is no prefix search
          scores[beam] += score(*model, inputs, transcription.written(*model, "test", {i}, beams(beam, 8), {})[0]);
    }
    for (const auto& [beam, sum] : scores) {
      INFO("beam " << beam);
      CHECK(sum >= scores.begin()->second - 1e-9);
    }
  }
}

TEST_CASE("texts are written alike alone and beside longer ones, by any beam", "[paper-23]") {
  torch::NoGradGuard no_grad;
  const auto task = make_task(small_task);
  const auto& transcription = dynamic_cast<const Transcription&>(*task);
  const std::vector<int64_t> all{3, 0, 11, 7, 5};
  for (const auto& model : {transcriber(task->context()), by_ctc(task->context())})
    for (const int64_t beam : {1, 4}) {
      const auto together = transcription.written(*model, "test", all, beams(beam), {});
      for (std::size_t b = 0; b < all.size(); ++b)
        CHECK(transcription.written(*model, "test", {all[b]}, beams(beam), {})[0] == together[b]);
    }
  const auto& texts = transcription.data().parts.at("test");
  const auto ctc = by_ctc(task->context());
  for (const auto number : all) {
    // One text, of no split; the score of CTC's path is that of its frames.
    const auto& text = texts[static_cast<std::size_t>(number)];
    const auto found = transcription.transcribe(*ctc, text, beams(1));
    REQUIRE(found.size() == 1);
    CHECK(found[0].ids == transcription.written(*ctc, "test", {number}, beams(1), {})[0]);
    Forward run;
    const auto heard =
        std::dynamic_pointer_cast<FrameCtc>(ctc)->read(task->batch("test", {number}, torch::kCPU).inputs, run);
    const auto log_p = std::dynamic_pointer_cast<FrameCtc>(ctc)->frame_log_probabilities(heard)[0];
    CHECK(found[0].score == Approx(std::get<0>(log_p.max(-1)).sum().item<double>()).epsilon(1e-5));
    CHECK(transcription.transcribe(*ctc, text, beams(4))[0].ids ==
          transcription.written(*ctc, "test", {number}, beams(4), {})[0]);
  }
  CHECK(transcription.names({4, 1, 6}) == std::vector<std::string>{"p0", "?", "p2"});
  auto prefixed = beams(4);
  prefixed.prefix = "p0";
  CHECK_THROWS_AS(transcription.written(*transcriber(task->context()), "test", {0}, prefixed, {}), UsageError);
}

TEST_CASE("greedy decoding of CTC drops blanks after it joined equal ids in a row", "[paper-23]") {
  const auto written = [](const std::vector<int64_t>& path, const Tensor& mask = {}) {
    return best_paths(torch::one_hot(torch::tensor(path, torch::kLong).unsqueeze(0), 9).to(torch::kFloat), mask)[0];
  };
  using Ids = std::vector<int64_t>;
  CHECK(written({0, 0, 0}) == Ids{});
  CHECK(written({4, 4, 0, 4, 5, 5}) == Ids{4, 4, 5});
  CHECK(written({0, 7, 0, 0, 7, 7}) == Ids{7, 7});
  CHECK(written({5, 6, 5}) == Ids{5, 6, 5});
  CHECK(written({5, 5, 5}) == Ids{5});
  CHECK(written({5, 0, 6, 6, 8}, mask_of({3}, 5)) == Ids{5, 6});
  const auto both =
      best_paths(torch::one_hot(torch::tensor({{4, 4, 5}, {5, 0, 5}}, torch::kLong), 9).to(torch::kFloat), {});
  CHECK(both == std::vector<Ids>{{4, 5}, {5, 5}});
}

TEST_CASE(
    "the token error rate of CTC is that of its most probable path, its loss that of CTC, a symbol and end at a time",
    "[paper-23]") {
  const auto task = make_task(small_task);
  const auto& data = dynamic_cast<const Transcription&>(*task).data();
  const auto model = std::dynamic_pointer_cast<FrameCtc>(by_ctc(task->context()));
  EvaluateOptions options;
  options.split = "test";
  options.metrics = {"token_error_rate", "loss"};
  options.search.beam = 1;
  const auto measured = task->evaluate(*model, options, {}).metrics;
  torch::NoGradGuard no_grad;
  double edits = 0, symbols = 0, nats = 0, asked = 0;
  for (int64_t i = 0; i < 12; ++i) {
    const auto batch = task->batch("test", {i}, torch::kCPU);
    Forward run;
    const auto log_p = model->frame_log_probabilities(model->read(batch.inputs, run));
    const auto& reference = data.parts.at("test")[static_cast<std::size_t>(i)].symbols;
    std::vector<int64_t> said, right;
    int64_t before = 0;
    for (int64_t s = 0; s < log_p.size(1); ++s) {
      const auto best = log_p[0][s].argmax().item<int64_t>();
      if (best != before && best != 0) said.push_back(best - 4);
      before = best;
    }
    for (const auto symbol : reference) right.push_back(symbol + 4);
    edits += static_cast<double>(edit_distance(said, reference));
    symbols += static_cast<double>(reference.size());
    nats += torch::ctc_loss(log_p.transpose(0, 1), torch::tensor(right, torch::kLong).unsqueeze(0),
                            at::IntArrayRef{log_p.size(1)}, at::IntArrayRef{static_cast<int64_t>(right.size())}, 0,
                            at::Reduction::Sum)
                .item<double>();
    asked += static_cast<double>(right.size() + 1);
  }
  CHECK(measured.at("token_error_rate") == Approx(edits / symbols));
  CHECK(measured.at("loss") == Approx(nats / asked).epsilon(1e-4));
}

TEST_CASE("heads of a transcriber are scored, whichever way, and a masked one tells in what is written", "[paper-23]") {
  const auto task = make_task(small_task);
  for (const std::string merge : {"head", "decoder"}) {
    const auto model = transcriber(task->context(), merge);
    for (const std::string type : {"gradient", "loss", "confidence", "random"}) {
      INFO(merge << ", " << type);
      const auto scores = scorers().make(Choice(scorer_catalogue, type))->score(*model, *task, 1);
      REQUIRE(scores.heads.size() == 4);
      for (const auto& [head, score] : scores.heads) CHECK(std::isfinite(score));
      if (type == "confidence")
        for (const auto& [head, score] : scores.heads) CHECK((score > 0 && score <= 1));
    }
  }
}

TEST_CASE("a task over frames needs its list of symbols alone to be used, and counts new data by it", "[paper-23]") {
  for (const std::string type : {"transcription", "frames"}) {
    const auto of = [&](int phones, const std::map<std::string, std::string>& files, bool reads_data) {
      return std::dynamic_pointer_cast<OverFrames>(
          make_task(R"({"type": ")" + type + R"(", "data": {"type": "phones", "phones": )" + std::to_string(phones) +
                        R"(, "width": 5, "train": 20, "valid": 12, "test": 12}})",
                    ".", files, reads_data));
    };
    const auto with_data = of(3, {}, true);
    CHECK(with_data->files() == std::map<std::string, std::string>{{"symbols.model", "p0\np1\np2\n"}});
    const auto without = of(3, with_data->files(), false);
    CHECK(without->data().parts.empty());
    CHECK(without->data().width == 5);
    CHECK(without->data().symbols == with_data->data().symbols);
    CHECK(without->files() == with_data->files());
    CHECK(without->context().target_vocabulary == with_data->context().target_vocabulary);
    CHECK(without->context().classes == with_data->context().classes);

    const auto other = of(3, {{"symbols.model", "x\np2\np1\np0\n"}}, true);
    CHECK(other->data().symbols == std::vector<std::string>{"x", "p2", "p1", "p0"});
    for (const auto& [split, part] : with_data->data().parts)
      for (std::size_t i = 0; i < part.size(); ++i)
        for (auto list : {&FrameText::symbols, &FrameText::at_frame})
          for (std::size_t n = 0; n < (part[i].*list).size(); ++n)
            CHECK((other->data().parts.at(split)[i].*list)[n] == 3 - (part[i].*list)[n]);
    CHECK_THROWS_WITH(of(4, with_data->files(), true), ContainsSubstring("task.data: unknown symbol \"p3\""));
  }
}

TEST_CASE("a model that does not fit a transcription is refused before any frame is drawn", "[paper-23]") {
  TranscriptionOptions options;
  const auto refused = [&](const Choice& model) {
    Problems problems;
    options.model_rules(model, problems);
    return problems.found.empty() ? std::string()
                                  : problems.found.front().field + ": " + problems.found.front().message;
  };
  auto fitting = FrameCtcOptions();
  fitting.frame_width = 16;
  CHECK(refused(model_choice("frame_ctc", fitting)).empty());
  fitting.frame_width = 12;
  CHECK(refused(model_choice("frame_ctc", fitting)) ==
        "model.frame_width: expected the width of the task's frames (16), got 12");
  CHECK(refused(model_choice("encoder_only", small_encoder_only())) ==
        "model: expected frame_transcriber or frame_ctc for the task transcription, got encoder_only");
}
