#include <filesystem>

#include "src/run/spec.h"
#include "src/spec/mistakes.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/places.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

std::string message_of(const std::string& text) {
  Folder folder;
  const auto path = folder.write("x.json", text).string();
  try {
    load_spec(path, {});
  } catch (const UsageError& error) {
    std::string message = error.what();
    for (auto at = message.find(path); at != std::string::npos; at = message.find(path))
      message.replace(at, path.size(), "x.json");
    return message;
  }
  return "no mistake";
}

std::string model_spec(const std::string& model) {
  return "{\"name\": \"x\",\n\"model\": " + model + ",\n\"stages\": [\"evaluate\"]}";
}

std::string stages_spec(const std::string& stages) {
  return "{\"name\": \"x\",\n\"model\": {\"type\": \"encoder_decoder\"},\n\"stages\": " + stages + "}";
}

std::string more_spec(const std::string& more) {
  return "{\"name\": \"x\",\n\"model\": {\"type\": \"encoder_decoder\"},\n\"stages\": [\"evaluate\"],\n" + more + "}";
}

}  // namespace

TEST_CASE("every spec of experiments/ is sound") {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::in_source("experiments"))) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path());
    CHECK_NOTHROW(load_spec(entry.path().string(), {}, /*find_files=*/false));
    ++count;
  }
  CHECK(count >= 2);
}

TEST_CASE("wrong specs of real runs get these messages, word for word") {
  struct Row {
    std::string text, message;
  };
  const std::vector<Row>
      rows{
          {model_spec(R"({"type": "encoder_decoder", "encoder": {"attention": {"headz": 4}}})"),
           R"(x.json:2:64: model.encoder.attention.headz: unknown key; did you mean "heads"? (accepted: heads, head_width, value_width, project, then, position, weigh, gates, mix)
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 3}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:88: model.encoder.attention.heads: expected a divisor of d_model (16), or a head_width beside it, got 3; nearest d_model: 15, 18
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4, "position": "ropee"}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:103: model.encoder.attention.position: unknown position "ropee"; did you mean "rope"? (exists: none, rope, adarope, alibi, offset, transformer_xl)
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 16, "position": "rope"}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:104: model.encoder.attention.position: rope: expected an even head width, got 1
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "encoder": {"per_layer": [{"layers": [1], "attention": {"head": 4}}]}})"),
           R"(x.json:2:94: model.encoder.per_layer[0].attention.head: unknown key; did you mean "heads"? (accepted: heads, head_width, value_width, project, then, position, weigh, gates, mix)
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "encoder": {"per_layer": [{"layers": [0, 2], "attention": {"heads": 4}}]}})"),
           R"(x.json:2:79: model.encoder.per_layer[0].layers[1]: expected a layer from 0 to 1, got 2
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}, "per_layer": [{"layers": [1], "cross_attention": {"position": "alibi"}}]}})"),
           R"(x.json:2:227: model.decoder.per_layer[0].cross_attention.position: alibi: expected a self-attention; a cross-attention's queries and keys share no positions
1 mistake, nothing was run)"},
          {model_spec(R"({"type": "encoder_decoder", "encoder": {"d_model": 128}})"),
           R"(x.json:2:10: model.embedding.tie: "all" expects one width for source and target, got an encoder of 128 and d_model 256; use "target" or "none"
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "encoder": {"attention": {"position": {"type": "rope", "factor": 2}}}})"),
           R"(x.json:2:103: model.encoder.attention.position.factor: has no effect without a scaling; choose "linear" or "ntk"
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4, "project": {"type": "grouped", "groups": 3}}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:132: model.encoder.attention.project.groups: expected a divisor of heads (4), got 3
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4, "gates": [{"type": "windows", "windows": [1, 2, 3]}]}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:132: model.encoder.attention.gates[0].windows: expected one window, or one for each of 4 heads, got 3
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4, "gates": ["windows"]}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:101: model.encoder.attention.gates[0].windows: required: a list of integers of at least 0 (tokens), keys each head sees, itself included: one number for all heads, or one a head
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4, "gates": ["route_experts"]}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:78: model.encoder.attention.project: the project "experts", the mix "experts" and the gate "route_experts" go together; got project "standard", mix "concatenate" and the gate
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4, "project": "experts", "mix": "experts", "gates": [{"type": "route_experts", "k": 5}]}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:172: model.encoder.attention.gates[0].k: expected at most the number of heads (4), got 5
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4, "project": "experts", "mix": "experts", "gates": ["route_experts", "scalar"]}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:141: model.encoder.attention.gates[0]: gate.route_experts can't stand beside gate.scalar: its heads differ from token to token
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": 4, "gates": [{"type": "hard_concrete", "stretch_low": 0.1}]}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:142: model.encoder.attention.gates[0].stretch_low: expected a number below 0, got 0.1
1 mistake, nothing was run)"},
          {model_spec(
               R"({"type": "encoder_decoder", "d_model": 16, "encoder": {"attention": {"heads": "four"}}, "decoder": {"attention": {"heads": 4}, "cross_attention": {"heads": 4}}})"),
           R"(x.json:2:88: model.encoder.attention.heads: expected an integer of at least 1, got "four"
1 mistake, nothing was run)"},
          {model_spec(R"({"type": "encoder_decoder", "dropout": 1})"),
           R"(x.json:2:49: model.dropout: expected a number in [0, 1), got 1
1 mistake, nothing was run)"},
          {model_spec(R"({"d_model": 16})"),
           R"(x.json:2:10: model: expected a "type", the name of a model (exists: encoder_decoder, decoder_only, encoder_only, frame_encoder, frame_transcriber, frame_ctc)
1 mistake, nothing was run)"},
          {model_spec(R"("transformer")"),
           R"(x.json:2:10: model: unknown model "transformer" (exists: encoder_decoder, decoder_only, encoder_only, frame_encoder, frame_transcriber, frame_ctc)
1 mistake, nothing was run)"},
          {stages_spec(R"([{"train": {"steps": -1}}])"),
           R"(x.json:3:32: stages[0].train.steps: expected an integer of at least 0 (steps), got -1
1 mistake, nothing was run)"},
          {stages_spec(R"([{"evaluate": {"metrics": ["blue"]}}])"),
           R"(x.json:3:38: stages[0].evaluate.metrics[0]: the task translation has no metric "blue"; did you mean "bleu"? (it has: bleu, chrf, loss, perplexity, accuracy)
1 mistake, nothing was run)"},
          {stages_spec(R"(["evaluate", "evaluate"])"),
           R"(x.json:3:24: stages[1].evaluate: two stages are called "evaluate"; give one of them a "name"
1 mistake, nothing was run)"},
          {stages_spec(R"([{"evaluate": {"model": "best"}}])"),
           R"(x.json:3:35: stages[0].evaluate.model: no earlier stage is called "best" (earlier: initial)
1 mistake, nothing was run)"},
          {stages_spec(R"([{"prune": {"scores": "importance", "select": {"fraction": 0.5}}}])"),
           R"(x.json:3:33: stages[0].prune.scores: no earlier stage is called "importance"
1 mistake, nothing was run)"},
          {stages_spec(R"([{"score": {"against": ["importance"]}}])"),
           R"(x.json:3:35: stages[0].score.against[0]: no earlier stage is called "importance"
1 mistake, nothing was run)"},
          {stages_spec(R"([{"prune": {}}])"),
           R"(x.json:3:22: stages[0].prune.heads: expected exactly one way to choose heads (heads, scores, scores_file, random, closed_gates), got 0
1 mistake, nothing was run)"},
          {stages_spec(R"([{"prune": {"heads": ["enc.self.0"]}}])"),
           R"(x.json:3:33: stages[0].prune.heads[0]: enc.self.0: not the name of a head; expected STACK.LAYER.HEAD with STACK one of enc.self, dec.self, dec.cross, for example enc.self.0.3
1 mistake, nothing was run)"},
          {stages_spec(R"([{"prune": {"random": true, "select": {"fraction": "half"}}}])"),
           R"(x.json:3:62: stages[0].prune.select.fraction: expected a number in [0, 1] or null, got "half"
1 mistake, nothing was run)"},
          {stages_spec(R"([{"prune": {"random": true, "select": {"threshold": 0.5}}}])"),
           R"(x.json:3:63: stages[0].prune.select.threshold: random heads have no scores; use fraction or count
1 mistake, nothing was run)"},
          {stages_spec(R"([{"prun": {}}])"),
           R"(x.json:3:13: stages[0]: unknown stage "prun"; did you mean "prune"? (exists: train, average, evaluate, measure, score, ablate, mask, prune, convert, curve, export, repeat)
1 mistake, nothing was run)"},
          {stages_spec(R"([{"train": {}}, {"ablate": {"random": {"sets": 3, "like": "closed"}}}])"),
           R"(x.json:3:69: stages[1].ablate.random.like: no earlier stage is called "closed"
1 mistake, nothing was run)"},
          {stages_spec(R"([{"train": {}}, {"ablate": {"random": {"sets": 3, "like": "train"}}}])"),
           R"(x.json:3:69: stages[1].ablate.random.like: expected the name of a prune stage, got "train", which is of type train
1 mistake, nothing was run)"},
          {stages_spec(R"([{"ablate": {"sets": [{"name": "a", "heads": ["dec.self"]}]}}])"),
           R"(x.json:3:57: stages[0].ablate.sets[0].heads[0]: dec.self: not the name of a head; expected STACK.LAYER.HEAD with STACK one of enc.self, dec.self, dec.cross, for example enc.self.0.3
1 mistake, nothing was run)"},
          {stages_spec(R"([{"train": {"validate_every": 30, "log_every": 50}}])"),
           R"(x.json:3:41: stages[0].train.validate_every: expected a multiple of log_every (50), got 30
1 mistake, nothing was run)"},
          {more_spec(R"("expect": [{"claim": "good", "that": "evaluate.bleu"}])"),
           R"(x.json:4:12: expect[0]: expected a bound: one of at_least, at_most, above, below, equals
1 mistake, nothing was run)"},
          {more_spec(R"("expect": [{"claim": "good", "that": "evaluate.bleu +", "at_least": 3}])"),
           R"(x.json:4:38: expect[0].that: syntax error at character 16: expected a number, a name or "(", got the end
1 mistake, nothing was run)"},
          {more_spec(
               R"("arms": {"plain": {}, "unscaled": {"model.embedding.scale": false}, "scaled": {"model.embedding.scale": true}}, "seeds": [1, 2])"),
           R"(x.json:4:79: arms.scaled: expected a run of its own, got the same as "plain": both come to the same spec
1 mistake, nothing was run)"},
          {more_spec(R"("learning_rate": 0.1)"),
           R"(x.json:4:1: learning_rate: unknown key (accepted: name, question, paper, seed, device, precision, task, tasks, model, stages, sweep, arms, seeds, expect, compare)
1 mistake, nothing was run)"},
          {more_spec(R"("seed": 1, "seed": 2)"),
           R"(x.json:4:12: seed: repeated key; it stands first at line 4, column 1
1 mistake, nothing was run)"},
          {more_spec(R"("precision": "half")"),
           R"(x.json:4:14: precision: expected one of "float32", "float64", "bfloat16", got "half"
1 mistake, nothing was run)"},
          {more_spec(R"("sweep": {"model.d_modl": [1, 2]})"),
           R"(x.json:4:11: model.d_modl: unknown key; did you mean "d_model"? (accepted by encoder_decoder: type, d_model, dropout, dropout_kind, norm, residual, embedding, encoder, decoder)
1 mistake, nothing was run)"},
          {more_spec(R"("task": {"type": "translation", "tokenizer": {"type": "bpee"}})"),
           R"(x.json:4:55: task.tokenizer.type: expected one of "unigram", "bpe", "word", "char", "wordpiece", "byte_bpe", got "bpee"; did you mean "bpe"?
1 mistake, nothing was run)"},
          {more_spec(R"("task": {"type": "translation", "max_length": 0, "tokeniser": {}})"),
           R"(x.json:4:47: task.max_length: expected an integer of at least 1 (tokens), got 0
x.json:4:50: task.tokeniser: unknown key; did you mean "tokenizer"? (accepted by translation: type, data, tokenizer, max_length, roles)
2 mistakes, nothing was run)"},
          {more_spec(R"()"),
           R"(x.json:3:23: syntax error: a comma after the last value
1 mistake, nothing was run)"},
          {R"({"stages": ["evaluate"]})",
           R"(x.json:1:1: name: required: a string, what the run folder is called
1 mistake, nothing was run)"},
          {R"({"name": "a/b", "stages": ["evaluate"]})",
           R"(x.json:1:10: name: expected letters, digits, '-', '_' and '.', since it names a folder; got "a/b"
1 mistake, nothing was run)"},
          {R"({"name": "..", "stages": ["evaluate"]})",
           R"(x.json:1:10: name: expected letters, digits, '-', '_' and '.', since it names a folder; got ".."
1 mistake, nothing was run)"},
          {R"({"name": "x", "stages": [{"evaluate": {"name": "../../y"}}]})",
           R"(x.json:1:48: stages[0].evaluate.name: expected letters, digits, '-', '_' and '.', since it names a folder; got "../../y"
1 mistake, nothing was run)"},
          {R"({"name": "x", "stages": [{"evaluate": {"metrics": ["\u001b[2J"]}}]})",
           R"(x.json:1:52: stages[0].evaluate.metrics[0]: the task translation has no metric "\u001b[2J" (it has: bleu, chrf, loss, perplexity, accuracy)
1 mistake, nothing was run)"},
      };
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK(message_of(row.text) == row.message);
  }
}
