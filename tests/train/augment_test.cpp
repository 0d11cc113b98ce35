#include "src/train/augment.h"

#include <cmath>
#include <set>

#include "modules/tensor/torch.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

using Ids = std::vector<int64_t>;

Choice entry(const std::string& type, const std::map<std::string, double>& values) {
  Choice choice(augmentation_catalogue, type);
  Fields fields;
  choice.options().describe(fields);
  for (const auto& field : fields.all()) {
    const auto found = values.find(field.name);
    if (found == values.end()) continue;
    if (auto* const* number = std::get_if<double*>(&field.value)) **number = found->second;
    if (auto* const* number = std::get_if<int64_t*>(&field.value)) **number = static_cast<int64_t>(found->second);
  }
  return choice;
}

Choices list(std::vector<Choice> items) { return {augmentation_catalogue, false, std::move(items)}; }

const TextKind joint{{.pad = 0, .bos = 2, .eos = 3, .unk = 1}, true};

/// Words 10, 11, ...
Ids words(int64_t count) {
  Ids all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 10);
  return all;
}

Ids changed(const std::string& type, const std::map<std::string, double>& values, Ids text, const Ids& target,
            uint64_t seed) {
  const auto made = augmentations().make(entry(type, values));
  AugmentedText augmented{std::move(text), target, joint.ids};
  Random random(seed);
  made->change(augmented, random);
  return augmented.words;
}

/// Pairs as a translation has them: source words and eos; the decoder reads bos and the words.
TokenBatch pairs() {
  TokenBatch batch;
  batch.inputs.source_BS = torch::tensor({{10, 11, 12, 13, 3}, {20, 21, 3, 0, 0}}, torch::kLong);
  batch.inputs.source_mask_BS = torch::tensor({{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}, torch::kBool);
  batch.inputs.target_BT = torch::tensor({{2, 30, 31, 0}, {2, 40, 41, 42}}, torch::kLong);
  batch.inputs.target_mask_BT = torch::tensor({{1, 1, 1, 0}, {1, 1, 1, 1}}, torch::kBool);
  batch.targets_N = torch::tensor({30, 31, 3, 40, 41, 42, 3}, torch::kLong);
  batch.tokens = 7;
  batch.examples = {5, 8};
  return batch;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || torch::equal(a, b));
}

}  // namespace

TEST_CASE("word dropout replaces words by unk at its rate", "[train]") {
  const auto text = words(20000);
  for (const double rate : {0.0, 0.1, 0.5, 1.0}) {
    const auto dropped = changed("word_dropout", {{"rate", rate}}, text, {}, 3);
    REQUIRE(dropped.size() == text.size());
    int64_t unknown = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      CHECK((dropped[i] == text[i] || dropped[i] == 1));
      unknown += dropped[i] == 1;
    }
    // A binomial count: six standard deviations.
    const double n = 20000, deviation = std::sqrt(n * rate * (1 - rate));
    CHECK(std::abs(static_cast<double>(unknown) - n * rate) <= 6 * deviation);
  }
}

TEST_CASE("token swap permutes words, none further than the distance, and rate 0 not at all", "[train]") {
  const auto text = words(30);
  CHECK(changed("token_swap", {{"rate", 0}, {"distance", 3}}, text, {}, 1) == text);
  CHECK(changed("token_swap", {{"rate", 1}}, {}, {}, 1).empty());
  for (const int64_t distance : {1, 2, 5}) {
    int64_t furthest = 0;
    std::set<Ids> seen;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const auto swapped = changed(
          "token_swap", {{"rate", seed % 2 ? 1.0 : 0.4}, {"distance", static_cast<double>(distance)}}, text, {}, seed);
      CHECK(std::multiset<int64_t>(swapped.begin(), swapped.end()) == std::multiset<int64_t>(text.begin(), text.end()));
      for (std::size_t i = 0; i < swapped.size(); ++i)
        furthest = std::max(furthest, std::abs(swapped[i] - 10 - static_cast<int64_t>(i)));
      seen.insert(swapped);
    }
    CHECK(furthest == distance);  // reached, and never passed
    CHECK(seen.size() > 250);
  }
}

TEST_CASE("back copy makes the whole source a copy of the target at its rate", "[train]") {
  int64_t copies = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const auto text = changed("back_copy", {{"rate", 0.25}}, {10, 11}, {30, 31, 32}, seed);
    CHECK((text == Ids{10, 11} || text == Ids{30, 31, 32}));
    copies += text.size() == 3;
  }
  CHECK(std::abs(static_cast<double>(copies) - 1000) <= 6 * std::sqrt(4000 * 0.25 * 0.75));
}

TEST_CASE("a batch's sources change, its answers and what the decoder reads do not", "[train]") {
  const auto clean = pairs(), batch = pairs();
  const Augment augment(list({entry("back_copy", {{"rate", 1}})}), joint, true, 7);
  const auto noisy = augment(batch, 0);
  CHECK(torch::equal(noisy.inputs.source_BS, torch::tensor({{30, 31, 3, 0}, {40, 41, 42, 3}}, torch::kLong)));
  CHECK(torch::equal(noisy.inputs.source_mask_BS, torch::tensor({{1, 1, 1, 0}, {1, 1, 1, 1}}, torch::kBool)));
  CHECK(same(noisy.inputs.target_BT, clean.inputs.target_BT));
  CHECK(same(noisy.inputs.target_mask_BT, clean.inputs.target_mask_BT));
  CHECK(same(noisy.targets_N, clean.targets_N));
  CHECK(noisy.examples == clean.examples);
  CHECK(same(batch.inputs.source_BS, clean.inputs.source_BS));  // the batch itself stays
  CHECK(same(batch.inputs.source_mask_BS, clean.inputs.source_mask_BS));
  const Augment blank(list({entry("word_dropout", {{"rate", 1}})}), joint, true, 7);
  CHECK(torch::equal(blank(batch, 0).inputs.source_BS,
                     torch::tensor({{1, 1, 1, 1, 3}, {1, 1, 3, 0, 0}}, torch::kLong)));  // eos stays
}

TEST_CASE("where a model reads one text, its words are dropped after bos and its answers stay", "[train]") {
  TokenBatch batch;
  batch.inputs.target_BT = torch::tensor({{2, 30, 31, 0}, {2, 40, 41, 42}}, torch::kLong);
  batch.inputs.target_mask_BT = torch::tensor({{1, 1, 1, 0}, {1, 1, 1, 1}}, torch::kBool);
  batch.inputs.target_BT[1][2] = 3;  // two texts, eos between them
  batch.targets_N = torch::tensor({30, 31, 3, 40, 41, 42, 3}, torch::kLong);
  batch.examples = {0, 1};
  const Augment augment(list({entry("word_dropout", {{"rate", 1}})}), joint, false, 7);
  const auto noisy = augment(batch, 0);
  CHECK(torch::equal(noisy.inputs.target_BT, torch::tensor({{2, 1, 1, 0}, {2, 1, 3, 1}}, torch::kLong)));
  CHECK(same(noisy.inputs.target_mask_BT, batch.inputs.target_mask_BT));
  CHECK(same(noisy.targets_N, batch.targets_N));
  CHECK_FALSE(noisy.inputs.source_BS.defined());
}

TEST_CASE("noise depends on the seed, the step and the example, and on nothing else", "[train]") {
  const auto both = list({entry("word_dropout", {{"rate", 0.5}}), entry("token_swap", {{"rate", 1}})});
  const Augment augment(both, joint, true, 7), other_seed(both, joint, true, 8);
  TokenBatch batch = pairs();
  batch.inputs.source_BS = torch::arange(10, 50, torch::kLong).view({2, 20});
  batch.inputs.source_mask_BS = Tensor();
  const auto source = [&](const Augment& of, const TokenBatch& from, int64_t step) {
    return of(from, step).inputs.source_BS;
  };
  const auto noisy = source(augment, batch, 3);
  CHECK(torch::equal(noisy, source(augment, batch, 3)));
  CHECK_FALSE(torch::equal(noisy, source(augment, batch, 4)));
  CHECK_FALSE(torch::equal(noisy, source(other_seed, batch, 3)));
  auto swapped = batch;  // the same examples in another order, in another batch
  swapped.inputs.source_BS = batch.inputs.source_BS.flip(0);
  swapped.inputs.target_BT = batch.inputs.target_BT.flip(0);
  swapped.inputs.target_mask_BT = batch.inputs.target_mask_BT.flip(0);
  swapped.examples = {8, 5};
  CHECK(torch::equal(noisy, source(augment, swapped, 3).flip(0)));
  // Each entry has a generator of its own: one before it with rate 0, or of another kind, moves nothing.
  const Augment dropout(list({entry("word_dropout", {{"rate", 0.5}})}), joint, true, 7);
  const Augment after_another(list({entry("token_swap", {{"rate", 0}}), entry("word_dropout", {{"rate", 0.5}})}), joint,
                              true, 7);
  CHECK(torch::equal(source(dropout, batch, 3), source(after_another, batch, 3)));
  const Augment twice(list({entry("word_dropout", {{"rate", 0.5}}), entry("word_dropout", {{"rate", 0.5}})}), joint,
                      true, 7);
  const auto unknown = [](const Tensor& ids) { return ids.eq(1).sum().item<int64_t>(); };
  CHECK(unknown(source(twice, batch, 3)) > unknown(source(dropout, batch, 3)));  // the second does not repeat the first
}

TEST_CASE("augmentations that a task's texts do not allow are refused", "[train]") {
  const TextKind separate{{}, false};
  CHECK_THROWS_WITH(
      Augment(list({entry("word_dropout", {}), entry("back_copy", {})}), separate, true, 1),
      ContainsSubstring("augment[1]: back_copy writes target words into the source: expected one vocabulary"));
  for (const char* type : {"token_swap", "back_copy"})
    CHECK_THROWS_WITH(Augment(list({entry(type, {})}), joint, false, 1),
                      ContainsSubstring(std::string("augment[0]: ") + type + " changes a source"));
}

TEST_CASE("a training with augmentations of rate 0 has the bits of one without, and validation reads clean text",
          "[train]") {
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6});
  const auto trained = [&](const std::vector<Choice>& augment, std::vector<double>& losses) {
    auto model = toy_model(task, 0.1);
    TrainOptions options;
    options.steps = 5;
    options.batch.max_rows = 3;
    options.log_every = options.validate_every = 1;
    options.schedule.choose("constant");
    options.augment.items = augment;
    Trainer(*model, task, options, 16, 9).run({}, [&](const TrainReport& report) { losses.push_back(report.loss); });
    return model;
  };
  std::vector<double> clean_losses, zero_losses, noisy_losses;
  const auto clean = trained({}, clean_losses);
  const auto zero = trained({entry("word_dropout", {{"rate", 0}}), entry("token_swap", {{"rate", 0}})}, zero_losses);
  const auto noisy = trained({entry("word_dropout", {{"rate", 0.5}})}, noisy_losses);
  CHECK(clean_losses == zero_losses);
  CHECK(clean_losses != noisy_losses);
  for (const auto& item : clean->named_parameters())
    CHECK(torch::equal(item.value(), zero->named_parameters()[item.key()]));
  const auto before = task.batch("train", {2, 4}, torch::kCPU), after = task.batch("train", {2, 4}, torch::kCPU);
  CHECK(torch::equal(before.inputs.source_BS, after.inputs.source_BS));
  CHECK(before.inputs.source_BS.eq(1).sum().item<int64_t>() == 0);
}

TEST_CASE("a training with noise that is stopped and gone on with ends with the same bits", "[train]") {
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6});
  const auto train = [&](const std::filesystem::path& folder, int64_t stop_after) {
    auto model = toy_model(task, 0.1);
    TrainOptions options;
    options.steps = 14;
    options.batch.max_rows = 2;
    options.accumulate = 2;
    options.log_every = 1;
    options.schedule.choose("constant");
    options.augment.items = {entry("word_dropout", {{"rate", 0.3}}), entry("token_swap", {{"rate", 0.5}})};
    Trainer trainer(*model, task, options, 16, 9);
    trainer.resume(folder);
    trainer.run(folder, [](const TrainReport&) {}, [&] { return trainer.step() == stop_after; });
    return model;
  };
  test::Folder whole, broken;
  const auto expected = train(whole.path(), -1);
  train(broken.path(), 5);
  const auto resumed = train(broken.path(), -1);
  for (const auto& item : expected->named_parameters())
    CHECK(torch::equal(item.value(), resumed->named_parameters()[item.key()]));
}

}  // namespace headlab
