#pragma once

#include <string>
#include <vector>

#include "src/report/run_view.h"

/// Claims and what came of them, as a page begins with.
namespace headlab::report {

/// A claim of one run ("expect" in results.json), or about several ("compare" in experiment.json), which has beside
/// "left", "right" and "holds" also "undecided", "difference", "low", "high" and "differences": as an item of a list,
/// with a word and a sign for its verdict, what was expected and what was measured.
std::string claim_item(const json& claim);

/// The claims of every run of an experiment, each joined over the runs: it holds where it holds in all.
std::vector<json> joined_claims(const std::vector<const json*>& results);

/// "2 of 3 claims hold; for 1 there is not enough evidence."
std::string answer_text(const std::vector<json>& claims);

/// The answer and the list; empty without claims.
std::string claims_html(const std::vector<json>& claims);

}  // namespace headlab::report
