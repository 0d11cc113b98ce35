#include "src/metrics/names.h"

#include <algorithm>

namespace headlab {
namespace {

const std::vector<MetricName>& known_metrics() {
  static const std::vector<MetricName> all{{"bleu", "BLEU", 1, false},
                                           {"chrf", "chrF", 1, false},
                                           {"loss", "loss", 3, true},
                                           {"nll", "loss without smoothing", 3, true},
                                           {"perplexity", "perplexity", 2, true},
                                           {"word_perplexity", "perplexity per word", 2, true},
                                           {"bits_per_character", "bits per character", 3, true},
                                           {"accuracy", "accuracy", 3, false},
                                           {"frame_error", "frame error rate", 4, true},
                                           {"token_error_rate", "token error rate", 3, true},
                                           {"sequence_accuracy", "sequence accuracy", 3, false},
                                           {"macro_f1", "macro F1", 3, false},
                                           {"token_f1", "token F1", 3, false},
                                           {"entity_precision", "entity precision", 3, false},
                                           {"entity_recall", "entity recall", 3, false},
                                           {"entity_f1", "entity F1", 3, false},
                                           {"exact_match", "exact match", 3, false},
                                           {"f1", "F1", 3, false}};
  return all;
}

bool ends_in(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

const MetricName* find_metric(const std::string& name) {
  const auto& all = known_metrics();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& metric) { return metric.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool smaller_is_better(const std::string& metric) {
  const auto* known = find_metric(metric);
  return known ? known->less_is_better : ends_in(metric, "loss") || ends_in(metric, "error");
}

bool MetricNames::has(const std::string& metric) const {
  return std::find(all.begin(), all.end(), metric) != all.end();
}

}  // namespace headlab
