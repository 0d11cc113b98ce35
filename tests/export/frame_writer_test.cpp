#include "src/export/frame_writer.h"

#include <torch/script.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "modules/model/frame_ctc.h"
#include "modules/model/frame_transcriber.h"
#include "src/decode/best_path.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/places.h"
#include "tests/support/scratch.h"
#include "tests/support/skip.h"

using namespace headlab;

namespace {

constexpr int64_t vocabulary = 9;

template <class Options>
Options small(Options options, const std::string& encoder) {
  options.d_model = 8;
  options.dropout = 0;
  options.frame_width = 5;
  options.max_length = 16;
  options.encoder.choose(encoder);
  if (encoder == "layers") options.encoder.template as<LayersReaderOptions>().attention.heads = 4;
  return options;
}

std::shared_ptr<FrameWriter> transcriber(const std::string& merge, const std::string& encoder = "lstm",
                                         double ctc = 0.3) {
  auto options = small(FrameTranscriberOptions(), encoder);
  options.merge.choose(merge);
  options.ctc = ctc;
  options.heads.items.clear();
  for (const char* type : {"dot", "additive", "location", "coverage"})
    options.heads.items.emplace_back(energy_catalogue, type);
  auto model = std::make_shared<FrameTranscriber>(options, ModelContext{2, vocabulary, {}});
  fill(*model, 0.5);
  return model;
}

std::shared_ptr<FrameWriter> by_ctc(const std::string& encoder = "lstm") {
  auto model = std::make_shared<FrameCtc>(small(FrameCtcOptions(), encoder), ModelContext{2, vocabulary, {}});
  fill(*model, 0.5);
  return model;
}

Batch heard(int64_t B, int64_t S, const Tensor& target_BT = {}) {
  Batch batch;
  batch.source_BS = torch::zeros({B, S}, torch::kLong);
  batch.source_mask_BS = torch::arange(S).unsqueeze(0).lt(torch::arange(S, S - B, -1).clamp_min(1).unsqueeze(1));
  batch.side[frames_name] = noise({B, S, 5}, "frames" + std::to_string(S));
  batch.target_BT = target_BT;
  return batch;
}

std::vector<std::vector<int64_t>> rows_of(const Tensor& ids_BT) {
  std::vector<std::vector<int64_t>> rows;
  for (int64_t b = 0; b < ids_BT.size(0); ++b) {
    auto& row = rows.emplace_back();
    for (int64_t t = 0; t < ids_BT.size(1); ++t)
      if (const auto id = ids_BT[b][t].item<int64_t>(); id != 0) row.push_back(id);
  }
  return rows;
}

SearchOptions beams(int64_t beam) {
  SearchOptions search;
  search.beam = beam;
  search.max_length = 8;
  return search;
}

std::vector<std::vector<int64_t>> searched(Model& model, const Batch& batch, int64_t beam) {
  Forward run;
  std::vector<std::vector<int64_t>> texts;
  for (const auto& found : search(model, batch, {}, beams(beam), run)) texts.push_back(found.front().ids);
  return texts;
}

}  // namespace

TEST_CASE("an exported transcriber says and writes what the model does at any batch and length, with removed heads too",
          "[paper-23]") {
  Scratch folder;
  for (const std::string merge : {"head", "decoder"})
    for (const std::string encoder : {"lstm", "layers"})
      for (const int left : {4, 2, 0}) {
        if (encoder == "layers" && left == 0) continue;
        INFO(merge << ", " << encoder << ", " << left << " heads");
        const auto model = transcriber(merge, encoder);
        if (left < 4) {
          HeadTable kept{{Stack::dec_cross, {left == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{}}}};
          model->keep(kept);
        }
        const auto path = folder / "transcriber.pt";
        const auto report = export_frame_writer(*model, path, {}, beams(3), {{"spec.json", "{}"}});
        CHECK(report.max_difference < 1e-5);
        CHECK(report.sentences_compared == 14);
        CHECK(model->is_training());
        model->eval();
        torch::NoGradGuard no_grad;
        auto file = torch::jit::load(path.string());
        for (const auto& [B, S, T] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {3, 7, 5}, {2, 16, 16}}) {
          const auto target = torch::randint(vocabulary, {B, T}, named_generator(1, "target"), torch::kLong);
          const auto batch = heard(B, S, target);
          const auto& frames = batch.side.at(frames_name);
          CHECK(difference(file.forward({frames, batch.source_mask_BS, target}).toTensor(), logits_of(*model, batch)) <
                1e-5);
          for (const int64_t beam : {1, 3})
            CHECK(rows_of(file.get_method("transcribe")({frames, batch.source_mask_BS, beam}).toTensor()) ==
                  searched(*model, heard(B, S), beam));
        }
        CHECK_THROWS(file.get_method("encode")({noise({1, 17, 5}, "x"), torch::ones({1, 17}, torch::kBool)}));
        CHECK_THROWS(file.get_method("encode")({noise({1, 3, 4}, "x"), torch::ones({1, 3}, torch::kBool)}));
        CHECK_THROWS(file.get_method("full")(
            {noise({1, 3, 5}, "x"), torch::ones({1, 3}, torch::kBool), torch::zeros({1, 17}, torch::kLong)}));
      }
  CHECK_THROWS_AS(
      export_frame_writer(*make_model(model_choice("encoder_only", small_encoder_only())), folder / "x.pt", {}, {}, {}),
      UsageError);
}

TEST_CASE("an exported model of CTC gives each frame's probabilities and the most probable path, beside a decoder too",
          "[paper-23]") {
  Scratch folder;
  DefaultDtype guard(torch::kFloat64);
  for (const auto& model : {by_ctc(), by_ctc("layers"), transcriber("decoder")}) {
    const auto path = folder / "ctc.pt";
    CHECK(export_frame_writer(*model, path, {}, beams(2), {}).max_difference < 1e-10);
    model->eval();
    torch::NoGradGuard no_grad;
    auto file = torch::jit::load(path.string());
    for (const auto& [B, S] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {2, 16}}) {
      const auto batch = heard(B, S);
      const auto& frames = batch.side.at(frames_name);
      Forward run;
      const auto expected = model->frame_log_probabilities(model->read(batch, run));
      const auto got = file.get_method("ctc")({frames, batch.source_mask_BS}).toTensor();
      CHECK(difference(got.slice(-1, 4), expected.slice(-1, 4)) < 1e-10);
      CHECK(difference(got.select(-1, 0), expected.select(-1, 0)) < 1e-10);
      CHECK(rows_of(file.get_method("best_path")({frames, batch.source_mask_BS}).toTensor()) ==
            best_paths(expected, batch.source_mask_BS));
    }
  }
  auto file = torch::jit::load((folder / "ctc.pt").string());
  export_frame_writer(*transcriber("head", "lstm", 0), folder / "none.pt", {}, beams(2), {});
  CHECK(!torch::jit::load((folder / "none.pt").string()).find_method("ctc"));
}

TEST_CASE("Python with torch alone transcribes as headlab does", "[paper-23][python]") {
  if (test::skipped(test::python().empty(),
                    "no Python with torch: set HEADLAB_PYTHON to one, or let tools/headlab make .deps/venv"))
    return;
  Scratch folder;
  torch::NoGradGuard no_grad;
  auto cases = nlohmann::json::array();
  const auto list = [](const Tensor& x) {
    const auto flat = x.to(torch::kFloat64).contiguous().flatten();
    return std::vector<double>(flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
  };
  int64_t number = 0;
  for (const auto& model : {transcriber("head"), transcriber("decoder"), by_ctc()}) {
    const auto path = folder / ("writer" + std::to_string(number++) + ".pt");
    export_frame_writer(*model, path, {}, beams(2), {});
    model->eval();
    auto batch = heard(3, 11);
    const auto& frames = batch.side.at(frames_name);
    nlohmann::json one{{"file", path.string()}, {"frames", nlohmann::json::array()}, {"mask", nlohmann::json::array()}};
    for (int64_t b = 0; b < 3; ++b) {
      auto rows = nlohmann::json::array();
      for (int64_t s = 0; s < 11; ++s) rows.push_back(list(frames[b][s]));
      one["frames"].push_back(rows);
      one["mask"].push_back(list(batch.source_mask_BS[b]));
    }
    Forward run;
    one["transcriptions"]["0"] =
        best_paths(model->frame_log_probabilities(model->read(batch, run)), batch.source_mask_BS);
    if (dynamic_cast<FrameTranscriber*>(model.get())) {
      for (const int64_t beam : {1, 3}) one["transcriptions"][std::to_string(beam)] = searched(*model, batch, beam);
      batch.target_BT = torch::randint(vocabulary, {3, 6}, named_generator(1, "target"), torch::kLong);
      one["logits"] = list(logits_of(*model, batch));
      one["target"] = nlohmann::json::array();
      for (int64_t b = 0; b < 3; ++b)
        one["target"].push_back(std::vector<int64_t>(batch.target_BT[b].const_data_ptr<int64_t>(),
                                                     batch.target_BT[b].const_data_ptr<int64_t>() + 6));
    }
    cases.push_back(one);
  }
  std::ofstream(folder / "cases.json") << cases.dump();
  const auto command = "\"" + test::python() + "\" \"" + test::in_source("tests/export/check_export.py") + "\" \"" +
                       (folder / "cases.json").string() + "\"";
  CHECK(std::system(command.c_str()) == 0);
}
