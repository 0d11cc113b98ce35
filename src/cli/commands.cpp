#include "src/cli/command.h"

namespace headlab {

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"run", "run an experiment from its spec", add_run},
      {"reproduce", "run many specs and print which claims hold", add_reproduce},
      {"check", "check specs; nothing is run", add_check},
      {"list", "what specs can say: slots, their entries and options", add_list},
      {"schema", "the JSON Schema of specs, for editors", add_schema},
      {"show", "a model's layers, heads, parameters, FLOPs and cache", add_show},
      {"report", "write the report page of a run folder again", add_report},
      {"translate", "translate lines from standard input with a run's model", add_translate},
      {"generate", "continue prompts from standard input with a language model's run", add_generate},
      {"data", "write headlab's own data", add_data},
      {"bench", "measure speed: training, and attentions of fewer heads, windows or a router", add_bench},
  };
  return all;
}

}  // namespace headlab
