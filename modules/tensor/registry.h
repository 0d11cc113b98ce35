#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "modules/base/fields.h"

namespace headlab {

/// What a generic test may assume of an entry; each exemption carries its reason.
struct Traits {
  std::string not_masked_equals_removed = {};  // why masking a head is not removing it; empty: it is
  std::string no_weights = {};                 // why there are no attention weights to read; empty: there are
  std::string not_row_independent = {};        // why other rows of the batch can matter; empty: they can't
  bool reads_all_groups = false;  // each head reads every key/value group, so a group stays while any head does
  bool self_alone = false;        // needs queries and keys that share positions: no cross-attention
  bool whole_text = false;        // must see all queries and keys of a text in one call
  bool needs_heads = false;       // has parameters for each head, so heads can't be chosen token by token
  bool before_cache = false;      // of an adapter: acts before positions and the cache (Adapter::store)
  bool (*gives_windows)(const Options&) = nullptr;  // of a gate: whether it gives heads windows; nullptr: it doesn't
  std::vector<Clash> clashes = {};                  // entries that it can't stand beside
};

/// Where an entry's options stand in a spec, for rules that relate them to what is around them; a slot derives its own.
struct Around {
  std::string at;  // "encoder.attention.position"
  Problems& problems;
  Around(std::string at, Problems& problems) : at(std::move(at)), problems(problems) {}
  virtual ~Around() = default;
  /// `field`: of the entry's options; "": the entry itself.
  void problem(const std::string& field, const std::string& message) const {
    problems.add(field.empty() ? at : at + "." + field, message);
  }
};

/// The same as sentences, for a person.
std::vector<std::string> notes_of(const Traits& traits);

/// The entries of one slot: what a person reads about each (the Catalogue) and how each is made.
template <class Product, class... Context>
class Registry {
 public:
  using Make = std::function<std::shared_ptr<Product>(const Options&, Context...)>;

  Registry(std::string slot, std::string summary) {
    catalogue_.slot = std::move(slot);
    catalogue_.summary = std::move(summary);
  }

  /// One line an entry: `Impl` is made from its options and the context.
  template <class Impl, class OptionsType>
  Registry& entry(const std::string& name, const std::string& summary, const std::string& paper = "",
                  Traits traits = {}) {
    catalogue_.entries.push_back(
        {name, summary, paper, [] { return std::make_shared<OptionsType>(); }, notes_of(traits), traits.clashes});
    makes_.push_back([](const Options& options, Context... context) -> std::shared_ptr<Product> {
      return std::make_shared<Impl>(dynamic_cast<const OptionsType&>(options), context...);
    });
    traits_.push_back(std::move(traits));
    rules_.push_back({});
    return *this;
  }
  /// Rules that the last entry's options must keep where they stand, beside those of Options::rules().
  template <class OptionsType, class AroundType>
  Registry& rule(void (*check)(const OptionsType&, const AroundType&)) {
    rules_.back() = [check](const Options& options, const Around& around) {
      check(dynamic_cast<const OptionsType&>(options), dynamic_cast<const AroundType&>(around));
    };
    return *this;
  }

  const Catalogue& catalogue() const { return catalogue_; }
  std::shared_ptr<Product> make(const Choice& choice, Context... context) const {
    return makes_[index(choice.type())](choice.options(), context...);
  }
  const Traits& traits(const std::string& name) const { return traits_[index(name)]; }
  void check(const Choice& choice, const Around& around) const {
    if (const auto& rule = rules_[index(choice.type())]) rule(choice.options(), around);
  }

 private:
  std::size_t index(const std::string& name) const {
    for (std::size_t i = 0; i < catalogue_.entries.size(); ++i)
      if (catalogue_.entries[i].name == name) return i;
    throw std::logic_error(catalogue_.slot + " has no entry " + name);  // a Choice holds known names only
  }
  Catalogue catalogue_;
  std::vector<Make> makes_;
  std::vector<Traits> traits_;
  std::vector<std::function<void(const Options&, const Around&)>> rules_;  // empty: none
};

/// For entries without options.
struct NoOptions : Described<NoOptions> {
  void describe(Fields&) override {}
};

}  // namespace headlab
