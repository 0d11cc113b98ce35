#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "modules/base/error.h"
#include "modules/base/fields.h"
#include "modules/base/random.h"
#include "src/data/paths.h"

namespace headlab {

/// The files of a task's parts. Where valid or test has no file, it is drawn from the training file: whole examples at
/// random, which training then lacks.
struct SplitFiles {
  std::string train;
  std::optional<std::string> valid, test;
  double valid_share = 0.1, test_share = 0.1;
  int64_t split_seed = 1;

  void describe_files(Fields& fields) {
    fields.add("train", train, "file, looked for beside the spec and in HEADLAB_DATA").required().file();
    fields.add("valid", valid, "for validation during training").file().means("absent: drawn from train");
    fields.add("test", test, "for the final evaluation").file().means("absent: drawn from train");
    fields.add("valid_share", valid_share, "share of train that is drawn where valid is absent").above(0).below(0.5);
    fields.add("test_share", test_share, "share of train that is drawn where test is absent").above(0).below(0.5);
    fields.add("split_seed", split_seed, "seed of the draw").at_least(0);
  }
};

/// The examples of each part. Throws Error where a part is left without any.
template <class Example>
std::map<std::string, std::vector<Example>> read_splits(
    const SplitFiles& files, const std::string& spec_folder,
    const std::function<std::vector<Example>(const std::string& path)>& read) {
  std::map<std::string, std::vector<Example>> parts;
  if (files.valid) parts["valid"] = read(resolve_data_path(*files.valid, spec_folder));
  if (files.test) parts["test"] = read(resolve_data_path(*files.test, spec_folder));
  auto all = read(resolve_data_path(files.train, spec_folder));
  const auto count = static_cast<double>(all.size());
  const auto valid = files.valid ? 0 : static_cast<std::size_t>(count * files.valid_share);
  const auto test = files.test ? 0 : static_cast<std::size_t>(count * files.test_share);
  const auto order = Random(static_cast<uint64_t>(files.split_seed)).permutation(static_cast<int64_t>(all.size()));
  std::vector<std::string> part_names(all.size(), "train");
  for (std::size_t i = 0; i < valid + test; ++i)
    part_names[static_cast<std::size_t>(order[i])] = i < valid ? "valid" : "test";
  for (std::size_t i = 0; i < all.size(); ++i) parts[part_names[i]].push_back(std::move(all[i]));
  for (const auto* name : {"train", "valid", "test"})
    if (parts[name].empty())
      throw Error(files.train + ": " + std::to_string(all.size()) + " examples are too few to draw a part \"" + name +
                  "\" from");
  return parts;
}

}  // namespace headlab
