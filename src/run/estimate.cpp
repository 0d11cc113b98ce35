#include "src/run/estimate.h"

#include <algorithm>

#include "src/checkpoint/json_file.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

/// Null where there is none, or one that can't be read: an estimate is no place to complain of it.
Json results_in(const std::filesystem::path& folder) {
  try {
    if (std::filesystem::exists(folder / "results.json")) return read_ordered_json_file(folder / "results.json");
  } catch (const Error&) {}
  return nullptr;
}

double number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

bool has_stages(const Json& results, const RunSpec& spec) {
  const auto stages = results.find("stages");
  return stages != results.end() &&
         std::all_of(spec.stages.items.begin(), spec.stages.items.end(),
                     [&](const Choice& stage) { return stages->contains(stage_name(stage)); });
}

/// The mean of durations, by what runs of the same name call themselves.
struct Durations {
  std::map<std::string, std::pair<double, std::size_t>> by_group;
  std::pair<double, std::size_t> all{0, 0};

  void add(const std::string& group, double seconds) {
    for (auto* sum : {&by_group[group], &all}) {
      sum->first += seconds;
      ++sum->second;
    }
  }
  std::optional<double> of(const std::string& group) const {
    const auto found = by_group.find(group);
    const auto& sum = found == by_group.end() ? all : found->second;
    return sum.second == 0 ? std::nullopt : std::optional(sum.first / static_cast<double>(sum.second));
  }
};

Durations durations_in(const std::filesystem::path& folder) {
  Durations durations;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const auto results = results_in(entry.path());
    if (!results.is_object() || number_in(results, "seconds") <= 0) continue;
    const auto group = results.find("group");
    durations.add(group != results.end() && group->is_string() ? group->get<std::string>() : "",
                  number_in(results, "seconds"));
  }
  return durations;
}

std::string runs_text(std::size_t runs) {
  return with_commas(static_cast<int64_t>(runs)) + (runs == 1 ? " run" : " runs");
}

std::string time_text(const Estimate& estimate) {
  if (estimate.unknown == estimate.to_do()) return "unknown until the first run has ended";
  return (estimate.unknown > 0 ? "at least " : "about ") + duration(estimate.left);
}

}  // namespace

Estimate& Estimate::operator+=(const Estimate& other) {
  runs += other.runs;
  done += other.done;
  used += other.used;
  unknown += other.unknown;
  left += other.left;
  judged_by += other.judged_by;
  return *this;
}

Estimate estimate(const std::vector<RunVariant>& variants, const RunFlags& flags, int jobs) {
  Estimate made;
  made.runs = variants.size();
  if (variants.empty()) return made;
  const auto durations = durations_in(flags.out / variants.front().spec->name);
  made.judged_by = durations.all.second;
  std::vector<double> of_process(
      std::max<std::size_t>(1, std::min<std::size_t>(static_cast<std::size_t>(std::max(jobs, 1)), variants.size())));
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const auto& variant = variants[i];
    const auto results = results_in(folder_of_run(*variant.spec, flags));
    if (results.is_object() && results.contains("seconds") && has_stages(results, *variant.spec)) {
      ++made.done;
      made.used += number_in(results, "seconds");
      continue;
    }
    const auto expected = durations.of(variant.group);
    if (!expected) {
      ++made.unknown;
      continue;
    }
    double spent = 0;
    if (results.is_object() && results.contains("stages") && results.at("stages").is_object())
      for (const auto& [name, stage] : results.at("stages").items())
        if (stage.is_object()) spent += number_in(stage, "wall_seconds");
    of_process[i % of_process.size()] += std::max(0.0, *expected - spent);
  }
  made.left = *std::max_element(of_process.begin(), of_process.end());
  return made;
}

std::string estimate_text(const Estimate& estimate) {
  if (estimate.to_do() == 0)
    return "all " + runs_text(estimate.runs) + " done before (" + duration(estimate.used) + "); nothing is run again";
  std::string text;
  if (estimate.done > 0)
    text = with_commas(static_cast<int64_t>(estimate.done)) + " of " + runs_text(estimate.runs) + " done before (" +
           duration(estimate.used) + "); " + with_commas(static_cast<int64_t>(estimate.to_do())) + " to do: ";
  else
    text = runs_text(estimate.runs) + " to do: ";
  text += time_text(estimate);
  if (estimate.unknown == estimate.to_do()) return text;
  text += ", judged by " + with_commas(static_cast<int64_t>(estimate.judged_by)) +
          (estimate.judged_by == 1 ? " earlier run" : " earlier runs");
  if (estimate.unknown > 0)
    text += "; of " + with_commas(static_cast<int64_t>(estimate.unknown)) +
            " nothing is known before the first of their kind has ended";
  return text;
}

std::string left_text(const Estimate& estimate) {
  auto text = with_commas(static_cast<int64_t>(estimate.done)) + " of " + runs_text(estimate.runs) + " done";
  if (estimate.to_do() == 0) return text;
  return text + (estimate.unknown == estimate.to_do() ? ", time left " : ", ") + time_text(estimate) +
         (estimate.unknown == estimate.to_do() ? "" : " left");
}

}  // namespace headlab
