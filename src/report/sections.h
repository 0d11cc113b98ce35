#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/report/head_map.h"
#include "src/report/run_view.h"

/// The sections of the page, each as HTML; empty where the run has nothing for it.
namespace headlab::report {

/// Question, run, and what came of the claims.
std::string head_of_page(const Run& run);
std::string results_table(const Run& run);
/// Loss, metrics and learning rate over the steps of training.
std::string curves(const Run& run);

/// A column of the table of heads, and a map: what a stage says of each head.
struct HeadColumn {
  std::string title;   // in the table
  std::string metric;  // whose digits its values have; empty: four digits
  bool change = false;
  HeadMap map;
};

/// A stage that takes heads away, and when.
struct Removal {
  std::size_t position;  // among the stages
  std::string stage, verb;
  std::set<std::string> heads;
};

/// What a stage says of each head in words: its role.
struct HeadNote {
  std::string title;
  std::map<std::string, std::string> of;
};

struct Heads {
  std::vector<HeadColumn> columns;
  std::vector<HeadNote> notes;
  std::vector<Removal> removals;
  std::set<std::string> names;
  StackSizes sizes;
};

/// What the stages say of each head.
Heads collect_heads(const Run& run);
std::string head_maps(const Heads& heads);
std::string heads_table(const Heads& heads);
/// What heads look at on chosen texts (measure "attention"), for the panel that the page's script opens.
std::string attention_data(const Run& run);
std::string sets_tables(const Run& run);
/// A metric against the number of heads left.
std::string pruning_curves(const Run& run);

std::string samples(const Run& run);
std::string cost(const Run& run);
/// Stages that no other section shows.
std::string other_stages(const Run& run);
/// How to repeat the run: command, environment, spec.
std::string repetition(const Run& run);

}  // namespace headlab::report
