#include "src/report/report.h"

#include <nlohmann/json.hpp>

#include "src/report/page.h"
#include "src/report/sections.h"

namespace headlab {

using namespace report;

std::string report_html(const nlohmann::ordered_json& results, const std::vector<nlohmann::json>& metrics,
                        const nlohmann::ordered_json& spec, const nlohmann::ordered_json& environment) {
  Run run(results.is_object() ? results : member(results, ""), metrics, spec, environment);
  auto heads = collect_heads(run);
  std::vector<PagePart> parts{{"results", "Results", results_table(run)},
                              {"pruning", "Heads kept against quality", pruning_curves(run)},
                              {"curves", "Training", curves(run)},
                              {"maps", "Head maps", head_maps(heads)},
                              {"heads", "Heads one by one", heads_table(heads) + attention_data(run)},
                              {"sets", "Sets of heads", sets_tables(run)},
                              {"samples", "Samples", samples(run)},
                              {"cost", "Cost", cost(run)},
                              {"data", "Data", facts(member(run.results, "data"))},
                              {"other", "Other stages", other_stages(run)},
                              {"repeat", "How to repeat it", repetition(run)}};
  return page_of_parts(text_of(run.results, "name"), text_of(run.results, "question"), head_of_page(run), parts);
}

}  // namespace headlab
