#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace headlab {

/// The page that a person reads after a run: one HTML document that opens offline, in a browser or in print. Question
/// and verdicts come first; then results, curves, head maps, every head in a table, what masking sets of heads does,
/// pruning curves, samples side by side, cost, and how to repeat it. A part without results is left out. All text is
/// escaped.
///
/// `results` is results.json. Its stages are shown in their order, hence ordered_json; all keys may be missing:
///
///   name, question, id, label (of a sweep), command, seed, seconds
///   data     anything: what the task says of its data
///   expect   [{"claim", "that", "relation": "at_least" | "at_most" | "above" | "below" | "equals", "bound", "within",
///              "left", "right", "holds"}]
///   stages   {"<name>": {"type": ..., "wall_seconds", ...}}, by type:
///     train     "steps", "tokens", "seconds", "tokens_per_s", "loss", "valid": {"<metric>": value}
///     evaluate  "split", "metrics": {"bleu": ...}, "signature": {"bleu": "..."}, "parameters", "heads",
///               "samples": [{"source", "reference", "hypothesis"}]
///     score     "method", "heads": {"enc.self.0.3": 0.12, ...}
///     ablate    "metric", "baseline", "heads": {"enc.self.0.3": {"<metric>": value, "delta": change}},
///               "sets": [{"name", "heads": [...], "<metric>": value, "delta": change}]
///     measure   "heads": {"enc.self.0.3": {"role": "positional -1", "attention": [base64]}}, "texts": [{"source",
///     "target"}] prune     "removed": [...], "kept": {"enc.self": [[0, 3], ...]}, "heads_before", "heads_after",
///               "parameters_before", "parameters_after"
///     mask      "masked": [...], "heads_before", "heads_after"
///     curve     "metric", "scores", "model", "scope", "stacks", "highest", "points": [{"fraction", "heads_kept",
///               "kept_by_stack": {"enc.self": 9}, "value", "random": {"mean", "low", "high", "values"}}]
///     repeat    "runs": [{"<stage>": {...}}]: the same stages with other seeds
///   Of other types every plain value is shown.
///
/// `metrics` are the rows of metrics.jsonl: {"stage", "step", "loss", "lr", "grad_norm", "valid": {"<metric>": value}};
/// those of a repetition have the stage "<repeat>-<i>/<stage>". `spec` is the resolved spec, `environment` what ran it.
std::string report_html(const nlohmann::ordered_json& results, const std::vector<nlohmann::json>& metrics,
                        const nlohmann::ordered_json& spec, const nlohmann::ordered_json& environment);

}  // namespace headlab
