#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/spec/document.h"

namespace headlab {

/// One run of a sweep: the spec with its values set and "sweep" taken out.
struct Variant {
  std::string label;  // "layers=2, seed=1", unique within the sweep; empty for a spec without one
  Document document;
  std::string arm;    // of an experiment with arms: its name
  std::string group;  // the label without the seed: what runs have in common that differ in nothing else
};

/// The runs that a spec's "sweep" asks for; the spec itself where it has none (or null) and no arms.
///
///     "sweep": {"model.encoder.layers": [1, 2], "seed": [1, 2, 3]}      every combination, the last key fastest
///     "sweep": [{"model.width": 64, "model.heads": 4}, {"model.width": 128}]   each as it stands
///
/// Or the arms of an experiment, each with every seed (absent: the spec's own), to be compared with each other:
///
///     "arms": {"full": {}, "half": {"model.encoder.attention.heads": 4}}, "seeds": [1, 2, 3]
///
/// Throws SpecErrors for a sweep or arms that are malformed, empty, repeats a run, or has more than 10,000 runs.
/// Whether the keys and values suit the spec is told by reading each variant: its mistakes have the places within the
/// sweep.
std::vector<Variant> expand(const Document& document);

/// One part of the runs of a sweep, for schedulers: `--part 3/16`.
struct Part {
  std::size_t number = 1, count = 1;  // number from 1 to count
};

/// Throws UsageError for anything but "i/n" with 1 <= i <= n.
Part parse_part(const std::string& text);

/// The runs of that part: each n-th, beginning with the i-th, so that the parts are disjoint and together all.
template <class Run>
std::vector<Run> part(const std::vector<Run>& runs, const Part& part) {
  std::vector<Run> chosen;
  for (std::size_t i = part.number - 1; i < runs.size(); i += part.count) chosen.push_back(runs[i]);
  return chosen;
}

}  // namespace headlab
