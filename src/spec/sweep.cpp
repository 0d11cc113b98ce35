#include "src/spec/sweep.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/spec/mistakes.h"
#include "src/spec/override.h"
#include "src/spec/path.h"

namespace headlab {

namespace {

constexpr std::size_t most_runs = 10'000;
constexpr std::size_t most_values = 20'000'000;  // of all runs together: each holds a copy of the spec
constexpr std::size_t longest_value = 40;        // of a label, in bytes
const std::vector<std::string> fixed_keys{"name", "sweep", "arms", "seeds", "compare"};  // of the spec as a whole

/// One key of a sweep with the value it has in one run.
struct Setting {
  std::string key;
  Place key_at;
  const Node* value;
  std::size_t number;  // of the value in the list of its key, or of the run in a list of runs
};
using Run = std::vector<Setting>;

std::size_t values_in(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += values_in(item);
  for (const Node::Member& member : node.members) count += values_in(member.value);
  return count;
}

class Expansion {
 public:
  explicit Expansion(const Document& document) : document_(document) {}

  std::vector<Variant> expand() {
    const auto given = [&](const char* key) {
      const Node* node = document_.root().find(key);
      return node && node->kind != Node::Kind::null ? node : nullptr;
    };
    const Node* sweep = given("sweep");
    const Node* arms = given("arms");
    const Node* seeds = given("seeds");
    if (sweep && (arms || seeds))
      add((arms ? arms : seeds)->at, arms ? "arms" : "seeds", "expected a sweep or arms with seeds, got both");
    throw_mistakes(mistakes_);
    if (arms || seeds) return compared(arms, seeds);
    if (!sweep) return {{"", document_, "", ""}};
    std::vector<Run> runs = sweep->kind == Node::Kind::object ? grid(*sweep) : list(*sweep);
    const std::size_t each = values_in(document_.root()) - values_in(*sweep);
    if (runs.size() > most_values / std::max<std::size_t>(each, 1)) {
      add(sweep->at, "sweep",
          "expected a smaller sweep: " + std::to_string(runs.size()) + " runs of a spec with " + std::to_string(each) +
              " values are too many to hold at once");
    }
    throw_mistakes(mistakes_);
    std::vector<Variant> variants = apply(runs, *sweep);
    throw_mistakes(mistakes_);
    return variants;
  }

 private:
  void add(const Place& at, const std::string& path, const std::string& message) {
    mistakes_.push_back({at, path, message});
  }

  void check_key(const Node::Member& member, const std::string& path) {
    std::vector<Step> steps = parse_path(member.key);
    if (member.first) {
      add(member.at, path, "repeated key");
    } else if (steps.empty()) {
      add(member.at, path, "expected a key path such as model.width or stages[0].train.steps");
    } else if (std::count(fixed_keys.begin(), fixed_keys.end(), steps[0].key)) {
      add(member.at, path, "a sweep cannot change " + steps[0].key);
    }
  }

  /// Each arm with each seed, a whole arm after another.
  std::vector<Variant> compared(const Node* arms, const Node* seeds) {
    static const Node none{Node::Kind::object};
    std::vector<std::pair<std::string, const Node*>> sets;
    if (arms && (arms->kind != Node::Kind::object || arms->members.empty())) {
      add(arms->at, "arms",
          "expected an object {name: {key: value}}, got " +
              (arms->members.empty() && arms->kind == Node::Kind::object ? std::string("an empty one") : arms->got()));
    } else if (arms) {
      for (const Node::Member& member : arms->members) {
        const std::string path = key_path("arms", member.key);
        if (member.first) add(member.at, path, "repeated key");
        if (!is_name(member.key))
          add(member.at, path, "expected a name of letters, digits and _, since claims speak of it");
        if (member.value.kind != Node::Kind::object) {
          add(member.value.at, path, "expected an object {key: value}, got " + member.value.got());
          continue;
        }
        for (const Node::Member& setting : member.value.members) {
          check_key(setting, key_path(path, setting.key));
          if (setting.key == "seed")
            add(setting.at, key_path(path, "seed"), "an arm cannot change the seed; use \"seeds\"");
        }
        sets.emplace_back(member.key, &member.value);
      }
    } else {
      sets.emplace_back("", &none);
    }
    if (seeds && (seeds->kind != Node::Kind::list || seeds->items.empty()))
      add(seeds->at, "seeds",
          "expected a list of whole numbers, got " +
              (seeds->kind == Node::Kind::list ? std::string("an empty list") : seeds->got()));
    for (std::size_t i = 0; seeds && i < seeds->items.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (seeds->items[i].text == seeds->items[j].text)
          add(seeds->items[i].at, item_path("seeds", i), "the seed " + seeds->items[i].text + " is there already");
    throw_mistakes(mistakes_);
    const std::size_t count = sets.size() * (seeds ? seeds->items.size() : 1), each = values_in(document_.root());
    if (count > most_runs || count > most_values / std::max<std::size_t>(each, 1)) {
      add(seeds ? seeds->at : arms->at, seeds ? "seeds" : "arms",
          "expected at most " + std::to_string(most_runs) + " runs, and fewer of a large spec; got " +
              std::to_string(count) + " runs of a spec with " + std::to_string(each) + " values");
      throw_mistakes(mistakes_);
    }
    Document base = without(document_, {"arms", "seeds"});
    std::vector<Variant> variants;
    for (const auto& [name, set] : sets) {
      for (std::size_t i = 0; i < (seeds ? seeds->items.size() : 1); ++i) {
        Variant variant{name, base, name, name};
        for (const Node::Member& setting : set->members)
          if (auto mistake = set_value(variant.document, setting.key, setting.at, setting.value))
            mistakes_.push_back(*mistake);
        if (seeds) {
          const Node& seed = seeds->items[i];
          if (auto mistake = set_value(variant.document, "seed", seed.at, seed)) mistakes_.push_back(*mistake);
          variant.label += (name.empty() ? "seed=" : ", seed=") + seed.text;
        }
        variants.push_back(std::move(variant));
      }
    }
    throw_mistakes(mistakes_);
    return variants;
  }

  static bool is_name(const std::string& text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; }) &&
           !std::isdigit(static_cast<unsigned char>(text[0]));
  }

  static Document without(const Document& document, const std::vector<std::string>& keys) {
    Document base = document;
    auto& members = base.root().members;
    const auto gone = [&](const Node::Member& member) {
      return !member.first && std::count(keys.begin(), keys.end(), member.key) > 0;
    };
    members.erase(std::remove_if(members.begin(), members.end(), gone), members.end());
    return base;
  }

  std::vector<Run> grid(const Node& sweep) {
    std::size_t count = 1;
    for (const Node::Member& member : sweep.members) {
      std::string path = key_path("sweep", member.key);
      check_key(member, path);
      if (member.value.kind != Node::Kind::list || member.value.items.empty()) {
        std::string got = member.value.kind == Node::Kind::list ? "an empty list" : member.value.got();
        add(member.value.at, path, "expected a list of values, got " + got);
        return {};
      }
      count = std::min(count * std::min(member.value.items.size(), most_runs + 1), most_runs + 1);
    }
    if (sweep.members.empty()) add(sweep.at, "sweep", "expected at least one key with its values");
    if (count > most_runs) add(sweep.at, "sweep", "expected at most 10000 runs");
    if (!mistakes_.empty()) return {};
    std::vector<Run> runs(1);
    for (const Node::Member& member : sweep.members) {
      std::vector<Run> longer;
      for (const Run& run : runs) {
        for (std::size_t i = 0; i < member.value.items.size(); ++i) {
          longer.push_back(run);
          longer.back().push_back({member.key, member.at, &member.value.items[i], i});
        }
      }
      runs = std::move(longer);
    }
    return runs;
  }

  std::vector<Run> list(const Node& sweep) {
    if (sweep.kind != Node::Kind::list) {
      add(sweep.at, "sweep",
          "expected an object (every combination) or a list of objects (one run each), got " + sweep.got());
      return {};
    }
    if (sweep.items.empty()) add(sweep.at, "sweep", "expected at least one run");
    if (sweep.items.size() > most_runs) add(sweep.at, "sweep", "expected at most 10000 runs");
    std::vector<Run> runs;
    for (std::size_t i = 0; i < sweep.items.size(); ++i) {
      const Node& item = sweep.items[i];
      std::string path = item_path("sweep", i);
      if (item.kind != Node::Kind::object) {
        add(item.at, path, "expected an object with the keys and values of one run, got " + item.got());
        continue;
      }
      Run run;
      for (const Node::Member& member : item.members) {
        check_key(member, key_path(path, member.key));
        run.push_back({member.key, member.at, &member.value, i});
      }
      runs.push_back(std::move(run));
    }
    return runs;
  }

  /// The last part of each key where that tells the keys apart, else the whole.
  static std::map<std::string, std::string> short_keys(const std::vector<Run>& runs) {
    std::map<std::string, std::string> names;
    std::map<std::string, std::size_t> uses;
    for (const Run& run : runs) {
      for (const Setting& setting : run) {
        if (names.count(setting.key)) continue;
        std::string last = setting.key.substr(setting.key.rfind('.') + 1);
        names[setting.key] = last;
        ++uses[last];
      }
    }
    for (auto& [key, name] : names) {
      if (uses[name] > 1) name = key;
    }
    return names;
  }

  static std::string value_text(const Setting& setting) {
    std::string text = setting.value->kind == Node::Kind::string ? setting.value->text : to_json(*setting.value).dump();
    bool plain = text.size() <= longest_value && setting.value->members.empty();
    return plain ? text : "#" + std::to_string(setting.number + 1);
  }

  std::vector<Variant> apply(const std::vector<Run>& runs, const Node& sweep) {
    Document base = without(document_, {"sweep"});
    auto names = short_keys(runs);
    std::map<std::string, std::size_t> labels;
    std::vector<Variant> variants;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Variant variant{"", base, "", ""};
      for (const Setting& setting : runs[i]) {
        if (auto mistake = set_value(variant.document, setting.key, setting.key_at, *setting.value)) {
          mistakes_.push_back(*mistake);
        }
        const auto text = names[setting.key] + "=" + value_text(setting);
        variant.label += (variant.label.empty() ? "" : ", ") + text;
        if (setting.key != "seed") variant.group += (variant.group.empty() ? "" : ", ") + text;
      }
      auto [first, fresh] = labels.emplace(variant.label, i);
      if (!fresh) {
        const Place& at = runs[i].empty() ? sweep.at : runs[i].back().value->at;
        add(at, "sweep",
            "runs " + std::to_string(first->second + 1) + " and " + std::to_string(i + 1) +
                " are the same: " + in_quotes(variant.label));
      }
      if (mistakes_.empty()) variants.push_back(std::move(variant));
    }
    return variants;
  }

  const Document& document_;
  std::vector<Mistake> mistakes_;
};

}  // namespace

std::vector<Variant> expand(const Document& document) { return Expansion(document).expand(); }

Part parse_part(const std::string& text) {
  Part part{0, 0};
  const char* end = text.data() + text.size();
  auto number = std::from_chars(text.data(), end, part.number);
  bool slash = number.ec == std::errc() && number.ptr != end && *number.ptr == '/';
  auto count = slash ? std::from_chars(number.ptr + 1, end, part.count) : number;
  bool sound = slash && count.ec == std::errc() && count.ptr == end && part.number >= 1 && part.number <= part.count;
  if (!sound) throw UsageError("expected a part such as 3/16 (from 1/16 to 16/16), got " + in_quotes(text));
  return part;
}

}  // namespace headlab
