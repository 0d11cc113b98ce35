#include "src/task/translation.h"

namespace headlab {

const Tasks& tasks() {
  static const Tasks registry =
      Tasks("task", "data, what a model learns from it, and how well it does")
          .entry<Translation, TranslationOptions>("translation", "source lines to target lines, by a model that generates");
  return registry;
}
const Catalogue& task_catalogue() { return tasks().catalogue(); }

void EvaluateOptions::describe(Fields& fields) {
  fields.add("split", split, "the part of the data").one_of({"train", "valid", "test"});
  fields.add("metrics", metrics, "what is measured").one_of({"bleu", "chrf", "loss", "perplexity", "accuracy"});
  fields.add("search", search, "how text is generated for bleu and chrf");
  fields.add("limit", limit, "the first examples alone").at_least(0).unit("examples").means("0: all");
  fields.add("max_tokens", max_tokens, "tokens of a batch, padding included").at_least(1).unit("tokens");
  fields.add("samples", samples, "outputs to show").at_least(0);
}

bool smaller_is_better(const std::string& metric) { return metric == "loss" || metric == "perplexity"; }

}  // namespace headlab
