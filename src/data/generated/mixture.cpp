#include <algorithm>
#include <map>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct MixtureOptions : ExerciseOptions<MixtureOptions, Form::sequence> {
  Choices parts{generator_catalogue, false, {}};
  std::vector<double> weights, test_weights;
  bool shared = false;
  void describe(Fields& fields) override {
    fields.add("parts", parts, "the exercises that are mixed").required();
    fields.add("weights", weights, "how often each is drawn, in proportion").above(0).means("empty: equally");
    fields.add("test_weights", test_weights, "the same for the test part; a part of weight 0 is left out of it")
        .at_least(0)
        .means("empty: weights");
    fields.add("shared", shared, "symbols of equal name are one; else each part has its own, named 1:s0, 2:s0");
  }
  void rules(Problems& problems) const override {
    if (parts.items.size() < 2)
      problems.add("parts", "expected at least two exercises, got " + std::to_string(parts.items.size()));
    const auto check = [&](const std::string& field, const std::vector<double>& of_parts) {
      if (!of_parts.empty() && of_parts.size() != parts.items.size())
        problems.add(field, "expected one for each of the " + std::to_string(parts.items.size()) + " parts, got " +
                                std::to_string(of_parts.size()));
    };
    check("weights", weights);
    check("test_weights", test_weights);
    if (!test_weights.empty() && *std::max_element(test_weights.begin(), test_weights.end()) == 0)
      problems.add("test_weights", "expected at least one above 0");
    for (std::size_t i = 0; i < parts.items.size(); ++i) {
      const auto its = dynamic_cast<const GeneratorOptions&>(parts.items[i].options()).form();
      if (its == Form::pair || its == Form::label || parts.items[i].type() == "mixture")
        problems.add("parts[" + std::to_string(i) + "]",
                     "expected an exercise that reads one text and answers within it, got " + parts.items[i].type());
    }
  }
};

/// Each example is one of one part, drawn by the weights: several small languages in one model.
class Mixture : public Exercise<MixtureOptions> {
 public:
  explicit Mixture(const MixtureOptions& options) : Exercise(options) {
    std::map<std::string, int32_t> known;
    double sum = 0, test_sum = 0;
    for (std::size_t i = 0; i < options_.parts.items.size(); ++i) {
      auto& part = parts_.emplace_back();
      part.generator = generators().make(options_.parts.items[i]);
      const auto weight = options_.weights.empty() ? 1 : options_.weights[i];
      part.until = sum += weight;
      part.test_until = test_sum += options_.test_weights.empty() ? weight : options_.test_weights[i];
      const auto& names = part.generator->symbols().names();
      for (std::size_t id = 0; id < names.size(); ++id) {
        const bool special = id <= static_cast<std::size_t>(Symbols::eos);
        const auto name = special || options_.shared ? names[id] : std::to_string(i + 1) + ":" + names[id];
        if (special) known.emplace(name, static_cast<int32_t>(id));
        const auto found = known.find(name);
        part.id.push_back(found != known.end() ? found->second : known[name] = symbols_.add(name));
      }
    }
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto until = [&](const Part& part) { return test ? part.test_until : part.until; };
    const auto at = random.uniform() * until(parts_.back());
    std::size_t i = 0;
    while (i + 1 < parts_.size() && at >= until(parts_[i])) ++i;
    auto example = parts_[i].generator->draw(random, test);
    for (auto* symbols : {&example.read, &example.answer})
      for (auto& symbol : *symbols)
        if (symbol != GeneratedExample::none) symbol = parts_[i].id[static_cast<std::size_t>(symbol)];
    return example;
  }

 private:
  struct Part {
    std::shared_ptr<Generator> generator;
    double until = 0, test_until = 0;  // cumulative weights
    std::vector<int32_t> id;           // of each symbol of the part, its symbol here
  };
  std::vector<Part> parts_;
};

}  // namespace

void add_mixture(Generators& all) {
  all.entry<Mixture, MixtureOptions>("mixture", "examples of several exercises, mixed");
}

}  // namespace headlab
