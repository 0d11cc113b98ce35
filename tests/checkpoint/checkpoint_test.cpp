#include "src/checkpoint/checkpoint.h"

#include <signal.h>
#include <sys/wait.h>
#include <torch/nn/modules/normalization.h>
#include <unistd.h>

#include <random>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/rng.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;
namespace fs = std::filesystem;

namespace {

/// Every value in it is `step`, so that a mixture of two checkpoints shows.
Checkpoint filled(int64_t step, int64_t tensors = 3) {
  Checkpoint checkpoint;
  for (int64_t i = 0; i < tensors; ++i) {
    auto name = "layer" + std::to_string(i) + ".weight";
    checkpoint.model[name] = torch::full({64, 64}, static_cast<double>(step), torch::kFloat);
    checkpoint.optimizer["m." + name] = torch::full({64, 64}, static_cast<double>(step), torch::kFloat);
  }
  checkpoint.state = {{"step", step}};
  return checkpoint;
}

bool is_filled(const Checkpoint& checkpoint, int64_t step, std::size_t tensors = 3) {
  auto whole = [&](const TensorMap& map) {
    return map.size() == tensors && std::all_of(map.begin(), map.end(), [&](auto& item) {
             return item.second.eq(static_cast<double>(step)).all().template item<bool>();
           });
  };
  return checkpoint.state["step"] == step && whole(checkpoint.model) && whole(checkpoint.optimizer);
}

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl(int64_t in, bool tied, torch::Dtype dtype = torch::kFloat) : in(in), tied(tied), dtype(dtype) { reset(); }
  void reset() override {
    embed = register_parameter("embed", torch::randn({10, in}, dtype));
    output = register_parameter("output", tied ? embed : torch::randn({10, in}, dtype));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({in})));
    seen = register_buffer("seen", torch::zeros({}, torch::kLong));
  }
  int64_t in;
  bool tied;
  torch::Dtype dtype;
  torch::Tensor embed, output, seen;
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(Net);

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const FileError& error) {
    return error.what();
  }
  return "(no FileError)";
}

}  // namespace

TEST_CASE("a checkpoint comes back as it was saved, and is replaced as a whole", "[checkpoint]") {
  Scratch scratch;
  auto folder = scratch / "checkpoints/best";
  auto first = filled(1);
  first.state["best"] = {{"metric", "bleu"}, {"value", 0.1 + 0.2}};
  first.state["rng"] = rng_states();
  save_checkpoint(folder, first);
  auto back = load_checkpoint(folder);
  CHECK(is_filled(back, 1));
  CHECK(back.state["format"] == checkpoint_format);
  CHECK(back.state["best"]["value"].get<double>() == 0.1 + 0.2);
  CHECK(back.state["rng"] == first.state["rng"]);

  save_checkpoint(folder / "", filled(2, 5));
  CHECK(is_filled(load_checkpoint(folder), 2, 5));
  CHECK(std::distance(fs::directory_iterator(folder.parent_path()), {}) == 1);
}

TEST_CASE("the latest complete checkpoint is found, incomplete ones are passed over", "[checkpoint]") {
  Scratch scratch;
  auto root = scratch / "checkpoints";
  CHECK_FALSE(latest_checkpoint(root));
  for (int64_t step : {9, 10, 200}) save_checkpoint(root / checkpoint_name(step), filled(step));
  save_checkpoint(root / "best", filled(300));
  CHECK(checkpoint_name(812) == "step-00000812");
  CHECK(latest_checkpoint(root) == root / checkpoint_name(200));

  SECTION("a file is missing") { fs::remove(root / checkpoint_name(200) / "optimizer.safetensors"); }
  SECTION("a file is cut") { fs::resize_file(root / checkpoint_name(200) / "model.safetensors", 1000); }
  SECTION("the state is empty") { fs::resize_file(root / checkpoint_name(200) / "state.json", 0); }
  SECTION("it was never put into place") { fs::rename(root / checkpoint_name(200), root / ".step-00000200.new"); }
  CHECK(latest_checkpoint(root) == root / checkpoint_name(10));
}

TEST_CASE("pruning keeps the last complete checkpoints and the named ones", "[checkpoint]") {
  Scratch scratch;
  auto root = scratch.path;
  for (int64_t step = 1; step <= 6; ++step) save_checkpoint(root / checkpoint_name(step), filled(step));
  save_checkpoint(root / "best", filled(2));
  fs::remove(root / checkpoint_name(3) / "state.json");
  fs::remove(root / checkpoint_name(6) / "state.json");  // newer than the last complete one: perhaps of use to a person
  fs::create_directory(root / ".step-00000007.new");
  keep_latest_checkpoints(root, 2);
  std::set<std::string> left;
  for (auto& entry : fs::directory_iterator(root)) left.insert(entry.path().filename());
  CHECK(left == std::set<std::string>{"best", "step-00000004", "step-00000005", "step-00000006"});
  keep_latest_checkpoints(root, 0);
  CHECK(latest_checkpoint(root) == root / checkpoint_name(5));
}

TEST_CASE("a checkpoint set aside by an interrupted replacement is still found", "[checkpoint]") {
  Scratch scratch;
  auto best = scratch / "best";
  save_checkpoint(best, filled(4));
  fs::rename(best, scratch / ".best.old");
  CHECK(is_filled(load_checkpoint(best), 4));
  save_checkpoint(best, filled(5));
  CHECK(is_filled(load_checkpoint(best), 5));
  CHECK(std::distance(fs::directory_iterator(scratch.path), {}) == 1);
}

TEST_CASE("a checkpoint of a newer format is refused with the reason, not passed over", "[checkpoint]") {
  Scratch scratch;
  auto folder = scratch / checkpoint_name(5);
  save_checkpoint(scratch / checkpoint_name(4), filled(4));
  fs::create_directory(folder);
  write_file_atomically(folder / "state.json", R"({"format": 99, "headlab": "7.1", "step": 5})");
  CHECK(latest_checkpoint(scratch.path) == folder);
  CHECK(message_of([&] { load_checkpoint(folder); }) ==
        folder.string() +
            ": saved by a newer headlab 7.1 in checkpoint format 99; this one reads formats up to 1: "
            "update headlab");
}

TEST_CASE("what is no checkpoint is refused with its place", "[checkpoint]") {
  Scratch scratch;
  CHECK_THAT(message_of([&] { load_checkpoint(scratch / "none"); }), ContainsSubstring("none: no such checkpoint"));
  fs::create_directory(scratch / "empty");
  CHECK_THAT(message_of([&] { load_checkpoint(scratch / "empty"); }),
             ContainsSubstring("state.json: cannot be read: no such"));
  write_file_atomically(scratch / "empty/state.json", "{\"step\": 1}");
  CHECK_THAT(message_of([&] { load_checkpoint(scratch / "empty"); }),
             ContainsSubstring("state.json: not the state of a checkpoint"));
}

TEST_CASE("tensors load into a module in place, ties included", "[checkpoint]") {
  torch::manual_seed(1);
  Scratch scratch;
  Net from(4, true), to(4, true);
  from->seen.fill_(7);
  auto saved = named_tensors(*from);
  CHECK(saved.size() == 5);
  write_safetensors(scratch / "a", saved);
  auto tensors = read_safetensors(scratch / "a").tensors;
  auto* place = to->embed.data_ptr();
  load_tensors(*to, tensors, "a");
  CHECK(to->embed.data_ptr() == place);
  CHECK(to->output.data_ptr() == place);
  CHECK(to->embed.requires_grad());
  for (auto& [name, tensor] : named_tensors(*to)) CHECK(tensor.equal(saved.at(name)));

  SECTION("one name of a tie is enough") {
    Net third(4, true);
    tensors.erase("output");
    load_tensors(*third, tensors, "a");
    CHECK(third->output.equal(from->embed));
  }
  SECTION("a tie may be undone: both get the values") {
    Net untied(4, false);
    load_tensors(*untied, tensors, "a");
    CHECK(untied->output.equal(from->embed));
    CHECK(untied->output.data_ptr() != untied->embed.data_ptr());
  }
}

TEST_CASE("every misfit is listed in one message and nothing is loaded", "[checkpoint]") {
  torch::manual_seed(1);
  Net net(4, true);
  auto before = net->embed.detach().clone();
  auto tensors = named_tensors(*Net(5, false));
  tensors.erase("norm.bias");
  tensors["extra"] = torch::zeros({2});
  tensors["seen"] = torch::zeros({}, torch::kInt);
  auto message = message_of([&] { load_tensors(*net, tensors, "best/model.safetensors"); });
  CHECK(message ==
        "best/model.safetensors: its tensors do not fit the model; nothing was loaded\n"
        "  missing     norm.bias: F32 [4]\n"
        "  unexpected  extra: F32 [2]\n"
        "  shape       embed: expected F32 [10, 4], got F32 [10, 5]\n"
        "  shape       norm.weight: expected F32 [4], got F32 [5]\n"
        "  shape       output: expected F32 [10, 4], got F32 [10, 5]\n"
        "  dtype       seen: expected I64 [], got I32 []\n"
        "  tied        output: one with embed in the model, but their values differ\n"
        "The model must be made from the options, heads kept and vocabulary that it was saved with.");
  CHECK(net->embed.equal(before));
}

TEST_CASE("the list of misfits stays readable", "[checkpoint]") {
  Net net(4, false);
  auto tensors = named_tensors(*net);
  for (int i = 100; i < 150; ++i) tensors["x" + std::to_string(i)] = torch::zeros({1});
  auto message = message_of([&] { load_tensors(*net, tensors, "a"); });
  CHECK_THAT(message, ContainsSubstring("x119") && ContainsSubstring("and 30 more"));
  CHECK_THAT(message, !ContainsSubstring("x120"));
}

TEST_CASE("a process killed at any moment leaves a whole checkpoint", "[checkpoint]") {
  // The child saves step after step, in new folders and in one that is replaced, and prunes; it says on a pipe which
  // step is surely there. Tensors are small, so that no thread pool is needed after the fork.
  torch::manual_seed(1);
  Scratch scratch;
  auto root = scratch / "checkpoints";
  std::mt19937 random(20);
  std::uniform_int_distribution<int> microseconds(0, 60'000);
  int64_t sure = 0;
  int kills_with_leftovers = 0;
  for (int kill_number = 0; kill_number < 25; ++kill_number) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    auto child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        for (int64_t step = sure + 1;; ++step) {
          save_checkpoint(root / checkpoint_name(step), filled(step, 20));
          save_checkpoint(root / "best", filled(step, 20));
          if (write(ends[1], &step, sizeof step) != sizeof step) _exit(1);
          keep_latest_checkpoints(root, 2);
        }
      } catch (...) {
        _exit(2);
      }
    }
    close(ends[1]);
    int64_t step = 0;
    // At least one save, so that the kills do not all fall into the first.
    REQUIRE(read(ends[0], &step, sizeof step) == sizeof step);
    usleep(static_cast<useconds_t>(microseconds(random)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    do sure = step;
    while (read(ends[0], &step, sizeof step) == sizeof step);
    close(ends[0]);

    CAPTURE(kill_number, sure);
    auto latest = latest_checkpoint(root);
    REQUIRE(latest);
    auto checkpoint = load_checkpoint(*latest);
    auto found = checkpoint.state["step"].get<int64_t>();
    CHECK((found == sure || found == sure + 1));
    CHECK(is_filled(checkpoint, found, 20));
    auto best = load_checkpoint(root / "best");
    auto best_step = best.state["step"].get<int64_t>();
    CHECK((best_step == sure || best_step == sure + 1));
    CHECK(is_filled(best, best_step, 20));
    for (auto& entry : fs::directory_iterator(root)) kills_with_leftovers += entry.path().filename().string()[0] == '.';
    sure = found;
  }
  CHECK(kills_with_leftovers > 0);  // else no kill fell into a save, and this test has shown nothing
  save_checkpoint(root / "best", filled(sure));
  keep_latest_checkpoints(root, 2);
  CHECK(std::distance(fs::directory_iterator(root), {}) == 3);
}
