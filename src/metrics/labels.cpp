#include "src/metrics/labels.h"

#include <algorithm>
#include <map>

#include "modules/base/error.h"

namespace headlab {
namespace {

void check_lengths(const std::string& what, std::size_t gold, std::size_t predicted) {
  if (gold != predicted)
    throw Error(what + ": expected as many predictions as gold labels, got " + std::to_string(predicted) + " and " +
                std::to_string(gold));
}

struct Tag {
  char kind = 'O';
  std::string type;
};

Tag parsed_tag(const std::string& text) {
  const auto dash = text.find('-');
  if (text.empty() || text == "O") return {};
  return dash == std::string::npos ? Tag{text[0], ""} : Tag{text[0], text.substr(dash + 1)};
}

bool ends_after(const Tag& before, const Tag& now) {
  if (before.kind == 'O') return false;
  return before.kind == 'E' || before.kind == 'S' || now.kind == 'B' || now.kind == 'S' || now.kind == 'O' ||
         before.type != now.type;
}

bool starts_at(const Tag& before, const Tag& now) {
  if (now.kind == 'O') return false;
  return now.kind == 'B' || now.kind == 'S' || before.kind == 'O' || before.kind == 'E' || before.kind == 'S' ||
         before.type != now.type;
}

}  // namespace

F1Score f1_score(int64_t right, int64_t predicted, int64_t gold) {
  F1Score score;
  if (predicted > 0) score.precision = static_cast<double>(right) / static_cast<double>(predicted);
  if (gold > 0) score.recall = static_cast<double>(right) / static_cast<double>(gold);
  if (right > 0) score.f1 = 2 * score.precision * score.recall / (score.precision + score.recall);
  return score;
}

double macro_f1(const std::vector<int64_t>& gold, const std::vector<int64_t>& predicted) {
  check_lengths("macro F1", gold.size(), predicted.size());
  if (gold.empty()) throw Error("macro F1: expected at least one label, got none");
  struct Counts {
    int64_t right = 0, predicted = 0, gold = 0;
  };
  std::map<int64_t, Counts> classes;
  for (std::size_t i = 0; i < gold.size(); ++i) {
    ++classes[gold[i]].gold;
    ++classes[predicted[i]].predicted;
    classes[gold[i]].right += gold[i] == predicted[i];
  }
  double sum = 0;
  for (const auto& [label, counts] : classes) sum += f1_score(counts.right, counts.predicted, counts.gold).f1;
  return sum / static_cast<double>(classes.size());
}

std::vector<Entity> entities_of(const std::vector<std::string>& tags) {
  std::vector<Entity> entities;
  Tag before;
  bool open = false;
  for (std::size_t i = 0; i <= tags.size(); ++i) {
    const auto now = i < tags.size() ? parsed_tag(tags[i]) : Tag{};
    if (open && ends_after(before, now)) {
      entities.back().last = static_cast<int64_t>(i) - 1;
      open = false;
    }
    if (starts_at(before, now)) {
      entities.push_back({now.type, static_cast<int64_t>(i), static_cast<int64_t>(i)});
      open = true;
    }
    before = now;
  }
  return entities;
}

F1Score entity_f1(const std::vector<std::vector<std::string>>& gold,
                  const std::vector<std::vector<std::string>>& predicted) {
  check_lengths("entity F1", gold.size(), predicted.size());
  int64_t right = 0, found = 0, there = 0;
  for (std::size_t i = 0; i < gold.size(); ++i) {
    check_lengths("entity F1, sentence " + std::to_string(i + 1), gold[i].size(), predicted[i].size());
    const auto expected = entities_of(gold[i]), got = entities_of(predicted[i]);
    for (const auto& entity : got) right += std::count(expected.begin(), expected.end(), entity);
    found += static_cast<int64_t>(got.size());
    there += static_cast<int64_t>(expected.size());
  }
  return f1_score(right, found, there);
}

}  // namespace headlab
