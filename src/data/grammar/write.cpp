#include <filesystem>
#include <functional>
#include <system_error>

#include "modules/base/atomic_file.h"
#include "src/data/grammar/grammar.h"

namespace headlab::grammar {
namespace {

namespace fs = std::filesystem;

std::string lines(const Split& split, const std::function<std::string(const Example&, std::size_t)>& line) {
  std::string text;
  for (std::size_t i = 0; i < split.examples.size(); ++i) text += line(split.examples[i], i) + "\n";
  return text;
}

std::string alignment(const Example& example) {
  std::string text;
  for (const auto& [source, target] : example.alignment) {
    text += (text.empty() ? "" : " ") + std::to_string(source) + "-" + std::to_string(target);
  }
  return text;
}

/// One sentence; CoNLL-U counts tokens from 1 and the root's head is 0.
std::string conllu(const std::string& text, const GoldSentence& gold, const std::string& id) {
  std::string out = "# sent_id = " + id + "\n# text = " + text + "\n";
  for (std::size_t i = 0; i < gold.tokens.size(); ++i) {
    const GoldToken& token = gold.tokens[i];
    const bool joined = i + 1 < gold.tokens.size() && !gold.tokens[i + 1].space_before;
    const std::string fields[] = {std::to_string(i + 1),
                                  token.form,
                                  token.lemma,
                                  token.pos,
                                  "_",
                                  token.features,
                                  std::to_string(token.head + 1),
                                  token.relation,
                                  "_",
                                  joined ? "SpaceAfter=No" : "_"};
    for (const std::string& field : fields) out += (&field == fields ? "" : "\t") + field;
    out += "\n";
  }
  return out;
}

std::string span(const Span& s) { return "[" + std::to_string(s.first) + ", " + std::to_string(s.last) + "]"; }

std::string coreference(const Example& example) {
  static const char* const kinds[] = {"personal", "possessive", "relative"};
  std::string text = "{\"pronouns\": [";
  for (const Pronoun& p : example.pronouns) {
    if (&p != &example.pronouns.front()) text += ", ";
    text += std::string("{\"kind\": \"") + kinds[static_cast<std::size_t>(p.kind)] +
            "\", \"source\": " + std::to_string(p.source) + ", \"target\": " + std::to_string(p.target) +
            ", \"source_antecedent\": " + span(p.source_antecedent) +
            ", \"target_antecedent\": " + span(p.target_antecedent) + ", \"gender\": \"" + p.gender +
            "\", \"number\": \"" + (p.plural ? "plural" : "singular") + "\", \"label\": \"" + p.label + "\"}";
  }
  return text + "]}";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

void write(const Corpus& corpus, const std::string& directory) {
  const fs::path folder(directory);
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw_file_error(folder, "cannot be made", problem.value());
  for (const Split& split : corpus.splits) {
    const auto put = [&](const std::string& ending,
                         const std::function<std::string(const Example&, std::size_t)>& line) {
      write_file_atomically(folder / (split.name + ending), lines(split, line));
    };
    const auto id = [&](std::size_t i) { return split.name + "-" + std::to_string(i + 1); };
    put(".en", [](const Example& e, std::size_t) { return e.source; });
    put(".de", [](const Example& e, std::size_t) { return e.target; });
    put(".align", [](const Example& e, std::size_t) { return alignment(e); });
    put(".en.conllu", [&](const Example& e, std::size_t i) { return conllu(e.source, e.source_gold, id(i)); });
    put(".de.conllu", [&](const Example& e, std::size_t i) { return conllu(e.target, e.target_gold, id(i)); });
    put(".en.ptb", [](const Example& e, std::size_t) { return e.source_gold.brackets; });
    put(".de.ptb", [](const Example& e, std::size_t) { return e.target_gold.brackets; });
    put(".coref.jsonl", [](const Example& e, std::size_t) { return coreference(e); });
    put(".tags", [](const Example& e, std::size_t) { return joined(e.tags); });
  }
  std::string held_out;
  for (const std::string& combination : corpus.held_out) held_out += combination + "\n";
  write_file_atomically(folder / "held_out.txt", held_out);
  const GrammarOptions& o = corpus.options;
  write_file_atomically(folder / "grammar.json",
                        "{\"train\": " + std::to_string(o.train) + ", \"valid\": " + std::to_string(o.valid) +
                            ", \"test\": " + std::to_string(o.test) + ", \"seed\": " + std::to_string(o.seed) +
                            ", \"held_out\": " + std::to_string(o.held_out) +
                            ", \"max_tokens\": " + std::to_string(o.max_tokens) + "}\n");
}

}  // namespace headlab::grammar
