#include "src/task/role/roles.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "modules/base/random.h"

namespace headlab {
namespace {

/// The places of a text's tokens, special ids left out.
std::vector<int64_t> tokens_of(const RoleText& text) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < text.size(); ++i)
    if (!text.special[static_cast<std::size_t>(i)]) places.push_back(i);
  return places;
}

void allow_all_to_special(const RoleText& text, Looks& looks) {
  for (int64_t i = 0; i < text.size(); ++i)
    if (text.special[static_cast<std::size_t>(i)]) looks.allow_all_to(i);
}

bool is_number(const std::string& token) {
  return std::any_of(token.begin(), token.end(), [](unsigned char c) { return std::isdigit(c); }) &&
         std::all_of(token.begin(), token.end(),
                     [](unsigned char c) { return std::isdigit(c) || c == '.' || c == ',' || c == '-'; });
}

/// One character of UTF-8, or none.
bool is_short(const std::string& token) {
  return std::count_if(token.begin(), token.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }) <= 1;
}

}  // namespace

void NeighboursOptions::describe(Fields& fields) {
  describe_name(fields);
  fields.add("distance", distance, "how far a head looks to each side").at_least(0).unit("tokens");
}

void Neighbours::look(const RoleText& text, const TrainingTexts&, Looks& looks) const {
  for (int64_t i = 0; i < text.size(); ++i)
    for (auto j = std::max<int64_t>(0, i - options_.distance); j <= std::min(text.size() - 1, i + options_.distance);
         ++j)
      looks.allow(i, j);
}

void Syntax::look(const RoleText& text, const TrainingTexts&, Looks& looks) const {
  const auto& tree = *text.tree;
  for (int64_t i = 0; i < text.size(); ++i) {
    const auto word = tree.word_at[static_cast<std::size_t>(i)];
    if (word < 0) {
      looks.allow(i, i);
      continue;
    }
    for (int64_t j = 0; j < text.size(); ++j) {
      const auto other = tree.word_at[static_cast<std::size_t>(j)];
      if (other >= 0 && (other == word || tree.parent[static_cast<std::size_t>(word)] == other ||
                         tree.parent[static_cast<std::size_t>(other)] == word))
        looks.allow(i, j);
    }
  }
}

void MajorRelationsOptions::describe(Fields& fields) {
  describe_name(fields);
  fields.add("relations", relations, "dependency relations whose words are looked at");
}

void MajorRelations::look(const RoleText& text, const TrainingTexts&, Looks& looks) const {
  const auto& tree = *text.tree;
  std::set<int64_t> words;
  for (std::size_t word = 0; word < tree.parent.size(); ++word) {
    if (std::find(options_.relations.begin(), options_.relations.end(), tree.relation[word]) ==
        options_.relations.end())
      continue;
    words.insert(static_cast<int64_t>(word));
    if (tree.parent[word] >= 0) words.insert(tree.parent[word]);
  }
  for (int64_t j = 0; j < text.size(); ++j)
    if (const auto word = tree.word_at[static_cast<std::size_t>(j)]; word < 0 || words.count(word))
      looks.allow_all_to(j);
}

void SeparatorsOptions::describe(Fields& fields) {
  describe_name(fields);
  fields.add("tokens", tokens, "tokens that separate");
}

void Separators::look(const RoleText& text, const TrainingTexts& training, Looks& looks) const {
  allow_all_to_special(text, looks);
  for (const auto i : tokens_of(text)) {
    const auto token = training.token(text.ids[static_cast<std::size_t>(i)]);
    if (std::find(options_.tokens.begin(), options_.tokens.end(), token) != options_.tokens.end())
      looks.allow_all_to(i);
  }
}

void RareOptions::describe(Fields& fields) {
  describe_name(fields);
  fields.add("least", least, "tokens of a text that are looked at, at the least").at_least(1);
  fields.add("share", share, "share of a text's tokens that are looked at").at_least(0).at_most(1);
}

int64_t RareOptions::count(const RoleText& text) const {
  const auto tokens = static_cast<double>(tokens_of(text).size());
  return std::max(least, static_cast<int64_t>(std::floor(share * tokens + 1e-9)));
}

void Rare::look(const RoleText& text, const TrainingTexts& training, Looks& looks) const {
  std::vector<std::pair<int64_t, int64_t>> candidates;  // training texts, place
  for (const auto i : tokens_of(text)) {
    const auto id = text.ids[static_cast<std::size_t>(i)];
    const auto token = training.token(id);
    if (!is_number(token) && !is_short(token)) candidates.emplace_back(training.with(id), i);
  }
  std::sort(candidates.begin(), candidates.end());
  const auto count = std::min(options_.count(text), static_cast<int64_t>(candidates.size()));
  for (int64_t i = 0; i < count; ++i) looks.allow_all_to(candidates[static_cast<std::size_t>(i)].second);
}

void RandomRoleOptions::describe(Fields& fields) {
  RareOptions::describe(fields);
  fields.add("seed", seed, "of the draws").at_least(0);
}

void RandomRole::look(const RoleText& text, const TrainingTexts&, Looks& looks) const {
  const auto places = tokens_of(text);
  std::string words;  // by the text itself, so that the parts of the data draw by themselves
  for (const auto id : text.ids) words += std::to_string(id) + " ";
  auto random = Random::stream(static_cast<uint64_t>(options_.seed),
                               {text_hash("random role"), text_hash(words), static_cast<uint64_t>(text.number)});
  const auto count = std::min(options_.count(text), static_cast<int64_t>(places.size()));
  for (const auto i : random.sample(static_cast<int64_t>(places.size()), count))
    looks.allow_all_to(places[static_cast<std::size_t>(i)]);
}

}  // namespace headlab
