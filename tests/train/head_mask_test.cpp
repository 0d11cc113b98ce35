#include "src/train/head_mask.h"

#include <cmath>

#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/heads/score/gradient.h"
#include "src/train/head_mask/counted.h"
#include "src/train/head_mask/dropout.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

Choice counted(const std::string& type, int64_t count, std::vector<std::string> stacks = {}, bool rescale = false) {
  Choice choice(head_mask_catalogue, type);
  auto& options = choice.as<CountedMaskOptions>();
  options.count = count;
  options.stacks = std::move(stacks);
  options.rescale = rescale;
  return choice;
}

Choice dropout(double rate) {
  Choice choice(head_mask_catalogue, "dropout");
  choice.as<HeadDropoutOptions>().rate = rate;
  return choice;
}

std::shared_ptr<HeadMask> make(const Choice& choice, const Model& model) {
  return head_masks().make(choice, model, "head_masks[0]");
}

MaskedUpdate draw(uint64_t seed) {
  MaskedUpdate update;
  update.seed = seed;
  update.gradient = []() -> std::map<Stack, Tensor> { throw std::logic_error("not asked for"); };
  return update;
}

HeadSet masked_of(const std::map<Stack, Tensor>& scale, const HeadTable& there) {
  HeadSet masked;
  for (const auto head : heads_of(there))
    if (scale.at(head.stack)[head.layer][head.head].item<double>() == 0) masked.push_back(head);
  return masked;
}

TrainOptions options_of(int64_t steps, std::vector<Choice> masks) {
  TrainOptions options;
  options.steps = steps;
  options.batch.max_rows = 2;
  options.log_every = 1;
  options.schedule.choose("constant");
  options.head_masks.items = std::move(masks);
  return options;
}

void train(Model& model, const Task& task, const TrainOptions& options, const std::filesystem::path& folder = {},
           int64_t stop_after = -1, const Task* anchor = nullptr) {
  Trainer trainer(model, task, options, 16, 9, anchor);
  if (!folder.empty()) trainer.resume(folder);
  trainer.run(folder, [](const TrainReport&) {}, [&] { return trainer.step() == stop_after; });
}

bool same_bits(const Model& a, const Model& b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  for (const auto& item : left)
    if (!torch::equal(item.value(), right[item.key()])) return false;
  return true;
}

}  // namespace

TEST_CASE("a random mask goes without as many heads as it says in each update, of its stacks, each equally often",
          "[train][paper-14]") {
  const ToyTask task({5});
  auto model = toy_model(task);
  model->keep(without(model->heads(), parse_heads({"enc.self.0.1", "dec.self.1.2"})));
  const auto there = model->heads();
  const auto mask = make(counted("random", 3), *model), crossing = make(counted("random", 2, {"dec.cross"}), *model);
  constexpr int draws = 2000;
  std::map<HeadId, int> times;
  for (uint64_t seed = 0; seed < draws; ++seed) {
    const auto masked = masked_of(mask->scale(draw(seed)), there);
    REQUIRE(masked.size() == 3);
    for (const auto head : masked) ++times[head];
    for (const auto head : masked_of(crossing->scale(draw(seed)), there)) REQUIRE(head.stack == Stack::dec_cross);
  }
  CHECK(times.size() == 22);
  // chi^2 of 22 counts whose sum is fixed, drawn without repeats: times (1 - 1/22) / (1 - 3/22) it is of 21 degrees of
  // freedom, above 46.8 once in a thousand.
  const double expected = draws * 3.0 / 22, variance = expected * (1 - 3.0 / 22);
  double chi = 0;
  for (const auto& [head, count] : times) chi += (count - expected) * (count - expected) / variance * (21.0 / 22);
  CHECK(chi < 46.8);
}

TEST_CASE("rescaled, the heads that are left make up for the others; heads that a mask does not choose keep 1",
          "[train][paper-14]") {
  const ToyTask task({5});
  auto model = toy_model(task);
  const auto scale = make(counted("random", 2, {"enc.self"}, true), *model)->scale(draw(4));
  CHECK(scale.at(Stack::enc_self).sum().item<double>() == Catch::Detail::Approx(8));
  CHECK(scale.at(Stack::enc_self).max().item<double>() == Catch::Detail::Approx(8.0 / 6));
  CHECK(scale.at(Stack::dec_self).eq(1).all().item<bool>());
  CHECK_THROWS_WITH(make(counted("importance", 9, {"enc.self"}), *model),
                    "head_masks[0].count: expected at most the number of heads (8), got 9");
}

TEST_CASE("a mask of importance goes without the heads with the largest gradient, which a scorer finds too",
          "[train][paper-14]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({6, 6});
  auto model = toy_model(task);
  GradientScorerOptions by_batch;
  by_batch.absolute = "batch";
  by_batch.normalise = "none";
  const auto scores = GradientScorer(by_batch).score(*model, task, 0);
  SelectOptions select;
  select.count = 5;
  select.highest = true;
  const auto expected = select_heads(model->heads(), scores, select);
  // One update of everything, without smoothing, sees the same loss: the heads it masked are those without a gradient.
  auto options = options_of(1, {counted("importance", 5)});
  options.label_smoothing = 0;
  auto before = toy_model(task);
  train(*model, task, options);
  HeadSet untouched;
  for (const auto& [site, mixer] : model->mixers())
    for (const auto head : mixer->heads()) {
      bool same = true;
      for (const auto& [other_site, other] : before->mixers()) {
        if (!(other_site == site)) continue;
        const auto now = mixer->named_parameters(), then = other->named_parameters();
        for (const auto& axis : mixer->axes().all())
          if (const auto* tensor = now.find(axis.parameter); tensor && axis.unit == Unit::head)
            same = same &&
                   torch::equal(tensor->narrow(axis.dim, axis.offset + head * axis.width, axis.width),
                                then[axis.parameter].narrow(axis.dim, axis.offset + head * axis.width, axis.width));
      }
      if (same) untouched.push_back({site.stack, site.layer, head});
    }
  CHECK(names_of(sorted_set(untouched)) == names_of(sorted_set(expected)));
}

TEST_CASE("dropped heads are scaled so that the mean is 1, and evaluation knows nothing of it", "[train][paper-17]") {
  const ToyTask task({5});
  auto model = toy_model(task);
  const auto mask = make(dropout(0.5), *model);
  double sum = 0;
  constexpr int draws = 2000, heads = 24;
  for (uint64_t seed = 0; seed < draws; ++seed)
    for (const auto& [stack, scale] : mask->scale(draw(seed))) {
      CHECK(scale.eq(0).logical_or(scale.eq(2)).all().item<bool>());
      sum += scale.sum().item<double>();
    }
  // Each is 0 or 2 with mean 1 and deviation 1; four deviations of the mean.
  CHECK(std::abs(sum / (draws * heads) - 1) < 4 / std::sqrt(double(draws) * heads));
  const auto before = task.evaluate(*model, {}, {}).metrics.at("loss");
  auto options = options_of(0, {dropout(0.5)});
  train(*model, task, options);
  CHECK(task.evaluate(*model, {}, {}).metrics.at("loss") == before);
}

TEST_CASE("a mask of no head leaves the training's bits as they are, dropout and all", "[train][paper-14]") {
  const ToyTask task({3, 5, 9, 4, 7, 12});
  auto plain = toy_model(task, 0.2), none = toy_model(task, 0.2), some = toy_model(task, 0.2);
  train(*plain, task, options_of(5, {}));
  train(*none, task, options_of(5, {counted("random", 0), counted("importance", 0), dropout(0)}));
  train(*some, task, options_of(5, {counted("random", 1)}));
  CHECK(same_bits(*plain, *none));
  CHECK_FALSE(same_bits(*plain, *some));
}

TEST_CASE("a training with masks resumes to the same bits", "[train][paper-14]") {
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6, 8, 10});
  auto options = options_of(9, {counted("importance", 4), dropout(0.2)});
  options.accumulate = 2;
  auto whole = toy_model(task, 0.2), broken = toy_model(task, 0.2), rest = toy_model(task, 0.2);
  train(*whole, task, options);
  const test::Folder folder;
  train(*broken, task, options, folder.path(), 4);
  train(*rest, task, options, folder.path());
  CHECK(same_bits(*whole, *rest));
}

TEST_CASE("an anchor's batches are touched by no head mask: they alone teach heads that are masked elsewhere",
          "[train][paper-17]") {
  const ToyTask task({5, 6, 7}), anchor({4, 5});
  auto options = options_of(2, {counted("random", 24)});
  options.optimizer.choose("sgd");
  const auto changed = [&](const Task* with) {
    auto model = toy_model(task);
    const auto before = model->named_parameters()["encoder.layers.0.self_attention.project.weight"].detach().clone();
    train(*model, task, options, {}, -1, with);
    return !torch::equal(model->named_parameters()["encoder.layers.0.self_attention.project.weight"], before);
  };
  CHECK(!changed(nullptr));
  CHECK(changed(&anchor));
}

TEST_CASE("a training with an anchor that broke off goes on to the same bits, and one without it to others",
          "[train][paper-17]") {
  const ToyTask task({5, 6, 7, 8}), anchor({4, 5, 6});
  const test::Folder folder;
  const auto options = options_of(6, {dropout(0.5)});
  auto whole = toy_model(task), broken = toy_model(task), alone = toy_model(task);
  train(*whole, task, options, {}, -1, &anchor);
  train(*broken, task, options, folder.path() / "broken", 3, &anchor);
  auto later = toy_model(task);
  train(*later, task, options, folder.path() / "broken", -1, &anchor);
  train(*alone, task, options);
  CHECK(same_bits(*later, *whole));
  CHECK(!same_bits(*alone, *whole));
}

}  // namespace headlab
