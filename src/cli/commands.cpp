#include "src/cli/command.h"

namespace headlab {

void ChosenModel::add_flags(CLI::App& command, const std::string& does) {
  command.add_option("run", run, "a run folder")->required();
  command.add_option("--stage", stage, "the stage whose model " + does + " (the last that left one)");
  command.add_option("--device", device, "cpu, cuda or cuda:N");
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"run", "run an experiment from its spec", add_run,
       "headlab run experiments/quickstart.json\nheadlab run experiments/quickstart.json --set seed=2 --threads "
       "1\nheadlab run experiments/papers/22-few-heads.json --jobs 2 --json > results.json"},
      {"reproduce", "run many specs and print which claims hold", add_reproduce,
       "headlab reproduce experiments/papers --jobs 2\nheadlab reproduce 1905.09418 --out runs/again"},
      {"check", "check specs; nothing is run", add_check,
       "headlab check experiments/quickstart.json experiments/papers/*.json"},
      {"list", "what specs can say: slots, their entries and options", add_list,
       "headlab list\nheadlab list gate\nheadlab list gate.hard_concrete --full"},
      {"schema", "the JSON Schema of specs, for editors", add_schema, "headlab schema > headlab.schema.json"},
      {"show", "a model's layers, heads, parameters, FLOPs and cache", add_show,
       "headlab show experiments/quickstart.json\nheadlab show runs/quickstart/8f3a2c0d11 --stage pruned --lengths 64 "
       "1024"},
      {"unroll", "print what makes a spec's model one of one head a layer, as an arm's settings", add_unroll,
       "headlab unroll experiments/quickstart.json\nheadlab unroll experiments/quickstart.json --set "
       "model.encoder.layers=1"},
      {"report", "write the report page of a run folder again, or one page of several", add_report,
       "headlab report runs/quickstart/8f3a2c0d11\nheadlab report runs/quickstart runs/mine/52c0b1d9e4 --out "
       "both.html"},
      {"translate", "translate lines from standard input with a run's model", add_translate,
       "headlab translate runs/quickstart/8f3a2c0d11 < sentences.txt\necho \"the old woman sees the dog .\" | headlab "
       "translate runs/quickstart/8f3a2c0d11 --n-best 3 --scores"},
      {"transcribe", "write down what is said in sound files with a run's model", add_transcribe,
       "headlab transcribe runs/spoken-digits/52c0b1d9e4 speech-fsdd/7_theo_0.wav\nheadlab transcribe "
       "runs/spoken-digits/52c0b1d9e4 *.wav --beam 8 --json"},
      {"generate", "continue prompts from standard input with a language model's run", add_generate,
       "echo \"to be\" | headlab generate runs/shakespeare/52c0b1d9e4 --temperature 0.8 --max-length 60"},
      {"score", "say how probable texts or translations from standard input are to a run's model", add_score,
       "paste source.txt target.txt | headlab score runs/quickstart/8f3a2c0d11\necho \"to be or not\" | headlab score "
       "runs/shakespeare/52c0b1d9e4 --json"},
      {"data", "write headlab's own data", add_data,
       "headlab data grammar --out data/grammar --train 12000\nheadlab data exercise copy --out data/copy --set "
       "train=1000"},
      {"new", "write the sources, test and spec of a head of your own, to begin with", add_new,
       "headlab new head my_gate --slot gate\nheadlab new head slopes --slot position"},
      {"completion", "print the completion of commands for bash, zsh or fish", add_completion,
       "eval \"$(headlab completion bash)\"\nheadlab completion fish | source"},
      {"bench", "measure speed: training, and attentions of fewer heads, windows or a router", add_bench,
       "headlab bench attention pruned --threads 2\nheadlab bench train --width 256 --steps 20"},
  };
  return all;
}

}  // namespace headlab
