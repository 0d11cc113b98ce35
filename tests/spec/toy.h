#pragma once
// A small laboratory of options that the tests of specs share: a model with choices, stages, lists and rules.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "modules/base/fields.h"
#include "src/spec/expect.h"

namespace headlab::toy {

struct NoneOptions : Described<NoneOptions> {
  void describe(Fields&) override {}
};

struct RopeOptions : Described<RopeOptions> {
  double base = 10000, fraction = 1;
  void describe(Fields& fields) override {
    fields.add("base", base, "the longest wavelength over 2 pi").above(1).unit("tokens");
    fields.add("fraction", fraction, "how much of a head is rotated").above(0).at_most(1);
  }
};

struct TableOptions : Described<TableOptions> {
  int64_t length = 0;
  void describe(Fields& fields) override { fields.add("length", length, "longest sequence").required().at_least(1); }
};

inline const Catalogue& positions() {
  static const Catalogue catalogue{
      "position",
      "rotates queries and keys, or gives a bias",
      {{"none", "no positions", "", [] { return std::make_shared<NoneOptions>(); }},
       {"rope", "rotary positions", "2104.09864", [] { return std::make_shared<RopeOptions>(); }},
       {"table", "a learned bias", "", [] { return std::make_shared<TableOptions>(); }}}};
  return catalogue;
}

struct TrainOptions : Described<TrainOptions> {
  int64_t steps = 100;
  std::optional<int64_t> warmup = 10;
  std::string optimizer = "adamw";
  std::vector<double> betas = {0.9, 0.98};
  void describe(Fields& fields) override {
    fields.add("steps", steps, "optimiser steps").at_least(1).unit("steps");
    fields.add("warmup", warmup, "steps of rising rate").at_least(0).means("absent: a tenth of steps");
    fields.add("optimizer", optimizer, "what takes the steps").one_of({"adamw", "sgd"});
    fields.add("betas", betas, "decay of the moments").at_least(0).below(1);
  }
  void rules(Problems& problems) const override {
    if (warmup && *warmup > steps) {
      problems.add("warmup", "expected at most steps (" + std::to_string(steps) + "), got " + std::to_string(*warmup));
    }
    if (betas.size() != 2) problems.add("betas", "expected 2 values, got " + std::to_string(betas.size()));
  }
};

struct PruneOptions : Described<PruneOptions> {
  double fraction = 0.5;
  void describe(Fields& fields) override { fields.add("fraction", fraction, "of all heads").at_least(0).at_most(1); }
};

inline const Catalogue& stages() {
  static const Catalogue catalogue{"stage",
                                   "what a run does",
                                   {{"train", "trains", "", [] { return std::make_shared<TrainOptions>(); }},
                                    {"prune", "removes heads", "", [] { return std::make_shared<PruneOptions>(); }},
                                    {"evaluate", "measures", "", [] { return std::make_shared<NoneOptions>(); }}}};
  return catalogue;
}

struct AttentionOptions : Described<AttentionOptions> {
  int64_t heads = 8, width = 128;
  bool bias = true;
  Choice position{positions, "none"};
  Choices gates{positions, false, {}};
  void describe(Fields& fields) override {
    fields.add("heads", heads, "number of heads").at_least(1).at_most(64);
    fields.add("width", width, "width of the model").at_least(1);
    fields.add("bias", bias, "projections have a bias");
    fields.add("position", position, "how a head knows places");
    fields.add("gates", gates, "in series");
  }
  void rules(Problems& problems) const override {
    if (width % heads != 0) {
      problems.add("width",
                   "expected a multiple of heads (" + std::to_string(heads) + "), got " + std::to_string(width));
    }
  }
};

struct ModelOptions : Described<ModelOptions> {
  int64_t vocabulary = 0;
  double dropout = 0.1;
  AttentionOptions attention;
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "tokens that it knows").required().at_least(2);
    fields.add("dropout", dropout, "rate").at_least(0).below(1);
    fields.add("attention", attention, "of each layer");
  }
};

struct ToySpec : Described<ToySpec> {
  std::string name = "toy";
  std::optional<std::string> question;
  std::optional<bool> quiet;
  std::vector<int64_t> seeds = {1};
  std::vector<std::string> languages = {"en", "de"};
  ModelOptions model;
  Choices stages{toy::stages, true, {}};
  nlohmann::ordered_json sweep;
  std::vector<ExpectOptions> expect;
  void describe(Fields& fields) override {
    fields.add("name", name, "of the run folder");
    fields.add("question", question, "what is asked");
    fields.add("quiet", quiet, "").means("absent: quiet in a pipe");
    fields.add("seeds", seeds, "of every random draw").at_least(0);
    fields.add("languages", languages, "in order").one_of({"en", "de", "fr"});
    fields.add("model", model, "what is trained");
    fields.add("stages", stages, "in order");
    fields.add("sweep", sweep, "values to run with");
    fields.add("expect", expect, "claims to check");
  }
};

}  // namespace headlab::toy
