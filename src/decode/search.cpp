#include "src/decode/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "modules/tensor/torch.h"
#include "src/decode/sampling.h"

namespace headlab {
namespace {

/// Eval mode without gradients while it lives; then every module's own mode again.
class Inference {
 public:
  explicit Inference(torch::nn::Module& module) : modules_(module.modules()) {
    for (const auto& each : modules_) modes_.push_back(each->is_training());
    module.eval();
  }
  ~Inference() {
    // train() reaches all children: parents come first, and each child's own mode follows.
    for (std::size_t i = 0; i < modules_.size(); ++i) modules_[i]->train(modes_[i]);
  }
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

 private:
  torch::NoGradGuard no_grad_;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<bool> modes_;
};

/// Keeps Forward::rows_B true to the rows of a stepper.
class Rows {
 public:
  Rows(Stepper& stepper, Forward& run, const Tensor& first_BT)
      : stepper_(stepper),
        run_(run),
        before_(run.rows_B),
        count_(first_BT.size(0)),
        options_(torch::dtype(torch::kLong).device(first_BT.device())) {
    if (!before_.defined()) run_.rows_B = torch::arange(count_, options_);
  }
  ~Rows() { run_.rows_B = before_; }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  /// Row r goes on as what row `rows[r]` was.
  void become(const std::vector<int64_t>& rows) {
    bool same = static_cast<int64_t>(rows.size()) == count_;
    for (std::size_t r = 0; same && r < rows.size(); ++r) same = rows[r] == static_cast<int64_t>(r);
    if (same || rows.empty()) return;
    const auto index = torch::tensor(rows, torch::kLong).to(options_.device());
    stepper_.reorder(index);
    run_.rows_B = run_.rows_B.index_select(0, index.to(run_.rows_B.device()));
    count_ = static_cast<int64_t>(rows.size());
  }
  /// [R,1]
  Tensor column(const std::vector<int64_t>& ids) const {
    return torch::tensor(ids, torch::kLong).unsqueeze(1).to(options_.device());
  }

 private:
  Stepper& stepper_;
  Forward& run_;
  Tensor before_;
  int64_t count_;
  torch::TensorOptions options_;
};

/// Log-probabilities, at least in float32; -inf where an id is never written.
Tensor log_probabilities(const Tensor& logits_RV, const TextIds& ids) {
  const auto type = logits_RV.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  auto log_p_RV = torch::log_softmax(logits_RV, -1, type);
  for (const auto id : {ids.pad, ids.bos})
    if (id >= 0 && id < log_p_RV.size(1) && id != ids.eos) log_p_RV.select(1, id).fill_(-INFINITY);
  return log_p_RV;
}

void check(double log_p) {
  if (std::isnan(log_p))
    throw Error(
        "decoding: the model gave NaN for the next token's probability; its weights or its input are not finite");
}

Hypothesis finished(std::vector<int64_t> ids, double log_p, double alpha) {
  const auto divisor = length_divisor(static_cast<int64_t>(ids.size()) + 1, alpha);
  return {std::move(ids), log_p, log_p / divisor};
}

Tensor on_cpu(const Tensor& x, torch::Dtype type) { return x.to(torch::kCPU, type).contiguous(); }

/// A text that is written token by token, without a choice to be taken back.
struct Path {
  std::size_t example = 0, number = 0;  // the place in the example's results
  std::vector<int64_t> ids;
  double log_p = 0;
  Random random;
};

/// The next token of a path and its log-probability.
struct Pick {
  int64_t token;
  double log_p;
};

/// The most probable token of each row (the first of equals); eos alone where `last` says so.
std::vector<Pick> most_probable(const Tensor& log_p_RV, const TextIds& ids, const std::vector<bool>& last) {
  const auto [best_R, token_R] = log_p_RV.max(-1);
  const auto values =
      on_cpu(torch::stack({best_R, ids.eos < 0 ? best_R : log_p_RV.select(1, ids.eos)}), torch::kFloat64);
  const auto tokens = on_cpu(token_R, torch::kLong);
  const auto* value = values.const_data_ptr<double>();
  const auto* token = tokens.const_data_ptr<int64_t>();
  const auto count = last.size();
  std::vector<Pick> picks;
  for (std::size_t r = 0; r < count; ++r) {
    check(value[r]);
    picks.push_back(last[r] ? Pick{ids.eos, ids.eos < 0 ? 0 : value[count + r]} : Pick{token[r], value[r]});
  }
  return picks;
}

/// A token drawn for each path, which reads row `row_of[p]`.
std::vector<Pick> drawn(const Tensor& log_p_RV, const TextIds& ids, const std::vector<bool>& last,
                        const std::vector<int64_t>& row_of, std::vector<Path>& paths, const SearchOptions& options) {
  const auto values = on_cpu(log_p_RV, torch::kFloat64);
  const auto V = values.size(1);
  const Sampling sampling{options.temperature, options.top_k, options.top_p};
  std::vector<Pick> picks;
  std::vector<Likely> likely;
  int64_t row_seen = -1;
  for (std::size_t p = 0; p < paths.size(); ++p) {
    const auto* row = values.const_data_ptr<double>() + row_of[p] * V;
    if (last[p]) {
      picks.push_back({ids.eos, ids.eos < 0 ? 0 : row[ids.eos]});
      continue;
    }
    if (row_of[p] != row_seen) {  // the paths of one row stand together
      for (int64_t id = 0; id < V; ++id) check(row[id]);
      likely = likely_tokens(row, V, sampling);
      if (likely.empty())
        throw Error("decoding: the model gives every token probability 0; its weights or its input are not finite");
      row_seen = row_of[p];
    }
    const auto token = draw(likely, paths[p].random);
    picks.push_back({token, row[token]});
  }
  return picks;
}

/// Greedy search, and sampling.
std::vector<Hypotheses> write_paths(Stepper& stepper, Tensor ids_BT, const std::vector<int64_t>& limits,
                                    const TextIds& ids, const SearchOptions& options, Forward& run) {
  Rows rows(stepper, run, ids_BT);
  const auto examples = on_cpu(run.rows_B, torch::kLong);
  const auto each = static_cast<std::size_t>(options.draws() ? options.n_best : 1);
  std::vector<Hypotheses> results(limits.size(), Hypotheses(each));
  std::vector<Path> paths;
  std::vector<int64_t> row_of;  // the row that a path reads: at first one for all of an example
  for (std::size_t b = 0; b < limits.size(); ++b)
    for (std::size_t n = 0; n < each; ++n) {
      const auto example = static_cast<uint64_t>(examples.const_data_ptr<int64_t>()[b]);
      paths.push_back({b, n, {}, 0, Random::stream(static_cast<uint64_t>(options.seed), {example, n})});
      row_of.push_back(static_cast<int64_t>(b));
    }
  for (int64_t length = 0; !paths.empty(); ++length) {
    std::vector<bool> last;
    for (const auto& path : paths) last.push_back(length == limits[path.example]);
    const bool all_end =
        ids.eos < 0 && std::find(last.begin(), last.end(), false) == last.end();  // nothing is left to be weighed
    const auto log_p_RV = all_end ? Tensor() : log_probabilities(stepper.step(ids_BT, run), ids);
    const auto picks = all_end           ? std::vector<Pick>(paths.size(), {ids.eos, 0})
                       : options.draws() ? drawn(log_p_RV, ids, last, row_of, paths, options)
                                         : most_probable(log_p_RV, ids, last);
    std::vector<int64_t> from, next;
    std::vector<Path> left;
    for (std::size_t p = 0; p < paths.size(); ++p) {
      auto& path = paths[p];
      path.log_p += picks[p].log_p;
      if (picks[p].token == ids.eos) {
        results[path.example][path.number] = finished(std::move(path.ids), path.log_p, options.length_penalty);
        continue;
      }
      path.ids.push_back(picks[p].token);
      from.push_back(row_of[p]);
      next.push_back(picks[p].token);
      left.push_back(std::move(path));
    }
    paths = std::move(left);
    row_of.resize(paths.size());
    std::iota(row_of.begin(), row_of.end(), 0);
    rows.become(from);
    ids_BT = rows.column(next);
  }
  return results;
}

/// The `count` largest of each row, on the CPU, in double; where equals compete for the last place, the lower index
/// wins.
std::pair<Tensor, Tensor> largest(const Tensor& x_RV, int64_t count) {
  const auto all = x_RV.size(1);
  auto [value, index] = x_RV.topk(std::min(count + 1, all), -1);
  value = on_cpu(value, torch::kFloat64);
  if (count >= all) return {value, on_cpu(index, torch::kLong)};
  if (value.select(1, count).eq(value.select(1, count - 1)).any().item<bool>()) {
    std::tie(value, index) = x_RV.sort(/*stable=*/true, -1, /*descending=*/true);
    value = on_cpu(value.narrow(1, 0, count), torch::kFloat64);
  }
  return {value.narrow(1, 0, count).contiguous(), on_cpu(index.narrow(1, 0, count), torch::kLong)};
}

struct Live {
  std::vector<int64_t> ids;
  double log_p = 0;
};

struct Candidate {
  double log_p;
  int64_t parent, token;
  bool operator<(const Candidate& other) const {  // the better first
    return std::tie(other.log_p, parent, token) < std::tie(log_p, other.parent, other.token);
  }
};

/// What is known of one example.
struct Beam {
  std::size_t example = 0;
  int64_t limit = 0;
  std::vector<Live> live;  // the most probable first
  Hypotheses best;         // at most n_best, the best first

  void finish(Hypothesis hypothesis, int64_t n_best) {
    const auto place = std::upper_bound(best.begin(), best.end(), hypothesis,
                                        [](const auto& a, const auto& b) { return a.score > b.score; });
    best.insert(place, std::move(hypothesis));  // after its equals
    if (static_cast<int64_t>(best.size()) > n_best) best.pop_back();
  }

  bool ended(const SearchOptions& options) const {
    if (live.empty()) return true;
    if (static_cast<int64_t>(best.size()) < options.n_best) return false;
    return live.front().log_p / length_divisor(limit + 1, options.length_penalty) <= best.back().score;
  }
};

std::vector<Hypotheses> beam_search(Stepper& stepper, Tensor ids_BT, const std::vector<int64_t>& limits,
                                    const TextIds& ids, const SearchOptions& options, Forward& run) {
  Rows rows(stepper, run, ids_BT);
  std::vector<Hypotheses> results(limits.size());
  std::vector<Beam> beams(limits.size());
  for (std::size_t b = 0; b < beams.size(); ++b) {
    beams[b].example = b;
    beams[b].limit = limits[b];
    beams[b].live.emplace_back();
  }
  for (int64_t length = 0; !beams.empty(); ++length) {
    const auto log_p_RV = log_probabilities(stepper.step(ids_BT, run), ids);
    const auto [values, indices] = largest(log_p_RV, options.beam);
    const auto eos_values = on_cpu(log_p_RV.select(1, ids.eos), torch::kFloat64);
    const auto* value = values.const_data_ptr<double>();
    const auto* index = indices.const_data_ptr<int64_t>();
    const auto* eos = eos_values.const_data_ptr<double>();
    const auto width = values.size(1);

    std::vector<int64_t> from, next;
    std::vector<Beam> left;
    int64_t row = 0;  // the first row of the example
    for (auto& beam : beams) {
      const auto count = static_cast<int64_t>(beam.live.size());
      std::vector<Candidate> candidates;
      for (int64_t parent = 0; parent < count; ++parent) {
        const auto before = beam.live[static_cast<std::size_t>(parent)].log_p;
        check(value[(row + parent) * width]);
        if (length == beam.limit) {
          candidates.push_back({before + eos[row + parent], parent, ids.eos});
          continue;
        }
        for (int64_t i = (row + parent) * width; i < (row + parent + 1) * width; ++i)
          if (std::isfinite(value[i])) candidates.push_back({before + value[i], parent, index[i]});
      }
      std::sort(candidates.begin(), candidates.end());
      if (static_cast<int64_t>(candidates.size()) > options.beam)
        candidates.resize(static_cast<std::size_t>(options.beam));

      std::vector<Live> live;
      std::vector<int64_t> from_here, next_here;
      for (const auto& candidate : candidates) {
        auto text = beam.live[static_cast<std::size_t>(candidate.parent)].ids;
        if (candidate.token == ids.eos) {
          beam.finish(finished(std::move(text), candidate.log_p, options.length_penalty), options.n_best);
          continue;
        }
        text.push_back(candidate.token);
        live.push_back({std::move(text), candidate.log_p});
        from_here.push_back(row + candidate.parent);
        next_here.push_back(candidate.token);
      }
      row += count;
      beam.live = std::move(live);
      if (beam.ended(options)) {
        results[beam.example] = std::move(beam.best);
        continue;
      }
      from.insert(from.end(), from_here.begin(), from_here.end());
      next.insert(next.end(), next_here.begin(), next_here.end());
      left.push_back(std::move(beam));
    }
    beams = std::move(left);
    rows.become(from);
    ids_BT = rows.column(next);
  }
  return results;
}

std::vector<int64_t> lengths_of(const Tensor& ids_BS, const Tensor& mask_BS) {
  if (!mask_BS.defined()) return std::vector<int64_t>(static_cast<std::size_t>(ids_BS.size(0)), ids_BS.size(1));
  const auto sums = on_cpu(mask_BS.to(torch::kLong).sum(1), torch::kLong);
  const auto* data = sums.const_data_ptr<int64_t>();
  return std::vector<int64_t>(data, data + sums.numel());
}

}  // namespace

void SearchOptions::describe(Fields& fields) {
  fields.add("beam", beam, "hypotheses kept for each example").at_least(1).means("1: greedy");
  fields
      .add("length_penalty", length_penalty, "alpha: scores are log-probabilities divided by ((5 + length) / 6)^alpha")
      .at_least(0)
      .means("0: log-probabilities");
  fields
      .add("temperature", temperature,
           "draws outputs instead: divides the logits before a token is drawn; beam counts for nothing then")
      .at_least(0)
      .means("0: the most probable output is looked for");
  fields.add("top_k", top_k, "draws from the k most probable tokens").at_least(0).means("0: from all");
  fields.add("top_p", top_p, "draws from the fewest most probable tokens whose probabilities sum to p")
      .above(0)
      .at_most(1)
      .means("1: from all");
  fields.add("seed", seed, "of the draws; each example and each of its outputs has a generator of its own").at_least(0);
  fields.add("prefix", prefix, "text that every output begins with; it counts neither for max_length nor for scores")
      .means("empty: none");
  fields.add("n_best", n_best, "outputs for each example").at_least(1);
  fields.add("max_length", max_length, "longest output")
      .at_least(0)
      .unit("tokens")
      .means("0: from the source's length");
  fields
      .add("max_length_factor", max_length_factor,
           "longest output: this times the source's length, and max_length_extra")
      .at_least(0);
  fields
      .add("max_length_extra", max_length_extra,
           "longest output: tokens beyond max_length_factor times the source's length")
      .at_least(0)
      .unit("tokens");
}

void SearchOptions::rules(Problems& problems) const {
  if (!draws() && (top_k > 0 || top_p < 1))
    problems.add(top_k > 0 ? "top_k" : "top_p",
                 "expected a temperature above 0 beside it, since it says from what is drawn; got temperature 0");
  if (!draws() && n_best > beam)
    problems.add("n_best", "expected at most beam (" + std::to_string(beam) + "), got " + std::to_string(n_best));
}

int64_t SearchOptions::limit(int64_t source_length, int64_t model_limit) const {
  if (max_length > 0) return std::min(max_length, model_limit);
  const auto length =
      std::floor(max_length_factor * static_cast<double>(source_length)) + static_cast<double>(max_length_extra);
  return length < static_cast<double>(model_limit) ? static_cast<int64_t>(length) : model_limit;
}

double length_divisor(int64_t length, double alpha) {
  return std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
}

std::vector<Hypotheses> search(Stepper& stepper, const Tensor& first_BT, const std::vector<int64_t>& limits,
                               const TextIds& ids, const SearchOptions& options, Forward& run) {
  if (first_BT.dim() != 2 || first_BT.size(0) != static_cast<int64_t>(limits.size()))
    throw wrong_shape("search", "ids [" + std::to_string(limits.size()) + ", T]", first_BT);
  if (limits.empty()) return {};
  torch::NoGradGuard no_grad;
  if (options.draws() || options.beam == 1) return write_paths(stepper, first_BT, limits, ids, options, run);
  if (ids.eos < 0)
    throw UsageError(
        "search: the vocabulary has no end of text, without which texts of a beam can't be compared; expected beam 1 "
        "or a "
        "temperature above 0, got beam " +
        std::to_string(options.beam));
  return beam_search(stepper, first_BT, limits, ids, options, run);
}

std::vector<Hypotheses> search(Model& model, const Batch& batch, const TextIds& ids, const SearchOptions& options,
                               Forward& run) {
  const bool has_source = batch.source_BS.defined(), has_beginning = batch.target_BT.defined();
  const auto B = has_source ? batch.source_BS.size(0) : has_beginning ? batch.target_BT.size(0) : 1;
  if (B == 0) return {};
  if (has_beginning && batch.target_mask_BT.defined() && !batch.target_mask_BT.all().item<bool>())
    throw ShapeError(
        "search: expected beginnings of one length, got padding among them; search those of each length alone");

  const Inference inference(model);
  const auto products = model.autocast();
  Tensor first_BT = has_beginning ? batch.target_BT : Tensor();
  if (ids.bos >= 0) {
    const auto bos_B1 = torch::full({B, 1}, ids.bos, torch::dtype(torch::kLong).device(model.device()));
    first_BT = has_beginning ? torch::cat({bos_B1, first_BT}, 1) : bos_B1;
  }
  if (!first_BT.defined() || first_BT.size(1) == 0)
    throw UsageError(
        "search: the vocabulary has no begin of text; expected a beginning of at least one token, got none");
  const auto stepper = model.stepper(batch, run);
  const auto room = stepper->max_length() - first_BT.size(1);  // the last token is read before its eos is weighed
  if (room < 0)
    throw ShapeError("search: expected a beginning of at most " +
                     std::to_string(stepper->max_length() - (ids.bos >= 0)) + " tokens, got " +
                     std::to_string(first_BT.size(1) - (ids.bos >= 0)) + "; raise model.embedding.max_length");
  const auto lengths = has_source ? lengths_of(batch.source_BS, batch.source_mask_BS)
                                  : std::vector<int64_t>(static_cast<std::size_t>(B), 0);
  std::vector<int64_t> limits;
  for (const auto length : lengths) limits.push_back(options.limit(length, room));
  return search(*stepper, first_BT, limits, ids, options, run);
}

}  // namespace headlab
