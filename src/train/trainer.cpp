#include "src/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "modules/base/random.h"
#include "modules/model/updates.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/rng.h"
#include "src/task/token_loss.h"

namespace headlab {
namespace {

std::vector<int64_t> sources_of(const Task& task) {
  auto [source, target] = task.lengths("train");
  return source.empty() ? target : source;
}

double value(const Tensor& tensor) { return tensor.to(torch::kFloat64).item<double>(); }

std::vector<std::shared_ptr<HeadMask>> head_masks_of(const Choices& choices, const Model& model) {
  std::vector<std::shared_ptr<HeadMask>> all;
  for (std::size_t i = 0; i < choices.items.size(); ++i)
    all.push_back(head_masks().make(choices.items[i], model, "head_masks[" + std::to_string(i) + "]"));
  return all;
}

std::vector<std::shared_ptr<Penalty>> penalties_of(const Choices& choices, const NamedParameters& parameters) {
  std::vector<std::shared_ptr<Penalty>> all;
  for (std::size_t i = 0; i < choices.items.size(); ++i)
    all.push_back(penalties().make(choices.items[i], parameters, "penalties[" + std::to_string(i) + "]"));
  return all;
}

TensorMap copies(const TensorMap& tensors) {
  TensorMap made;
  for (const auto& [name, tensor] : tensors) made[name] = tensor.detach().clone();
  return made;
}

}  // namespace

void TrainOptions::describe(Fields& fields) {
  fields.add("steps", steps, "updates of the parameters").at_least(0).unit("steps");
  fields.add("batch", batch, "size and order of batches");
  fields.add("accumulate", accumulate, "batches of one update").at_least(1);
  fields.add("label_smoothing", label_smoothing, "probability spread over the vocabulary").at_least(0).below(1);
  fields.add("clip", clip, "largest l2 norm of the gradient").at_least(0).means("0: no limit");
  fields.add("optimizer", optimizer, "how gradients change the parameters");
  fields.add("schedule", schedule, "the learning rate of each step");
  fields.add("rates", rates, "how fast chosen parameters learn; of several entries that choose one, the last counts");
  fields.add("penalties", penalties, "what keeps weights small");
  fields.add("aux", aux, "how much losses that modules add count, and from when on");
  fields.add("head_masks", head_masks, "heads that each update goes without");
  fields.add("anchor", anchor, "what is learned beside, to hold on to what the model can do");
  fields.add("augment", augment, "noise in what the model reads");
  fields.add("log_every", log_every, "steps between reports").at_least(1).unit("steps");
  fields.add("validate_every", validate_every, "steps between validations").at_least(0).unit("steps").means("0: none");
  fields.add("checkpoint_every", checkpoint_every, "steps between checkpoints")
      .at_least(0)
      .unit("steps")
      .means("0: at the end alone");
  fields.add("keep_checkpoints", keep_checkpoints, "checkpoints that stay").at_least(1);
  fields.add("validate", validate, "what a validation measures");
  fields.add("early_stopping", early_stopping, "when to stop before the last step, and to go back to the best");
}

void AnchorOptions::describe(Fields& fields) {
  fields.add("task", task, "one of the spec's tasks, whose batches no head mask touches")
      .task()
      .means("absent: no anchor");
  fields.add("batch", batch, "its batches, one in each update");
}

void TrainOptions::rules(Problems& problems) const {
  if (validate_every > 0 && validate_every % log_every != 0)
    problems.add("validate_every", "expected a multiple of log_every (" + std::to_string(log_every) + "), got " +
                                       std::to_string(validate_every));
  if (early_stopping.patience == 0) return;
  if (validate_every == 0)
    problems.add("early_stopping.patience", "expected validate_every above 0, since a validation decides; got 0");
  if (const auto& measured = validate.metrics;
      !measured.empty() && std::find(measured.begin(), measured.end(), early_stopping.metric) == measured.end())
    problems.add("early_stopping.metric",
                 unknown_name("metric", early_stopping.metric, measured) + "; name it in validate.metrics");
}

Trainer::Trainer(Model& model, const Task& task, const TrainOptions& options, int64_t d_model, uint64_t seed,
                 const Task* anchor)
    : model_(model),
      task_(task),
      options_(options),
      seed_(seed),
      rates_(options.rates, trained_parameters(model), options.optimizer),
      schedule_(schedules().make(options.schedule, d_model, options.steps)),
      penalties_(penalties_of(options.penalties, rates_.trained())),
      aux_weights_(options.aux),
      head_masks_(head_masks_of(options.head_masks, model)),
      augment_(options.augment, task.reads(), !task.lengths("train").first.empty(), seed),
      order_(sources_of(task), task.lengths("train").second, options.batch, seed),
      anchor_(anchor),
      stopping_(options.early_stopping) {
  if (anchor_)
    anchor_order_.emplace(sources_of(*anchor_), anchor_->lengths("train").second, options.anchor.batch,
                          text_hash("anchor") ^ seed);
  torch::manual_seed(seed);  // dropout; a resume replaces it
}

TokenBatch Trainer::next_batch() {
  auto batch = task_.batch("train", order_.next(), model_.device());
  return augment_.empty() ? batch : augment_(std::move(batch), step_);
}

std::map<Stack, Tensor> Trainer::head_scale(const std::vector<TokenBatch>& batches, int64_t tokens) {
  std::map<Stack, Tensor> product;
  for (std::size_t i = 0; i < head_masks_.size(); ++i) {
    MaskedUpdate update;
    update.seed = Random::stream(seed_, {static_cast<uint64_t>(step_), text_hash("head_masks"), i}).next();
    update.gradient = [&] {
      std::map<Stack, Tensor> ones, sum;
      std::vector<Tensor> scales;
      for (const auto& [stack, scale] : model_.ones()) {
        ones[stack] = scale.requires_grad_();
        scales.push_back(scale);
      }
      for (std::size_t b = 0; b < batches.size(); ++b) {
        Forward run;
        run.noise_seed = noise_seed(b);
        run.scale = ones;
        const auto loss =
            token_loss(model_, batches[b], options_.label_smoothing, run).sum / static_cast<double>(tokens);
        const auto gradients = torch::autograd::grad({loss}, scales, {}, std::nullopt, false, /*allow_unused=*/true);
        std::size_t at = 0;
        for (const auto& [stack, scale] : ones) {
          const auto gradient = gradients[at].defined() ? gradients[at] : torch::zeros_like(scale);
          sum[stack] = b == 0 ? gradient : sum[stack] + gradient;
          ++at;
        }
      }
      return sum;
    };
    for (auto& [stack, scale] : head_masks_[i]->scale(update)) product[stack] = i == 0 ? scale : product[stack] * scale;
  }
  return product;
}

void Trainer::one_step() {
  std::vector<TokenBatch> batches;
  int64_t tokens = 0;
  for (int64_t i = 0; i < options_.accumulate; ++i) {
    batches.push_back(next_batch());
    tokens += batches.back().tokens;
  }
  const auto masked = batches.size();
  if (anchor_) {
    batches.push_back(anchor_->batch("train", anchor_order_->next(), model_.device()));
    tokens += batches.back().tokens;
  }
  const auto scale = head_scale({batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(masked)}, tokens);
  for (const auto& [name, parameter] : rates_.trained()) const_cast<Tensor&>(parameter).mutable_grad() = Tensor();
  Tensor loss, nll;
  std::map<std::string, Tensor> aux, stats;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    Forward run;
    run.noise_seed = noise_seed(i);
    if (i < masked) run.scale = scale;
    const auto part = token_loss(model_, batches[i], options_.label_smoothing, run);
    auto objective = part.sum / static_cast<double>(tokens);
    loss = loss.defined() ? loss + objective.detach() : objective.detach();
    nll = nll.defined() ? nll + part.nll_sum / tokens : part.nll_sum / tokens;
    std::set<std::string> losses;
    for (const auto& extra : run.aux) losses.insert(extra.name);
    aux_weights_.check(losses);
    for (const auto& extra : run.aux) {
      const auto share = extra.sum / extra.count *
                         (static_cast<double>(batches[i].tokens) / static_cast<double>(tokens)) *
                         aux_weights_.of(extra.name, step_ + 1);
      objective = objective + share;
      auto& sum = aux[extra.name];
      sum = sum.defined() ? sum + share.detach() : share.detach();
    }
    add_stats(stats, run.stats);
    objective.backward();
  }
  for (const auto& penalty : penalties_) penalty->add_gradients();
  const auto norm = clip_gradients(rates_.trained(), options_.clip);
  const bool check = model_.device().is_cpu() || (step_ + 1) % options_.log_every == 0;
  if (check && !std::isfinite(value(norm))) {
    const auto got = value(loss);
    throw Error("training stopped at step " + std::to_string(step_ + 1) + ": " +
                (std::isfinite(got) ? "the gradient's norm is " + std::to_string(value(norm))
                                    : "the loss is " + std::to_string(got)) +
                "; the last checkpoint is unharmed. Try a lower learning rate, a longer warm-up or a smaller clip");
  }
  const auto rate = schedule_->rate(step_ + 1);
  for (const auto& penalty : penalties_)
    penalty->decay([&](const std::string& name) { return rate * rates_.factor(name); });
  rates_.step(rate);
  update_modules(model_, stats);
  ++step_;
  tokens_ += tokens;
  recent_tokens_ += tokens;
  ++recent_steps_;
  const auto add = [](Tensor& sum, const Tensor& more) {
    const auto wide = more.to(torch::kFloat64);  // as it is restored, so that a resumed run reports the same digits
    sum = sum.defined() ? sum + wide : wide;
  };
  add(loss_, loss);
  add(nll_, nll);
  add(norm_, norm);
  for (const auto& [name, part] : aux) add(aux_[name], part);
}

bool Trainer::run(const std::filesystem::path& folder, const std::function<void(const TrainReport&)>& report,
                  const std::function<bool()>& stop) {
  Mode training(model_, true);
  const HeldFixed held(rates_.fixed());
  const auto save = [&] {
    if (folder.empty()) return;
    save_checkpoint(folder / checkpoint_name(step_), checkpoint());
    keep_latest_checkpoints(folder, options_.keep_checkpoints, stopping_.best_step() > 0 ? stopping_.best_step() : -1);
  };
  bool saved = false;
  while (step_ < options_.steps && !stopping_.over()) {
    const auto before = std::chrono::steady_clock::now();
    one_step();
    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    seconds_ += seconds;
    recent_seconds_ += seconds;
    const bool last = step_ == options_.steps;
    bool improved = false;
    if (step_ % options_.log_every == 0 || last) {
      TrainReport now;
      now.step = step_;
      now.steps = options_.steps;
      now.epoch = order_.place().epoch;
      now.tokens = tokens_;
      const auto count = static_cast<double>(recent_steps_);
      now.loss = value(loss_) / count;
      now.nll = value(nll_) / count;
      now.grad_norm = value(norm_) / count;
      for (const auto& [name, sum] : aux_) now.aux[name] = value(sum) / count;
      for (const auto& penalty : penalties_)
        if (const auto added = penalty->value(); added.defined()) now.aux["penalty"] += value(added);
      now.learning_rate = schedule_->rate(step_);
      now.tokens_per_second = static_cast<double>(recent_tokens_) / recent_seconds_;
      now.seconds = seconds_;
      if (options_.validate_every > 0 && (step_ % options_.validate_every == 0 || last))
        now.valid = task_.evaluate(model_, options_.validate, {}).metrics;
      if (stopping_.on() && !now.valid.empty() && (improved = stopping_.see(step_, now.valid)))
        best_ = copies(named_tensors(model_));
      report(now);
      loss_ = nll_ = norm_ = Tensor();
      aux_.clear();
      recent_steps_ = recent_tokens_ = 0;
      recent_seconds_ = 0;
    }
    const bool leave = stop && stop();
    const bool over = last || stopping_.over();
    // An improvement is saved at once: its checkpoint is what a run that is killed goes back to in the end.
    saved = over || leave || improved || (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0);
    if (saved) save();
    if (leave && !over) return false;
  }
  if (!saved) save();
  load_best();
  return true;
}

void Trainer::load_best() {
  if (!best_.empty())
    load_tensors(model_, best_, "the best validation's weights, of step " + std::to_string(stopping_.best_step()));
}

Checkpoint Trainer::checkpoint() const {
  Checkpoint made;
  made.model = named_tensors(model_);
  made.optimizer = rates_.state();
  const auto sum = [](const Tensor& tensor) { return tensor.defined() ? value(tensor) : 0.0; };
  nlohmann::json aux = nlohmann::json::object();
  for (const auto& [name, tensor] : aux_) aux[name] = value(tensor);
  made.state = {{"step", step_},
                {"epoch", order_.place().epoch},
                {"data", {{"epoch", order_.place().epoch}, {"batch", order_.place().batch}}},
                {"rng", rng_states()},
                {"tokens", tokens_},
                {"seconds", seconds_},
                {"recent",
                 {{"steps", recent_steps_},
                  {"tokens", recent_tokens_},
                  {"seconds", recent_seconds_},
                  {"loss", sum(loss_)},
                  {"nll", sum(nll_)},
                  {"grad_norm", sum(norm_)},
                  {"aux", aux}}}};
  if (anchor_order_)
    made.state["anchor"] = {{"epoch", anchor_order_->place().epoch}, {"batch", anchor_order_->place().batch}};
  if (stopping_.on()) made.state["best"] = stopping_.state();
  if (annotate) annotate(made.state);
  return made;
}

bool Trainer::resume(const std::filesystem::path& folder) try {
  const auto latest = latest_checkpoint(folder);
  if (!latest) return false;
  const auto saved = load_checkpoint(*latest);
  load_tensors(model_, saved.model, (*latest / "model.safetensors").string());
  rates_.restore(saved.optimizer, (*latest / "optimizer.safetensors").string());
  const auto& state = saved.state;
  order_.restore({state.at("data").at("epoch"), state.at("data").at("batch")});
  if (anchor_order_) anchor_order_->restore({state.at("anchor").at("epoch"), state.at("anchor").at("batch")});
  set_rng_states(state.at("rng"));
  step_ = state.at("step");
  tokens_ = state.at("tokens");
  seconds_ = state.at("seconds");
  const auto& recent = state.at("recent");
  recent_steps_ = recent.at("steps");
  recent_tokens_ = recent.at("tokens");
  recent_seconds_ = recent.at("seconds");
  const auto scalar = [](double number) { return torch::tensor(number, torch::kFloat64); };
  if (recent_steps_ > 0) {
    loss_ = scalar(recent.at("loss"));
    nll_ = scalar(recent.at("nll"));
    norm_ = scalar(recent.at("grad_norm"));
    for (const auto& [name, number] : recent.at("aux").items()) aux_[name] = scalar(number);
  }
  if (stopping_.on() && state.contains("best")) {
    stopping_.restore(state.at("best"));
    // Beside the last checkpoint, or the same: it was saved when it was the last.
    if (stopping_.best_step() > 0) best_ = load_checkpoint(folder / checkpoint_name(stopping_.best_step())).model;
  }
  return true;
} catch (const nlohmann::json::exception& error) {
  throw_foreign_state(*latest_checkpoint(folder), error);
}

}  // namespace headlab
