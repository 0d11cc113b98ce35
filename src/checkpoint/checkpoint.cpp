#include "src/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>
#include <vector>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/json_file.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* model_file = "model.safetensors";
constexpr const char* optimizer_file = "optimizer.safetensors";
constexpr const char* state_file = "state.json";
constexpr std::string_view step_prefix = "step-";

// Neighbours of a checkpoint; a leading dot, so that none is taken for one.
fs::path neighbour(const fs::path& folder, const char* suffix) {
  return folder.parent_path() / ("." + folder.filename().string() + suffix);
}
fs::path unfinished(const fs::path& folder) { return neighbour(folder, ".new"); }
fs::path set_aside(const fs::path& folder) { return neighbour(folder, ".old"); }

/// "checkpoints/best/" and "checkpoints/best" are one folder.
fs::path without_slash(const fs::path& folder) {
  auto plain = folder.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

void move_to(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_file_error(to, "cannot be written", errno);
}

void remove_tree(const fs::path& path) {
  std::error_code code;
  fs::remove_all(path, code);
  if (code) throw_file_error(path, "cannot be removed", code.value());
}

/// Puts the finished folder `from` at `to`, where there is a checkpoint already. Where the file system cannot exchange
/// two folders in one step, the old one is set aside first; `where_it_lies` finds it if we are killed just then.
void replace(const fs::path& from, const fs::path& to) {
#ifdef RENAME_EXCHANGE
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(to.parent_path());
    remove_tree(from);
    return;
  }
#endif
  remove_tree(set_aside(to));
  move_to(to, set_aside(to));
  move_to(from, to);
  sync_folder(to.parent_path());
  remove_tree(set_aside(to));
}

fs::path where_it_lies(const fs::path& folder) {
  return !fs::exists(folder) && fs::exists(set_aside(folder)) ? set_aside(folder) : folder;
}

json read_state(const fs::path& folder) {
  auto path = folder / state_file;
  auto state = read_json_file(path);
  // A number of at least 1: parsed ones that are not negative are unsigned.
  if (!state.contains("format") || !state["format"].is_number_unsigned() || state["format"].get<uint64_t>() == 0) {
    throw FileError(path.string() +
                    ": not the state of a checkpoint (expected a JSON object with a \"format\" number)");
  }
  return state;
}

bool is_newer(const json& state) { return state["format"].get<uint64_t>() > static_cast<uint64_t>(checkpoint_format); }

void refuse_newer(const fs::path& folder, const json& state) {
  if (!is_newer(state)) return;
  auto version = state.value("headlab", json());
  throw FileError(folder.string() + ": saved by a newer headlab" +
                  (version.is_string() ? " " + version.get<std::string>() : "") + " in checkpoint format " +
                  state["format"].dump() + "; this one reads formats up to " + std::to_string(checkpoint_format) +
                  ": update headlab");
}

bool is_complete(const fs::path& folder) {
  try {
    if (is_newer(read_state(folder))) return true;
    check_safetensors(folder / model_file);
    check_safetensors(folder / optimizer_file);
    return true;
  } catch (const FileError&) {
    return false;
  }
}

/// The folders "step-<n>", the largest n first.
std::vector<std::pair<int64_t, fs::path>> step_folders(const fs::path& root) {
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code code;
  for (auto& entry : fs::directory_iterator(root, code)) {
    auto name = entry.path().filename().string();
    if (name.rfind(step_prefix, 0) != 0) continue;
    int64_t step = 0;
    auto [end, error] = std::from_chars(name.data() + step_prefix.size(), name.data() + name.size(), step);
    if (error == std::errc() && end == name.data() + name.size()) found.emplace_back(step, entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::string describe(const at::Tensor& tensor) {
  std::string text = dtype_name(tensor.scalar_type()) + " [";
  for (int64_t i = 0; i < tensor.dim(); ++i) text += (i ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

bool same_values(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.equal(b);
}

/// The lines of one kind of misfit, not too many of them.
struct Misfits {
  std::string kind;
  std::vector<std::string> lines = {};
  std::string text() const {
    constexpr std::size_t shown = 20;
    std::string result;
    for (std::size_t i = 0; i < std::min(lines.size(), shown); ++i) result += "\n  " + kind + lines[i];
    if (lines.size() > shown) result += "\n  " + kind + "and " + std::to_string(lines.size() - shown) + " more";
    return result;
  }
};

}  // namespace

void save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  auto place = without_slash(folder);
  auto parent = place.has_parent_path() ? place.parent_path() : fs::path(".");
  place = parent / place.filename();
  std::error_code code;
  make_folders(parent);
  // What an interrupted save left: the checkpoint itself, set aside, or a part of a new one.
  if (auto lies = where_it_lies(place); lies != place) move_to(lies, place);
  auto temporary = unfinished(place);
  remove_tree(temporary);
  fs::create_directory(temporary, code);
  if (code) throw_file_error(temporary, "cannot be made", code.value());
  try {
    write_safetensors(temporary / model_file, checkpoint.model);
    write_safetensors(temporary / optimizer_file, checkpoint.optimizer);
    auto state = checkpoint.state;
    state["format"] = checkpoint_format;
    write_file_atomically(temporary / state_file, state.dump(2) + "\n");
    sync_folder(temporary);
    if (fs::exists(place)) {
      replace(temporary, place);
    } else {
      move_to(temporary, place);
      sync_folder(parent);
    }
  } catch (...) {
    fs::remove_all(temporary, code);  // frees the space; the first error is the one to tell
    throw;
  }
}

json load_checkpoint_state(const fs::path& folder) {
  auto lies = where_it_lies(without_slash(folder));
  if (!fs::is_directory(lies)) throw FileError(folder.string() + ": no such checkpoint (expected a folder)");
  auto state = read_state(lies);
  refuse_newer(folder, state);
  return state;
}

Checkpoint load_checkpoint(const fs::path& folder) {
  Checkpoint checkpoint;
  checkpoint.state = load_checkpoint_state(folder);
  auto lies = where_it_lies(without_slash(folder));
  checkpoint.model = read_safetensors(lies / model_file).tensors;
  checkpoint.optimizer = read_safetensors(lies / optimizer_file).tensors;
  return checkpoint;
}

void throw_foreign_state(const fs::path& folder, const json::exception& error) {
  throw FileError((folder / state_file).string() + ": not a state that this program saved (" + said_by(error) +
                  "); the checkpoint is damaged or another program's: remove it to go on from an earlier one");
}

std::string checkpoint_name(int64_t step) {
  auto digits = std::to_string(step);
  return std::string(step_prefix) + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

std::optional<fs::path> latest_checkpoint(const fs::path& root) {
  for (auto& [step, folder] : step_folders(root)) {
    if (is_complete(folder)) return folder;
  }
  return std::nullopt;
}

std::vector<std::pair<int64_t, fs::path>> complete_checkpoints(const fs::path& root) {
  auto found = step_folders(root);
  std::erase_if(found, [](const auto& item) { return !is_complete(item.second); });
  std::reverse(found.begin(), found.end());
  return found;
}

void keep_latest_checkpoints(const fs::path& root, int64_t keep, int64_t also) {
  int64_t complete = 0;
  for (auto& [step, folder] : step_folders(root)) {
    bool whole = is_complete(folder);
    complete += whole;
    if (complete == 0 || step == also || (whole && complete <= std::max<int64_t>(keep, 1))) continue;
    // Renamed first: a removal that is interrupted leaves no half of a checkpoint under its name.
    auto going = neighbour(folder, ".gone");
    remove_tree(going);
    move_to(folder, going);
  }
  std::error_code code;
  for (auto& entry : fs::directory_iterator(root, code)) {
    auto name = entry.path().filename().string();
    bool ours = name.rfind("." + std::string(step_prefix), 0) == 0;
    bool ended = entry.path().extension() == ".new" || entry.path().extension() == ".gone";
    if (ours && ended) remove_tree(entry.path());
  }
  sync_folder(root);
}

TensorMap named_tensors(const torch::nn::Module& module) {
  TensorMap tensors;
  for (auto& item : module.named_parameters()) tensors[item.key()] = item.value().detach();
  for (auto& item : module.named_buffers()) {
    if (item.value().defined()) tensors[item.key()] = item.value().detach();
  }
  return tensors;
}

void load_tensors(torch::nn::Module& module, const TensorMap& tensors, const std::string& from) {
  auto wanted = named_tensors(module);
  Misfits missing{"missing     "}, unexpected{"unexpected  "}, shapes{"shape       "}, dtypes{"dtype       "},
      ties{"tied        "};
  std::map<const void*, std::string> tied;  // the first name that was found for each tensor of the module
  for (auto& [name, to] : wanted) {
    auto found = tensors.find(name);
    if (found == tensors.end()) continue;
    auto& got = found->second;
    if (got.sizes() != to.sizes()) {
      shapes.lines.push_back(name + ": expected " + describe(to) + ", got " + describe(got));
    } else if (got.scalar_type() != to.scalar_type()) {
      dtypes.lines.push_back(name + ": expected " + describe(to) + ", got " + describe(got));
    }
    auto [first, is_first] = tied.emplace(to.numel() > 0 ? to.data_ptr() : &to, name);
    auto& other = tensors.at(first->second);
    if (!is_first && !got.is_same(other) && !same_values(got, other)) {
      ties.lines.push_back(name + ": one with " + first->second + " in the model, but their values differ");
    }
  }
  for (auto& [name, to] : wanted) {
    if (!tensors.count(name) && !tied.count(to.numel() > 0 ? to.data_ptr() : &to)) {
      missing.lines.push_back(name + ": " + describe(to));
    }
  }
  for (auto& [name, got] : tensors) {
    if (!wanted.count(name)) unexpected.lines.push_back(name + ": " + describe(got));
  }
  std::string misfits;
  for (auto* kind : {&missing, &unexpected, &shapes, &dtypes, &ties}) misfits += kind->text();
  if (!misfits.empty()) {
    throw FileError(from + ": its tensors do not fit the model; nothing was loaded" + misfits +
                    "\nThe model must be made from the options, heads kept and vocabulary that it was saved with.");
  }
  torch::NoGradGuard no_grad;
  for (auto& [name, to] : wanted) {
    if (auto found = tensors.find(name); found != tensors.end()) to.copy_(found->second);
  }
}

}  // namespace headlab
