#include "src/measure/roles.h"

#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/task/translation.h"
#include "tests/catch.h"
#include "tests/support/taps.h"
#include "tests/support/tasks.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

const char* grammar_task =
    R"({"type": "translation", "data": {"type": "grammar", "train": 300, "valid": 40, "test": 20},
    "tokenizer": {"type": "bpe", "vocabulary": 300}})";

std::shared_ptr<EncoderDecoder> model_for(const Task& task, bool bare = false, bool persistent = false) {
  EncoderDecoderOptions options;
  if (persistent) options.encoder.attention.then.items.emplace_back(adapter_catalogue, "persistent");
  options.d_model = 16;
  options.dropout = 0;
  if (bare) options.norm.choose("none");
  options.encoder.layers = options.decoder.layers = 1;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads =
      bare ? 1 : 4;
  auto model = std::make_shared<EncoderDecoder>(options, task.context());
  fill(*model, 0.4);
  model->eval();
  return model;
}

}  // namespace

TEST_CASE("the words of a source are found among its pieces, and make a tree", "[roles][paper-22]") {
  const auto task = make_task_as<Translation>(grammar_task);
  const auto& tokenizer = task->tokenizers().source;
  const auto trees = task->trees("valid", 0);
  REQUIRE(trees.size() == 40);
  CHECK(task->trees("valid", 7).size() == 7);
  int64_t subjects = 0, pieces_of_words = 0;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const auto& tree = trees[i];
    const auto ids = numbers_of(task->batch("valid", {static_cast<int64_t>(i)}, torch::kCPU).inputs.source_BS);
    REQUIRE(tree.word_at.size() == ids.size());
    CHECK(tree.word_at.back() == -1);
    int64_t roots = 0;
    for (std::size_t word = 0; word < tree.parent.size(); ++word) {
      roots += tree.parent[word] < 0;
      subjects += tree.relation[word] == "nsubj";
      const auto first = static_cast<std::size_t>(tree.first[word]);
      CHECK(tree.word_at[first] <= static_cast<int64_t>(word));
      if (word > 0) CHECK(tree.first[word] >= tree.first[word - 1]);
    }
    CHECK(roots == 1);
    // What the pieces of each word decode to, one after another, is the sentence.
    std::string joined, whole = tokenizer.decode({ids.begin(), ids.end() - 1});
    for (std::size_t word = 0; word < tree.parent.size(); ++word) {
      std::vector<int64_t> own;
      for (std::size_t t = 0; t + 1 < ids.size(); ++t)
        if (tree.word_at[t] == static_cast<int64_t>(word)) own.push_back(ids[t]);
      pieces_of_words += static_cast<int64_t>(own.size());
      joined += tokenizer.decode(own);
    }
    std::erase(joined, ' ');
    std::erase(whole, ' ');
    CHECK(joined == whole);
  }
  CHECK(subjects >= 40);
  CHECK(pieces_of_words > 100);
}

TEST_CASE("a head that is planted to look at the token before is positional", "[roles][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({40, 45});
  auto model = model_for(task, true);
  {
    // Without embeddings the stream is the sinusoidal positions; turned by one position they are most like those
    // before.
    const torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters())
      if (item.key().find("embedding") != std::string::npos || item.key().find("tokens") != std::string::npos)
        item.value().zero_();
    for (const auto& [site, mixer] : model->mixers()) {
      if (site.stack != Stack::enc_self) continue;
      auto parameters = mixer->named_parameters();
      auto weight = parameters["project.weight"];
      weight.zero_();
      parameters["project.bias"].zero_();
      for (int64_t i = 0; i < 8; ++i) {
        const auto angle = std::pow(10000.0, -2.0 * static_cast<double>(i) / 16), c = std::cos(angle),
                   s = std::sin(angle);
        for (int64_t j = 0; j < 2; ++j) weight[16 + 2 * i + j][2 * i + j] = 30;  // keys: the positions
        // sin(p - 1) = c sin p - s cos p, cos(p - 1) = s sin p + c cos p
        weight[2 * i][2 * i] = 30 * c;
        weight[2 * i][2 * i + 1] = -30 * s;
        weight[2 * i + 1][2 * i] = 30 * s;
        weight[2 * i + 1][2 * i + 1] = 30 * c;
      }
    }
  }
  const auto result = RolesMeasure(RolesOptions()).measure(*model, task, 0);
  const auto& head = result["heads"]["enc.self.0.0"];
  INFO(head.dump());
  CHECK(head["role"] == "positional -1");
  CHECK(head["offset"] == -1);
  CHECK(head["offset_share"].get<double>() > 0.9);
  CHECK_FALSE(head.contains("relation"));  // a toy task knows no trees
  CHECK(result["positional"] >= 1);
}

TEST_CASE("relations and rare words that heads look at are counted as loops over the weights count them",
          "[roles][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto task = make_task_as<Translation>(grammar_task);
  auto model = model_for(*task);
  RolesOptions options;
  options.limit = 12;
  options.relations = {"nsubj"};
  const auto result = RolesMeasure(options).measure(*model, *task, 0);

  std::map<int64_t, int64_t> times;
  for (int64_t i = 0; i < 300; ++i)
    for (const auto id : numbers_of(task->batch("train", {i}, torch::kCPU).inputs.source_BS)) ++times[id];
  const auto trees = task->trees("valid", 12);
  const auto eos = task->reads().ids.eos;
  for (int64_t h = 0; h < 4; ++h) {
    int64_t to_head = 0, to_subject = 0, pairs = 0, rare = 0, tokens = 0;
    std::map<int64_t, int64_t> offsets, by_offset;
    for (int64_t i = 0; i < 12; ++i) {
      const auto batch = task->batch("valid", {i}, torch::kCPU);
      Seen seen(At::weights);
      Forward run;
      run.taps = {&seen};
      const torch::NoGradGuard no_grad;
      model->hidden(batch.inputs, run);
      const auto place = numbers_of(seen.of.at({Stack::enc_self, 0})[0][h].argmax(-1));
      const auto ids = numbers_of(batch.inputs.source_BS);
      int64_t least = 1 << 30;
      for (const auto id : ids)
        if (id != eos) least = std::min(least, times[id]);
      for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
        ++tokens;
        ++offsets[place[t] - static_cast<int64_t>(t)];
        const auto id = ids[static_cast<std::size_t>(place[t])];
        rare += id != eos && times[id] == least;
      }
      const auto& tree = trees[static_cast<std::size_t>(i)];
      for (std::size_t word = 0; word < tree.parent.size(); ++word) {
        if (tree.relation[word] != "nsubj") continue;
        ++pairs;
        ++by_offset[tree.parent[word] - static_cast<int64_t>(word)];
        const auto at = [&](int64_t w) {
          return tree.word_at[static_cast<std::size_t>(
              place[static_cast<std::size_t>(tree.first[static_cast<std::size_t>(w)])])];
        };
        to_head += at(static_cast<int64_t>(word)) == tree.parent[word];
        to_subject += at(tree.parent[word]) == static_cast<int64_t>(word);
      }
    }
    const auto& head = result["heads"]["enc.self.0." + std::to_string(h)];
    INFO(head.dump());
    const auto most = [](const std::map<int64_t, int64_t>& counts) {
      int64_t largest = 0;
      for (const auto& [offset, count] : counts) largest = std::max(largest, count);
      return static_cast<double>(largest);
    };
    CHECK(head["offset_share"].get<double>() == Catch::Detail::Approx(most(offsets) / static_cast<double>(tokens)));
    CHECK(head["rare_share"].get<double>() ==
          Catch::Detail::Approx(static_cast<double>(rare) / static_cast<double>(tokens)));
    CHECK(head["relation_accuracy"].get<double>() ==
          Catch::Detail::Approx(static_cast<double>(std::max(to_head, to_subject)) / static_cast<double>(pairs)));
    CHECK(head["relation_by_offset"].get<double>() ==
          Catch::Detail::Approx(most(by_offset) / static_cast<double>(pairs)));
    CHECK(pairs >= 12);
  }
  CHECK(result["heads"].size() == 12);
}

TEST_CASE("persistent vectors change no role: they are no tokens, and leave the order of those", "[roles]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto task = make_task_as<Translation>(grammar_task);
  const auto plain = model_for(*task), persistent = model_for(*task, false, true);
  {
    const torch::NoGradGuard no_grad;
    const auto own = plain->named_parameters();
    for (auto& item : persistent->named_parameters())
      if (own.contains(item.key())) item.value().copy_(own[item.key()]);
  }
  RolesOptions options;
  options.limit = 12;
  const auto expected = RolesMeasure(options).measure(*plain, *task, 0),
             got = RolesMeasure(options).measure(*persistent, *task, 0);
  for (int64_t h = 0; h < 4; ++h) {  // of the first layer, whose tokens are the same
    const auto head = "enc.self.0." + std::to_string(h);
    CHECK(got["heads"][head] == expected["heads"][head]);
  }
}

}  // namespace headlab
