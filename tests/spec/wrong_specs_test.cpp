#include "tests/spec/wrong_specs.h"

#include "tests/catch.h"
#include "tests/spec/toy.h"

using namespace headlab;

namespace {

/// A sound spec but for what is put into its model, and into the spec itself.
std::string with(const std::string& in_model, const std::string& in_spec = "") {
  return "{\"model\": {\"vocabulary\": 9" + (in_model.empty() ? "" : ",\n " + in_model) + "}" +
         (in_spec.empty() ? "" : ",\n " + in_spec) + "}";
}

const std::vector<WrongSpec> wrong_values = {
    // keys
    {with("\"dropuot\": 0.1"),
     {},
     "x.json:2:2: model.dropuot: unknown key; did you mean \"dropout\"? (accepted: vocabulary, dropout, attention)"},
    {with("\"attention\": {\"headz\": 4}"),
     {},
     "x.json:2:16: model.attention.headz: unknown key; did you mean \"heads\"? "
     "(accepted: heads, width, bias, position, gates)"},
    {with("\"zebra\": 1"), {}, "x.json:2:2: model.zebra: unknown key (accepted: vocabulary, dropout, attention)"},
    {with("\"\": 1"), {}, "x.json:2:2: model.\"\": unknown key (accepted: vocabulary, dropout, attention)"},
    {with("\"a.b\\n\": 1"), {}, "x.json:2:2: model.\"a.b\\n\": unknown key (accepted: vocabulary, dropout, attention)"},
    {with("\"DROPOUT\": 0"),
     {},
     "x.json:2:2: model.DROPOUT: unknown key; did you mean \"dropout\"? (accepted: vocabulary, dropout, attention)"},
    {with("\"$schema\": \"x\""),
     {},
     "x.json:2:2: model.$schema: unknown key (accepted: vocabulary, dropout, attention)"},
    {with("\"dropout\": 0,\n \"dropout\": 0.5"),
     {},
     "x.json:3:2: model.dropout: repeated key; it stands first at line 2, column 2"},
    // types
    {with("\"dropout\": \"half\""), {}, "x.json:2:13: model.dropout: expected a number in [0, 1), got \"half\""},
    {with("\"dropout\": null"), {}, "x.json:2:13: model.dropout: expected a number in [0, 1), got null"},
    {with("\"dropout\": [0.1]"), {}, "x.json:2:13: model.dropout: expected a number in [0, 1), got a list"},
    {with("\"attention\": 8"), {}, "x.json:2:15: model.attention: expected an object, got 8"},
    {with("\"attention\": {\"bias\": 1}"), {}, "x.json:2:24: model.attention.bias: expected true or false, got 1"},
    {with("\"attention\": {\"heads\": 2.5}"),
     {},
     "x.json:2:25: model.attention.heads: expected an integer in [1, 64], got 2.5"},
    {with("\"attention\": {\"heads\": 1e30}"),
     {},
     "x.json:2:25: model.attention.heads: expected an integer in [1, 64], got 1e30"},
    {with("\"attention\": {\"heads\": \"8\"}"),
     {},
     "x.json:2:25: model.attention.heads: expected an integer in [1, 64], got \"8\""},
    {with("", "\"name\": 3"), {}, "x.json:2:10: name: expected a string, got 3"},
    {with("", "\"question\": {}"), {}, "x.json:2:14: question: expected a string or null, got an object"},
    {with("", "\"quiet\": \"yes\""), {}, "x.json:2:11: quiet: expected true, false or null, got \"yes\""},
    {with("", "\"seeds\": 1"), {}, "x.json:2:11: seeds: expected a list of integers of at least 0, got 1"},
    {with("", "\"stages\": {}"), {}, "x.json:2:12: stages: expected a list, each item a stage, got an object"},
    {with("", "\"expect\": [3]"), {}, "x.json:2:13: expect[0]: expected an object, got 3"},
    {"[1]", {}, "x.json:1:1: expected an object, got a list"},
    // ranges
    {with("\"dropout\": 1"), {}, "x.json:2:13: model.dropout: expected a number in [0, 1), got 1"},
    {with("\"dropout\": -1e-3"), {}, "x.json:2:13: model.dropout: expected a number in [0, 1), got -1e-3"},
    {with("\"attention\": {\"heads\": 0}"),
     {},
     "x.json:2:25: model.attention.heads: expected an integer in [1, 64], got 0"},
    {with("\"attention\": {\"width\": 0}"),
     {},
     "x.json:2:25: model.attention.width: expected an integer of at least 1, got 0"},
    {with("", "\"seeds\": [1, -2]"), {}, "x.json:2:15: seeds[1]: expected an integer of at least 0, got -2"},
    {with("", "\"languages\": [\"en\", \"dee\"]"),
     {},
     "x.json:2:22: languages[1]: expected one of \"en\", \"de\", \"fr\", got \"dee\"; did you mean \"de\"?"},
    {with("", "\"stages\": [{\"train\": {\"optimizer\": \"adm\"}}]"),
     {},
     "x.json:2:37: stages[0].train.optimizer: expected one of \"adamw\", \"sgd\", got \"adm\"; did you mean "
     "\"adamw\"?"},
    {with("", "\"stages\": [{\"train\": {\"steps\": 0}}]"),
     {},
     "x.json:2:33: stages[0].train.steps: expected an integer of at least 1 (steps), got 0"},
    // required
    {"{}", {}, "x.json:1:1: model.vocabulary: required: an integer of at least 2, tokens that it knows"},
    {"{\"model\": {}}", {}, "x.json:1:11: model.vocabulary: required: an integer of at least 2, tokens that it knows"},
    {with("\"attention\": {\"position\": \"table\"}"),
     {},
     "x.json:2:28: model.attention.position.length: required: an integer of at least 1, longest sequence"},
    // choices
    {with("\"attention\": {\"position\": \"ropee\"}"),
     {},
     "x.json:2:28: model.attention.position: unknown position \"ropee\"; did you mean \"rope\"? "
     "(exists: none, rope, table)"},
    {with("\"attention\": {\"position\": {\"type\": \"alibi\"}}"),
     {},
     "x.json:2:37: model.attention.position.type: unknown position \"alibi\" (exists: none, rope, table)"},
    {with("\"attention\": {\"position\": {\"base\": 10}}"),
     {},
     "x.json:2:28: model.attention.position: expected a \"type\", the name of a position (exists: none, rope, table)"},
    {with("\"attention\": {\"position\": {\"type\": 3}}"),
     {},
     "x.json:2:37: model.attention.position.type: expected the name of a position, got 3"},
    {with("\"attention\": {\"position\": true}"),
     {},
     "x.json:2:28: model.attention.position: expected the name of a position, or an object with its \"type\", got "
     "true"},
    {with("\"attention\": {\"position\": {\"type\": \"none\", \"base\": 3}}"),
     {},
     "x.json:2:45: model.attention.position.base: unknown key (\"none\" has no options)"},
    {with("\"attention\": {\"position\": {\"type\": \"rope\", \"bas\": 3}}"),
     {},
     "x.json:2:45: model.attention.position.bas: unknown key; did you mean \"base\"? "
     "(accepted by rope: type, base, fraction)"},
    {with("\"attention\": {\"gates\": [\"none\", \"rop\"]}"),
     {},
     "x.json:2:34: model.attention.gates[1]: unknown position \"rop\"; did you mean \"rope\"? (exists: none, rope, "
     "table)"},
    {with("", "\"stages\": [{\"prunne\": {}}]"),
     {},
     "x.json:2:14: stages[0]: unknown stage \"prunne\"; did you mean \"prune\"? (exists: train, prune, evaluate)"},
    {with("", "\"stages\": [\"evaluate\", {\"prune\": {\"fraction\": \"half\"}}]"),
     {},
     "x.json:2:48: stages[1].prune.fraction: expected a number in [0, 1], got \"half\""},
    {with("", "\"stages\": [{\"train\": {}, \"prune\": {}}]"),
     {},
     "x.json:2:13: stages[0]: expected exactly one key, the name of a stage (exists: train, prune, evaluate), "
     "got \"train\", \"prune\""},
    {with("", "\"stages\": [{}]"),
     {},
     "x.json:2:13: stages[0]: expected exactly one key, the name of a stage (exists: train, prune, evaluate), got "
     "none"},
    {with("", "\"stages\": [{\"prune\": 0.5}]"),
     {},
     "x.json:2:23: stages[0].prune: expected an object with the options of prune, got 0.5"},
    {with("", "\"stages\": [3]"),
     {},
     "x.json:2:13: stages[0]: expected a stage: {\"name\": {its options}}, or the name alone, got 3"},
    // rules
    {with("\"attention\": {\"width\": 100}"),
     {},
     "x.json:2:25: model.attention.width: expected a multiple of heads (8), got 100"},
    {with("\"attention\": {\"heads\": 7}"),
     {},
     "x.json:2:15: model.attention.width: expected a multiple of heads (7), got 128"},
    {with("", "\"stages\": [{\"train\": {\"steps\": 3, \"warmup\": 4}}]"),
     {},
     "x.json:2:46: stages[0].train.warmup: expected at most steps (3), got 4"},
    {with("", "\"stages\": [{\"train\": {\"betas\": []}}]"),
     {},
     "x.json:2:33: stages[0].train.betas: expected 2 values, got 0"},
    // expectations
    {with("", "\"expect\": [{\"that\": \"a.b +\", \"above\": 3}]"),
     {},
     "x.json:2:22: expect[0].that: syntax error at character 6: expected a number, a name or \"(\", got the end"},
    {with("", "\"expect\": [{\"that\": \"a\", \"above\": \"sqrt(b)\"}]"),
     {},
     "x.json:2:36: expect[0].above: syntax error at character 1: unknown function \"sqrt\" "
     "(exists: abs, max, mean, min)"},
    {with("", "\"expect\": [{\"that\": \"a\"}]"),
     {},
     "x.json:2:13: expect[0]: expected a bound: one of at_least, at_most, above, below, equals"},
    {with("", "\"expect\": [{\"that\": \"a\", \"above\": 1, \"below\": \"b\"}]"),
     {},
     "x.json:2:48: expect[0].below: expected one bound, got above and below"},
    {with("", "\"expect\": [{\"that\": \"a\", \"above\": 1, \"within\": 1}]"),
     {},
     "x.json:2:49: expect[0].within: goes with equals only"},
    {with("", "\"expect\": [{\"that\": \"a\", \"above\": [1]}]"),
     {},
     "x.json:2:36: expect[0].above: expected a string, a number or null, got a list"},
};

const std::vector<WrongSpec> wrong_syntax = {
    {"", {}, "x.json:1:1: syntax error: expected a value, got the end of the text"},
    {"  \n ", {}, "x.json:2:2: syntax error: expected a value, got the end of the text"},
    {"{\"a\": 1,}", {}, "x.json:1:8: syntax error: a comma after the last value"},
    {"{\"a\": [1,\n 2,]}", {}, "x.json:2:3: syntax error: a comma after the last item"},
    {"{\"a\" 1}", {}, "x.json:1:6: syntax error: expected \":\" after the key \"a\", got \"1\""},
    {"{\"a\": 1 \"b\": 2}",
     {},
     "x.json:1:9: syntax error: expected \",\" or \"}\" after the value of \"a\", got a string"},
    {"{\"a\": [1 2]}", {}, "x.json:1:10: syntax error: expected \",\" or \"]\" after an item of a list, got \"2\""},
    {"{a: 1}", {}, "x.json:1:2: syntax error: expected a key in double quotes, got \"a\""},
    {"{'a': 1}", {}, "x.json:1:2: syntax error: expected a key in double quotes, got \"'\""},
    {"{\"a\": 'x'}", {}, "x.json:1:7: syntax error: strings stand in double quotes"},
    {"{\"a\": True}", {}, "x.json:1:7: syntax error: expected a value, got \"True\"; did you mean true?"},
    {"{\"a\": yes}", {}, "x.json:1:7: syntax error: expected a value, got \"yes\"; strings stand in double quotes"},
    {"{\"a\": // why\n 1}", {}, "x.json:1:7: syntax error: comments are not allowed; delete it"},
    {"/* a */ {}", {}, "x.json:1:1: syntax error: comments are not allowed; delete it"},
    {"{\n# a\n}", {}, "x.json:2:1: syntax error: comments are not allowed; delete it"},
    {"{\"a\": 01}", {}, "x.json:1:7: syntax error: a number does not begin with 0"},
    {"{\"a\": 1.}", {}, "x.json:1:9: syntax error: expected a digit after \".\", got \"}\""},
    {"{\"a\": -}", {}, "x.json:1:8: syntax error: expected a digit after \"-\", got \"}\""},
    {"{\"a\": 1e}", {}, "x.json:1:9: syntax error: expected a digit after the exponent's \"e\", got \"}\""},
    {"{\"a\": 12x}", {}, "x.json:1:9: syntax error: expected the end of the number, got \"x\""},
    {"{\"a\": +1}", {}, "x.json:1:7: syntax error: expected a value, got \"+\""},
    {"{\"a\": 1e400}", {}, "x.json:1:7: syntax error: the number is too large"},
    {"{\"a\": NaN}", {}, "x.json:1:7: syntax error: expected a value, got \"NaN\"; strings stand in double quotes"},
    {"{\"ä\": \"b\n\"}", {}, "x.json:1:7: syntax error: the string is not closed on its line"},
    {"{\"ä\": \"b\\q\"}", {}, "x.json:1:9: syntax error: unknown escape \\; for a backslash write \\\\"},
    {"{\"a\": \"\\u12g4\"}", {}, "x.json:1:8: syntax error: \\u takes four hexadecimal digits"},
    {"{\"a\": \"\\ud800\"}", {}, "x.json:1:8: syntax error: half of a surrogate pair"},
    {"{\"a\": \"\t\"}", {}, "x.json:1:8: syntax error: a control character in a string; write \\t for a tab"},
    {"{\"a\": \"\xC3\x28\"}", {}, "x.json:1:8: syntax error: a byte that is not UTF-8"},
    {"{\"a\": {\"b\": 1", {}, "x.json:1:7: syntax error: the object is not closed"},
    {"{\"a\": [1", {}, "x.json:1:7: syntax error: the list is not closed"},
    {"{} {}", {}, "x.json:1:4: syntax error: expected the end of the text after the value, got \"{\""},
    {std::string(102, '['), {}, "x.json:1:102: syntax error: nested deeper than 100"},
};

const std::vector<WrongSpec> wrong_overrides = {
    {with(""), {"model.d_modl=3"}, "--set model.d_modl=3: unknown key (accepted: vocabulary, dropout, attention)"},
    {with(""),
     {"modle.dropout=0"},
     "--set modle.dropout=0: modle: unknown key; did you mean \"model\"? "
     "(accepted: name, question, quiet, seeds, languages, model, stages, sweep, expect)"},
    {with(""), {"model.dropout=half"}, "--set model.dropout=half: expected a number in [0, 1), got \"half\""},
    {with(""),
     {"model={\"dropout\": 2, \"vocabulary\": 4}"},
     "--set model={\"dropout\": 2, \"vocabulary\": 4}: model.dropout: expected a number in [0, 1), got 2"},
    {with(""), {"model.dropout"}, "--set model.dropout: expected key.path=value"},
    {with(""), {"=3"}, "--set =3: expected key.path=value"},
    {with(""), {""}, "--set : expected key.path=value"},
    {with(""),
     {"model..x=3"},
     "--set model..x=3: expected a key path such as model.width or stages[0].train.steps, got \"model..x\""},
    {with(""),
     {"seeds[x]=3"},
     "--set seeds[x]=3: expected a key path such as model.width or stages[0].train.steps, got \"seeds[x]\""},
    {with(""), {"seeds[0]=3"}, "--set seeds[0]=3: seeds is not in the spec; set the whole list"},
    {with("", "\"seeds\": [1]"), {"seeds[2]=3"}, "--set seeds[2]=3: seeds has 1 item; the next is seeds[1]"},
    {with(""), {"model.vocabulary.x=3"}, "--set model.vocabulary.x=3: model.vocabulary is 9, which has no keys"},
    {with(""), {"model[0]=3"}, "--set model[0]=3: model is an object, not a list"},
    {with(""), {"seeds=[1,"}, "--set seeds=[1,: syntax error: expected a value, got the end of the text"},
    {with("", "\"stages\": [{\"train\": {}}]"),
     {"stages[0].train.steps=7"},
     "x.json:2:23: stages[0].train.warmup: expected at most steps (7), got 10"},
    {with("", "\"stages\": [{\"train\": {}}]"),
     {"stages[0].prune.fraction=1"},
     "x.json:2:13: stages[0]: expected exactly one key, the name of a stage (exists: train, prune, evaluate), "
     "got \"train\", \"prune\""},
    {with(""),
     {"model.attention.position.base=3"},
     "--set model.attention.position.base=3: unknown key (\"none\" has no options)"},
    {with(""), {"name=\xFF"}, "--set name=?: expected UTF-8"},
};

void check(const std::vector<WrongSpec>& rows) {
  for (const WrongSpec& row : rows) {
    INFO(row.text);
    CHECK(refusal<toy::ToySpec>(row.text, row.overrides) == whole_message(row));
  }
}

}  // namespace

TEST_CASE("each wrong value of a spec is refused with its place, path, what was expected and the way out") {
  check(wrong_values);
}

TEST_CASE("each syntax error is refused with its place") { check(wrong_syntax); }

TEST_CASE("each wrong --set is refused under its own name") { check(wrong_overrides); }

TEST_CASE("all mistakes of a spec are told at once, in the order of their places") {
  std::string text = R"({
  "name": 3,
  "model": {
    "attention": {
      "headz": 4,
      "width": 100
    }
  },
  "stages": [
    {"prune": {"fraction": "half"}}
  ]
})";
  CHECK(refusal<toy::ToySpec>(text, {"seeds=x", "quiet=3"}) ==
        "x.json:2:11: name: expected a string, got 3\n"
        "x.json:3:12: model.vocabulary: required: an integer of at least 2, tokens that it knows\n"
        "x.json:5:7: model.attention.headz: unknown key; did you mean \"heads\"? "
        "(accepted: heads, width, bias, position, gates)\n"
        "x.json:6:16: model.attention.width: expected a multiple of heads (8), got 100\n"
        "x.json:10:28: stages[0].prune.fraction: expected a number in [0, 1], got \"half\"\n"
        "--set seeds=x: expected a list of integers of at least 0, got \"x\"\n"
        "--set quiet=3: expected true, false or null, got 3\n"
        "7 mistakes, nothing was run");
}

TEST_CASE("the rules of a struct are not asked about values that could not be read") {
  // With heads = 0 the rule would divide by zero.
  CHECK(refusal<toy::ToySpec>(with("\"attention\": {\"heads\": 0, \"width\": 100}")) ==
        "x.json:2:25: model.attention.heads: expected an integer in [1, 64], got 0\n1 mistake, nothing was run");
}

TEST_CASE("a very long list of mistakes is cut and counted") {
  std::string list;
  for (int i = 0; i < 60; ++i) list += std::string(i ? "," : "") + "-1";
  std::string message = refusal<toy::ToySpec>(with("", "\"seeds\": [" + list + "]"));
  CHECK_THAT(message, ContainsSubstring("seeds[49]"));
  CHECK_THAT(message, !ContainsSubstring("seeds[50]"));
  CHECK_THAT(message, ContainsSubstring("\n... and 10 more\n60 mistakes, nothing was run"));
}
