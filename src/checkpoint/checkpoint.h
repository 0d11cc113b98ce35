#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "modules/tensor/torch.h"
#include "src/checkpoint/safetensors.h"

namespace headlab {

/// The version of the layout below that this program writes; it reads all up to it.
constexpr int64_t checkpoint_format = 1;

/// All that a run needs to go on as if it had never stopped. On disk, a folder:
///
///   model.safetensors      parameters and buffers by their names in the module; tied ones once
///   optimizer.safetensors  "m.<parameter>", "v.<parameter>", "steps.<parameter>"; empty for weights to use only
///   state.json             everything else
///
/// Keys of state.json. save_checkpoint adds "format"; the others are the caller's, those unknown to it are kept:
///   format           int     version of this layout
///   headlab          text    version of the program
///   step, epoch      int     optimiser steps done; passes over the data begun
///   data             object  the cursor of the data: where the next batch comes from
///   rng              object  rng_states()
///   best             object  {"metric", "value", "step", ...}; value null before the first validation
///   schedule         object  state of the learning rate schedule
///   metrics_bytes    int     LineFile::bytes() of metrics.jsonl
///   model            object  the resolved options the module was made from
///   heads            object  heads kept: {"enc.self": [[0, 3], [1], ...], ...}, original indices for each layer
///   tokenizer        object  {"source": {"file", "sha256"}, "target": ...}, or the like
struct Checkpoint {
  TensorMap model, optimizer;
  nlohmann::json state = nlohmann::json::object();
};

/// Writes the folder `folder` (its parents too), or replaces it, atomically: all is written and synced under a
/// temporary name beside it, then renamed into place. Killed at any moment, the old checkpoint or the new is there,
/// whole. One writer at a time. Throws FileError.
void save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);

/// Throws FileError: missing, incomplete or damaged parts; a format newer than `checkpoint_format` ("update headlab").
Checkpoint load_checkpoint(const std::filesystem::path& folder);

/// state.json alone, checked as load_checkpoint does.
nlohmann::json load_checkpoint_state(const std::filesystem::path& folder);

/// The FileError for a state.json in which a value is missing or of another kind, from what reading it threw.
[[noreturn]] void throw_foreign_state(const std::filesystem::path& folder, const nlohmann::json::exception& error);

/// "step-00000812": the names that latest_checkpoint and keep_latest_checkpoints look for. Others, such as "best", are
/// never chosen and never removed.
std::string checkpoint_name(int64_t step);

/// The folder "step-<n>" in `root` with the largest n whose files are all there and of the right length; nullopt where
/// there is none or no `root`. One of a newer format counts, so that loading it gives its reason.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& root);

/// The steps and folders of all complete checkpoints "step-<n>" in `root`, the earliest first.
std::vector<std::pair<int64_t, std::filesystem::path>> complete_checkpoints(const std::filesystem::path& root);

/// Removes all but the last `keep` (at least 1) complete folders "step-<n>", incomplete ones older than the last
/// complete one, and what an interrupted save left. The folder of step `also` stays too (-1: none).
void keep_latest_checkpoints(const std::filesystem::path& root, int64_t keep, int64_t also = -1);

/// Parameters and buffers by name, detached, sharing their storage with the module; tied ones under each of their
/// names.
TensorMap named_tensors(const torch::nn::Module& module);

/// Copies `tensors` into the module's parameters and buffers, in place, so that ties stay. First all names, shapes and
/// dtypes are checked; on any misfit nothing is changed and one FileError lists what is missing, unexpected, of
/// another shape or dtype, or tied in the module but of different values. One name of a tie is enough.
/// `from` is what the message calls the tensors: "runs/a/checkpoints/best/model.safetensors".
void load_tensors(torch::nn::Module& module, const TensorMap& tensors, const std::string& from);

}  // namespace headlab
