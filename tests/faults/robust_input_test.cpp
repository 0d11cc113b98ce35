// Input and surroundings that are not as they should be, as a user of the program meets them: each gives one clear
// message, and nothing that was saved is lost.
#include <grp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/checkpoint.h"
#include "src/run/saved_model.h"
#include "tests/catch.h"
#include "tests/faults/tiny_files.h"
#include "tests/support/places.h"
#include "tests/support/skip.h"

using namespace headlab;
using namespace headlab::test;
namespace fs = std::filesystem;

namespace {

nlohmann::json results_of(const fs::path& run) { return nlohmann::json::parse(read_file(run / "results.json")); }

Finished headlab_run(const std::string& spec, const fs::path& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"run", spec, "--out", out.string(), "--threads", "1", "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

std::string final_weights(const fs::path& run, const std::string& stage = "train") {
  return read_file(run / "checkpoints" / stage / "final" / "model.safetensors");
}

/// A training whose checkpoints are 10 steps apart.
std::string long_training() { return "[" + train_stage(40, R"(, "checkpoint_every": 10)") + "]"; }

/// A training far too long, of a model larger than its tokenizer.
std::vector<std::string> endless(const std::string& spec, const fs::path& out) {
  return {"run",
          spec,
          "--out",
          out.string(),
          "--threads",
          "1",
          "--quiet",
          "--set",
          "stages[0].train.steps=4000",
          "--set",
          "model.d_model=64"};
}

/// Starts the training and kills it once the checkpoint of step 10 is there; the run's folder.
fs::path killed_after_step_10(const std::string& spec, const fs::path& out) {
  Running run(headlab_command(endless(spec, out)));
  fs::path folder;
  const auto there = [&] {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(out / "tiny", none)) folder = entry.path();
    return run.ended() || (!folder.empty() && fs::exists(folder / "checkpoints" / "train" / "step-00000010"));
  };
  wait_until(there);
  run.send(SIGKILL);
  run.wait();
  return folder;
}

/// A process that permissions stop.
void become_nobody() {
  if (geteuid() != 0) return;
  if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(126);
}

int64_t disk_bytes(const fs::path& folder) {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    bytes += entry.is_regular_file() ? (static_cast<int64_t>(entry.file_size()) + 4095) / 4096 * 4096 : 4096;
  return bytes;
}

}  // namespace

TEST_CASE("training lines that can't be used are skipped, counted by reason and reported", "[faults]") {
  const TinyFiles files;
  std::string source = "\xEF\xBB\xBF" + TinyFiles::lines(30, 0, false), target = TinyFiles::lines(30, 0, true);
  source += "\n \t\u00a0\na\r\nb\xFF\na" + std::string(1, '\0') + "b\n";  // empty, white, CR LF, not UTF-8, NUL
  target += "a\na\na\r\nb\nb\n";
  source += "a b c d e f g h i j k l a b c d e f g h i\na\n" + std::string((1 << 20) + 1, 'a') +
            "\nlast";  // too long, thrice
  target += "a\na b c d e f g h i j k l a b c d e f g h i\na\nlast";
  files.write("train.src", source);
  files.write("train.tgt", target);
  const auto spec = files.spec("[" + train_stage(1) + "]");
  const auto run = run_program({"run", spec, "--out", files.out(), "--threads", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("32 / 8 / 8 pairs; ") &&
                          ContainsSubstring("7 lines skipped (2 empty, 3 too long, 1 not UTF-8, 1 with NUL)"));
  auto told = results_of(files.run())["data"]["train"];
  CHECK(told["tokens"].get<int64_t>() >= 32);
  CHECK(told["unknown"] == 0);
  told.erase("tokens");
  told.erase("unknown");
  CHECK(told == nlohmann::json{{"pairs", 32},
                               {"lines", 39},
                               {"skipped", 7},
                               {"empty", 2},
                               {"too_long", 3},
                               {"not_utf8", 1},
                               {"with_nul", 1},
                               {"crlf", 2},
                               {"byte_order_marks", 1}});
}

TEST_CASE("a line to evaluate that can't be used is an error with its file and number", "[faults]") {
  const TinyFiles files;
  const auto spec = files.spec("[" + train_stage(1) + "]");
  const auto source = (files / "test.src").string();
  const std::vector<std::pair<std::string, std::string>> rows{
      {"a\n\nb" + std::string(1, '\0') + "\n", source + ":3: expected UTF-8 text, got a NUL byte\n"},
      {"a\n\xC3\nb\n", source + ":2: expected UTF-8 text, got bytes that are not UTF-8\n"},
      {std::string((1 << 20) + 1, 'a') + "\nb\nc\n",
       source + ":1: expected UTF-8 text, got a line of more than 1,048,576 bytes\n"},
      {"", source + " has 0 lines, " + (files / "test.tgt").string() + " has 3; expected translations line by line\n"}};
  files.write("test.tgt", "a\n\nb\n");
  for (const auto& [text, message] : rows) {
    files.write("test.src", text);
    const auto run = headlab_run(spec, files.out());
    CHECK(run.code == 1);
    CHECK(run.err == message);
  }
  fs::remove(source);
  const auto missing = headlab_run(spec, files.out());
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err, ContainsSubstring("tiny.json:7:") &&
                              ContainsSubstring("task.data.test_source: no such file: test.src (looked in " +
                                                files.out().substr(0, files.out().size() - 4)));
}

TEST_CASE("lines to translate that can't be read give a line all the same, and are counted", "[faults]") {
  const TinyFiles files;
  const auto spec = files.spec("[" + train_stage(1) + "]");
  REQUIRE(headlab_run(spec, files.out()).code == 0);
  const auto translate = [&](const std::string& input) {
    return run_program({"translate", files.run().string(), "--batch", "2", "--beam", "1"}, 0, input);
  };
  const auto odd = translate("a b\r\n\nb\xFF c\na" + std::string(1, '\0') + "b\nc");
  CHECK(odd.code == 0);
  CHECK(std::count(odd.out.begin(), odd.out.end(), '\n') == 5);
  CHECK(odd.err ==
        "2 of the lines not UTF-8, with NUL, or too long (the first: 3); what could be read of them was translated\n");
  std::string line = "a";
  for (int i = 0; i < 24; ++i) line += " a";
  const auto too_long = translate("a\nb\nc\n" + line + "\nd\n");
  CHECK(too_long.code == 1);
  CHECK(std::count(too_long.out.begin(), too_long.out.end(), '\n') == 2);  // what came before it
  CHECK(too_long.err ==
        "standard input, from line 3 on: translate: source 2: expected at most 24 tokens with eos, got 26; raise "
        "model.embedding.max_length\n");
}

TEST_CASE("a missing, truncated or foreign checkpoint is refused with its file and what is wrong", "[faults]") {
  const TinyFiles files;
  const auto spec = files.spec("[" + train_stage(2) + "]");
  REQUIRE(headlab_run(spec, files.out()).code == 0);
  const auto run = files.run(), final_folder = run / "checkpoints" / "train" / "final";
  const auto model = final_folder / "model.safetensors", state = final_folder / "state.json";
  const auto good_model = read_file(model), good_state = read_file(state),
             good_results = read_file(run / "results.json");
  const auto message_of = [](const fs::path& folder) {
    try {
      open_run(folder, "", "cpu");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto message = [&] { return message_of(run); };
  const auto tensors = read_safetensors(model).tensors;
  int64_t bytes = 0;
  std::set<const void*> stored;
  for (const auto& [name, tensor] : tensors)
    if (stored.insert(tensor.data_ptr()).second) bytes += static_cast<int64_t>(tensor.nbytes());

  write_file_atomically(model, good_model.substr(0, good_model.size() - 10));
  CHECK(message() == model.string() + ": truncated: expected " + std::to_string(bytes) + " bytes of tensors, got " +
                         std::to_string(bytes - 10));
  const auto translated = run_program({"translate", run.string()}, 0, "a b\n");
  CHECK(translated.code == 1);
  CHECK(translated.err == message() + "\n");
  CHECK(translated.out.empty());
  write_file_atomically(model, "GIF89a\x01\x02 a picture");
  CHECK(message() ==
        model.string() +
            ": not a safetensors file: its header would be 144503561437727047 bytes long (at most 100000000)");
  write_safetensors(model, {{"conv1.weight", torch::zeros({3, 3})}});
  CHECK_THAT(message(),
             ContainsSubstring(model.string() + ": its tensors do not fit the model; nothing was loaded\n") &&
                 ContainsSubstring("\n  unexpected  conv1.weight: F32 [3, 3]\n") &&
                 ContainsSubstring("\n  missing     "));
  fs::remove(model);
  CHECK(message() == model.string() + ": cannot be read: no such file or folder");
  write_file_atomically(model, good_model);

  fs::remove(state);
  CHECK(message() == state.string() + ": cannot be read: no such file or folder");
  write_file_atomically(state, good_state.substr(0, good_state.size() / 2));
  CHECK_THAT(message(), ContainsSubstring(state.string() + ": not JSON (parse error at line "));
  write_file_atomically(state, "{\"step\": 3}");
  CHECK(message() ==
        state.string() + ": not the state of a checkpoint (expected a JSON object with a \"format\" number)");
  write_file_atomically(state, "{\"format\": 1}");
  CHECK(message() == state.string() +
                         ": not a state that this program saved (key 'heads' not found); the checkpoint is "
                         "damaged or another program's: remove it to go on from an earlier one");
  write_file_atomically(state, "{\"format\": 9, \"headlab\": \"3.0\"}");
  CHECK(message() == final_folder.string() +
                         ": saved by a newer headlab 3.0 in checkpoint format 9; this one reads formats "
                         "up to 1: update headlab");
  write_file_atomically(state, good_state);

  fs::rename(final_folder, run / "elsewhere");
  CHECK(message() == run.string() + ": no stage has left a model (checkpoints/<stage>/final); run its spec to the end");
  fs::rename(run / "elsewhere", final_folder);
  CHECK(message_of(run / "checkpoints") ==
        (run / "checkpoints").string() +
            ": not a run folder (no spec.json and results.json in it); expected one such as "
            "runs/quickstart/8f3a2c0d11");
  write_file_atomically(run / "results.json", "[1");
  const auto again = headlab_run(spec, files.out());
  CHECK(again.code == 1);
  CHECK_THAT(again.err,
             ContainsSubstring((run / "results.json").string() + ": not JSON (parse error at line 1, column 3: ") &&
                 ContainsSubstring("; --fresh starts the run again from nothing\n"));
  CHECK_THAT(message(), ContainsSubstring((run / "results.json").string() + ": not JSON"));
  write_file_atomically(run / "results.json", good_results);
  CHECK(message() == "accepted");  // nothing was lost on the way
  CHECK(read_file(model) == good_model);
}

TEST_CASE("a run whose newest checkpoint is damaged goes on from the one before, to the same bits", "[faults]") {
  const TinyFiles files;
  const auto spec = files.spec(long_training());
  REQUIRE(headlab_run(spec, files.out()).code == 0);
  const auto run = files.run(), stage = run / "checkpoints" / "train";
  const auto expected = final_weights(run);
  for (const std::string damage : {"cut", "foreign", "no state"}) {
    INFO(damage);
    const auto newest = stage / "step-00000040";
    REQUIRE(fs::exists(newest));
    REQUIRE(fs::exists(stage / "step-00000030"));
    if (damage == "cut") fs::resize_file(newest / "model.safetensors", fs::file_size(newest / "model.safetensors") - 1);
    if (damage == "foreign") write_file_atomically(newest / "optimizer.safetensors", "{}");
    if (damage == "no state") write_file_atomically(newest / "state.json", "");
    fs::remove_all(stage / "final");
    fs::remove(run / "results.json");
    const auto again = run_program({"run", spec, "--out", files.out(), "--threads", "1"});
    INFO(again.err);
    REQUIRE(again.code == 0);
    CHECK_THAT(again.out, ContainsSubstring("goes on from step 30"));
    CHECK(final_weights(run) == expected);
  }
}

TEST_CASE("a file that may not grow stops a run with its reason, and the checkpoint before stays", "[faults]") {
  const TinyFiles files;
  const auto spec = files.spec(long_training());
  const auto out = files / "small";
  const auto folder = killed_after_step_10(spec, out);
  const auto saved = latest_checkpoint(folder / "checkpoints" / "train");
  REQUIRE(saved);
  const auto kept = read_file(*saved / "model.safetensors");
  const auto limit =
      (fs::file_size(*saved / "model.safetensors") + fs::file_size(*saved / "optimizer.safetensors")) / 2;
  Running limited(headlab_command(endless(spec, out)), "", [&] {
    const rlimit small{limit, limit};
    setrlimit(RLIMIT_FSIZE, &small);
  });
  const auto stopped = limited.wait();
  CHECK(stopped.code == 1);
  CHECK_THAT(stopped.err,
             ContainsSubstring(".new/optimizer.safetensors: cannot be written: the file would be larger than the limit "
                               "of the file system or of this process (ulimit -f)\n"));
  CHECK(std::count(stopped.err.begin(), stopped.err.end(), '\n') == 1);
  const auto after = latest_checkpoint(folder / "checkpoints" / "train");
  REQUIRE(after);
  CHECK(*after == *saved);
  CHECK(load_checkpoint(*after).model.size() > 10);
  CHECK(read_file(*after / "model.safetensors") == kept);
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints" / "train"))
    CHECK(entry.path().extension() != ".new");
}

TEST_CASE("a full disk stops a run with its reason; what was saved is used, and the run goes on when there is space",
          "[faults]") {
  if (skipped(Running({"unshare", "-m", "true"}).wait().code != 0, "no right to mount a small disk")) return;
  const TinyFiles files;
  const auto spec =
      files.spec("[" + train_stage(2) + R"(, {"train": {"name": "more", "steps": 2, "batch": {"max_tokens": 200}}}])");
  REQUIRE(headlab_run(spec, files / "whole").code == 0);
  const auto whole = only_run(files / "whole", "tiny");
  // Room for all but half of what the second training saves.
  const auto size = disk_bytes(files / "whole") - disk_bytes(whole / "checkpoints" / "more") / 2;
  fs::create_directory(files / "disk");
  files.write("script", R"(
mount -t tmpfs -o size=$2 none "$1/disk" || exit 77
run() { "$3" run "$1/tiny.json" --out "$1/disk/runs" --threads 1 --quiet; }
run "$@"; echo "exit $?"
echo "a b" | "$3" translate "$1"/disk/runs/tiny/* --stage train || exit 1
mount -o remount,size=100m "$1/disk"
run "$@"; echo "exit $?"
cmp "$1"/disk/runs/tiny/*/checkpoints/more/final/model.safetensors "$4" && echo equal
)");
  Running script({"unshare", "-m", "sh", (files / "script").string(), (files / "script").parent_path().string(),
                  std::to_string(size), test::program_file(),
                  (whole / "checkpoints" / "more" / "final" / "model.safetensors").string()});
  const auto finished = script.wait();
  if (skipped(finished.code == 77, "no right to mount a small disk")) return;
  INFO(finished.out << finished.err);
  CHECK(finished.code == 0);
  CHECK(finished.out.rfind("exit 1\n", 0) == 0);
  CHECK_THAT(finished.out, ContainsSubstring("\nexit 0\nequal\n"));
  CHECK_THAT(finished.err,
             ContainsSubstring(": cannot be written: the disk is full; free some space or choose another folder\n"));
  CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
}

TEST_CASE("output that can't be written to its end is an error, not a shorter output", "[faults]") {
  if (skipped(!fs::exists("/dev/full"), "no /dev/full")) return;
  Running run({"sh", "-c", "exec \"$0\" list >/dev/full", test::program_file()});
  const auto finished = run.wait();
  CHECK(finished.code == 1);
  CHECK(finished.err == "headlab: standard output could not be written to its end; is the disk full?\n");
}

TEST_CASE("without permission a run says for which file or folder, and the way out", "[faults]") {
  const TinyFiles files;
  const auto root = fs::path(files.out()).parent_path();
  fs::permissions(root, fs::perms::owner_all | fs::perms::group_exec | fs::perms::group_read | fs::perms::others_exec |
                            fs::perms::others_read);
  const auto spec = files.spec("[" + train_stage(1) + "]");
  const auto as_nobody = [&](const std::vector<std::string>& arguments) {
    return Running(headlab_command(arguments), "", become_nobody).wait();
  };
  if (skipped(as_nobody({"--version"}).code != 0, "other users can't run this program")) return;

  fs::create_directory(files / "closed");
  fs::permissions(files / "closed",
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  const auto no_folder = as_nobody({"run", spec, "--out", (files / "closed").string(), "--quiet"});
  CHECK(no_folder.code == 1);
  CHECK(no_folder.err.rfind((files / "closed" / "tiny").string(), 0) == 0);
  CHECK_THAT(no_folder.err,
             ContainsSubstring(": cannot be made: no permission; change the permissions or choose another place\n"));

  const auto shut = [](const fs::path& file) { fs::permissions(file, fs::perms::none); };
  const auto open = [](const fs::path& file) { fs::permissions(file, fs::perms::owner_all | fs::perms::others_read); };
  const auto out = files / "open";
  fs::create_directory(out);
  fs::permissions(out, fs::perms::all);
  shut(files / "train.tgt");
  const auto no_data = as_nobody({"run", spec, "--out", out.string(), "--quiet"});
  CHECK(no_data.code == 1);
  CHECK(no_data.err == (files / "train.tgt").string() +
                           ": cannot be read: no permission; change the permissions or choose another place\n");
  open(files / "train.tgt");
  shut(spec);
  const auto no_spec = as_nobody({"run", spec, "--out", out.string(), "--quiet"});
  CHECK(no_spec.code == 2);
  CHECK(no_spec.err == spec + ": cannot be read: Permission denied\n");
  open(spec);
  const auto run = as_nobody({"run", spec, "--out", out.string(), "--quiet"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto model = only_run(out, "tiny") / "checkpoints" / "train" / "final" / "model.safetensors";
  shut(model);
  const auto no_model = as_nobody({"translate", only_run(out, "tiny").string()});
  CHECK(no_model.code == 1);
  CHECK(no_model.err ==
        model.string() + ": cannot be read: no permission; change the permissions or choose another place\n");
}
