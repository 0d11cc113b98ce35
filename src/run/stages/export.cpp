#include "src/export/torchscript.h"

#include <torch/script.h>

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <optional>

#include "modules/base/nearest.h"
#include "modules/model/frame_ctc.h"
#include "modules/model/frame_encoder.h"
#include "src/checkpoint/checkpoint.h"
#include "src/decode/pad.h"
#include "src/decode/translate.h"
#include "src/export/frame_writer.h"
#include "src/export/frames.h"
#include "src/export/single_stack.h"
#include "src/run/stages/stages.h"
#include "src/spec/dump.h"
#include "src/task/token_loss.h"
#include "src/task/transcription.h"
#include "src/task/translation.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

// What torch.jit.load in Python makes of the same inputs; needs torch alone.
const char* python_translations = R"(
import json, sys, torch
torch.set_num_threads(int(sys.argv[3]))
model = torch.jit.load(sys.argv[1])
texts = []
with open(sys.argv[2]) as file:
    for rows in json.load(file):
        texts += [[int(i) for i in row if i != model.target_pad] for row in model.translate_ids(torch.tensor(rows))]
json.dump(texts, sys.stdout)
)";

const char* python_answers = R"(
import json, sys, torch
torch.set_num_threads(int(sys.argv[3]))
model = torch.jit.load(sys.argv[1])
answers = []
with open(sys.argv[2]) as file, torch.no_grad():
    for ids, mask in json.load(file):
        answers += model(torch.tensor(ids), torch.tensor(mask, dtype=torch.bool)).argmax(-1).reshape(len(ids), -1).tolist()
json.dump(answers, sys.stdout)
)";

const char* python_transcriptions = R"(
import json, sys, torch
torch.set_num_threads(int(sys.argv[3]))
model = torch.jit.load(sys.argv[1])
texts = []
with open(sys.argv[2]) as file, torch.no_grad():
    for frames, mask in json.load(file):
        written = model.transcribe(torch.tensor(frames), torch.tensor(mask, dtype=torch.bool))
        texts += [[i for i in row if i != model.target_pad] for row in written.tolist()]
json.dump(texts, sys.stdout)
)";

std::string quoted(const std::string& text) {
  std::string safe = "'";
  for (char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe + "'";
}

// The Python that has torch, or nothing.
std::string python_with_torch() {
  std::vector<std::string> names;
  if (const char* name = std::getenv("HEADLAB_PYTHON")) names.push_back(name);
  names.push_back("python3");
  for (const auto& name : names)
    if (std::system(
            (quoted(name) +
             " -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"torch\") is None)' >/dev/null 2>&1")
                .c_str()) == 0)
      return name;
  return {};
}

using Ids = std::vector<std::vector<int64_t>>;

Ids rows_of(const Tensor& ids_BT) {
  Ids rows;
  const auto on_cpu = ids_BT.to(torch::kCPU, torch::kLong).contiguous();
  const auto* id = on_cpu.data_ptr<int64_t>();
  for (int64_t b = 0; b < on_cpu.size(0); ++b, id += on_cpu.size(1)) rows.emplace_back(id, id + on_cpu.size(1));
  return rows;
}

// [B][T][F]
nlohmann::json numbers_of(const Tensor& frames_BTF) {
  auto rows = nlohmann::json::array();
  const auto on_cpu = frames_BTF.to(torch::kCPU, torch::kFloat64).contiguous();
  for (int64_t b = 0; b < on_cpu.size(0); ++b) {
    auto& row = rows.emplace_back(nlohmann::json::array());
    for (int64_t t = 0; t < on_cpu.size(1); ++t) {
      const auto* first = on_cpu[b][t].const_data_ptr<double>();
      row.push_back(std::vector<double>(first, first + on_cpu.size(2)));
    }
  }
  return rows;
}

void append(Ids& to, const Ids& more) { to.insert(to.end(), more.begin(), more.end()); }

int64_t different(const Ids& a, const Ids& b) {
  int64_t count = std::abs(static_cast<int64_t>(a.size()) - static_cast<int64_t>(b.size()));
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a[i] != b[i];
  return count;
}

// What the program prints of the file and the inputs; nothing where there is no Python with torch.
std::optional<Ids> in_python(const char* program_text, const std::filesystem::path& path,
                             const nlohmann::json& inputs) {
  const auto python = python_with_torch();
  if (python.empty()) return std::nullopt;
  const auto input = path.string() + ".inputs.json", output = path.string() + ".python.json",
             program = path.string() + ".py";
  std::ofstream(input) << inputs.dump();
  std::ofstream(program) << program_text;
  const auto command = quoted(python) + " -W ignore " + quoted(program) + " " + quoted(path.string()) + " " +
                       quoted(input) + " " + std::to_string(at::get_num_threads()) + " >" + quoted(output);
  if (std::system(command.c_str()) != 0)
    throw Error("export: " + path.string() + " does not run in Python: " + command);
  auto answers = nlohmann::json::parse(read_file(output)).get<Ids>();
  for (const auto& name : {input, output, program}) std::filesystem::remove(name);
  return answers;
}

// What a file is compared on, and what came of it.
struct Compared {
  Ids eager, in_cpp;
  std::optional<Ids> in_python;
  std::string what;  // "translations"
};

constexpr std::size_t rows_at_once = 37;  // a batch size that no export was recorded at

// The first `limit` sources of a split (0: all), without their ends.
Ids sources_of(const Task& task, const std::string& split, int64_t limit) {
  auto count = static_cast<int64_t>(task.lengths(split).first.size());
  if (limit > 0) count = std::min(count, limit);
  Ids sources;
  for (int64_t i = 0; i < count; ++i) {
    auto row = rows_of(task.batch(split, {i}, torch::kCPU).inputs.source_BS).front();
    row.pop_back();
    sources.push_back(std::move(row));
  }
  return sources;
}

Compared compare_translations(Model& model, const Ids& sources, const ExportOptions& options,
                              const std::filesystem::path& path) {
  const auto &source = options.source, &target = options.target;
  Compared made;
  made.what = "translations";
  Forward none;
  for (const auto& found : translate_ids(model, sources, source, target, options.search, 8192, none))
    made.eager.push_back(found.front().ids);
  auto file = torch::jit::load(path.string());
  auto batches = nlohmann::json::array();
  for (std::size_t i = 0; i < sources.size(); i += rows_at_once) {
    const Ids part(sources.begin() + i, sources.begin() + std::min(sources.size(), i + rows_at_once));
    const auto padded = pad_right(part, source.pad, torch::kCPU).first;
    auto rows = rows_of(file.get_method("translate_ids")({padded}).toTensor());
    for (auto& row : rows) std::erase(row, target.pad);
    append(made.in_cpp, rows);
    batches.push_back(rows_of(padded));
  }
  made.in_python = in_python(python_translations, path, batches);
  return made;
}

Compared compare_transcriptions(FrameWriter& model, const Transcription& task, const std::string& split, int64_t limit,
                                const SearchOptions& search, const std::filesystem::path& path) {
  const torch::NoGradGuard no_grad;
  Mode evaluating(model, false);
  Compared made;
  made.what = "transcriptions";
  auto count = static_cast<int64_t>(task.lengths(split).first.size());
  if (limit > 0) count = std::min(count, limit);
  auto file = torch::jit::load(path.string());
  auto batches = nlohmann::json::array();
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(rows_at_once)) {
    std::vector<int64_t> examples(static_cast<std::size_t>(std::min<int64_t>(count - i, rows_at_once)));
    std::iota(examples.begin(), examples.end(), i);
    append(made.eager, task.written(model, split, examples, search, {}));
    const auto inputs = task.batch(split, examples, torch::kCPU).inputs;
    const auto frames = inputs.side.at(frames_name);
    const auto mask =
        inputs.source_mask_BS.defined() ? inputs.source_mask_BS : torch::ones_like(inputs.source_BS, torch::kBool);
    auto rows = rows_of(file.get_method("transcribe")({frames, mask}).toTensor());
    for (auto& row : rows) std::erase(row, task.writes().pad);
    append(made.in_cpp, rows);
    batches.push_back(nlohmann::json::array({numbers_of(frames), rows_of(mask)}));
  }
  made.in_python = in_python(python_transcriptions, path, batches);
  return made;
}

// The most probable answer of each question of a text; of padding whatever both say.
Compared compare_answers(Model& model, const Task& task, const std::string& split, int64_t limit,
                         const std::filesystem::path& path) {
  const torch::NoGradGuard no_grad;
  Mode evaluating(model, false);
  Compared made;
  made.what = "answers";
  const auto lengths = task.lengths(split).second;
  const auto count =
      limit > 0 ? std::min<int64_t>(limit, static_cast<int64_t>(lengths.size())) : static_cast<int64_t>(lengths.size());
  auto file = torch::jit::load(path.string());
  auto batches = nlohmann::json::array();
  const auto best = [](const Tensor& logits) { return rows_of(logits.argmax(-1).reshape({logits.size(0), -1})); };
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(rows_at_once)) {
    std::vector<int64_t> examples(static_cast<std::size_t>(std::min<int64_t>(count - i, rows_at_once)));
    std::iota(examples.begin(), examples.end(), i);
    auto inputs = task.batch(split, examples, torch::kCPU).inputs;
    if (!inputs.target_mask_BT.defined()) inputs.target_mask_BT = torch::ones_like(inputs.target_BT, torch::kBool);
    Forward run;
    const auto frames = inputs.side.find(frames_name);
    const bool has_frames = frames != inputs.side.end();
    const auto read = has_frames ? frames->second : inputs.target_BT;
    Batch there{{}, {}, inputs.target_BT.to(model.device()), inputs.target_mask_BT.to(model.device())};
    if (has_frames) there.side[frames_name] = read.to(model.device());
    append(made.eager, best(model.logits(there, run)));
    append(made.in_cpp, best(file.get_method("full")({read, inputs.target_mask_BT}).toTensor()));
    batches.push_back(nlohmann::json::array(
        {has_frames ? numbers_of(read) : nlohmann::json(rows_of(read)), rows_of(inputs.target_mask_BT)}));
  }
  made.in_python = in_python(python_answers, path, batches);
  return made;
}

}  // namespace

void ExportStageOptions::describe(Fields& fields) {
  describe_common(fields, "export");
  fields.add("file", file, "name of the file in exports/").means("absent: the stage's name and .pt");
  fields.add("split", split, "the sources whose translations are compared").one_of({"train", "valid", "test"});
  fields.add("compare", compare, "number of sources to compare").at_least(0).unit("examples").means("0: all");
  fields.add("absorb", absorb,
             "multiply matrices that follow each other into one another, where an attention has such");
  fields.add("search", search, "the defaults of the file's translate methods");
}

void ExportStageOptions::rules(Problems& problems) const {
  const auto says = [&](const char* field) {
    problems.add(std::string("search.") + field,
                 "an exported file translates greedily or by beam search, from the beginning; leave it out");
  };
  if (search.draws()) says("temperature");
  if (!search.prefix.empty()) says("prefix");
}

nlohmann::ordered_json ExportStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "export" : options_.name;
  const auto& task = context.task(options_.task);
  auto model = context.model(options_.model);
  model->multiply_in(std::nullopt);  // a file computes in the type of its weights
  if (!context.masked(options_.model).empty())
    throw UsageError("export: the model of " + in_quotes(context.resolve(options_.model)) +
                     " has masked heads; prune them, so that the file does not carry them");
  const auto path = context.folder().exports() / (options_.file.empty() ? context.full(stage) + ".pt" : options_.file);
  make_folders(path.parent_path());
  auto files = task.files();
  files["spec.json"] = dump_text(context.spec());
  files["heads.json"] = to_json(model->heads()).dump();

  ExportReport report;
  Compared compared;
  const bool pairs = !task.lengths(options_.split).first.empty();
  if (auto* writer = dynamic_cast<FrameWriter*>(model.get())) {
    auto search = options_.search;
    if (dynamic_cast<FrameCtc*>(writer)) search.beam = 1;  // such a file writes its best path
    report = export_frame_writer(*writer, path, task.writes(), search, files, options_.absorb);
    compared = compare_transcriptions(*writer, dynamic_cast<const Transcription&>(task), options_.split,
                                      options_.compare, search, path);
  } else if (pairs) {
    const auto sources = sources_of(task, options_.split, options_.compare);
    ExportOptions options;
    options.source = task.reads().ids;
    options.target = task.writes();
    options.search = options_.search;
    if (const auto* translation = dynamic_cast<const Translation*>(&task)) {
      options.source_tokenizer = translation->tokenizers().source;
      options.target_tokenizer = translation->tokenizers().target;
    }
    options.files = files;
    options.absorb = options_.absorb;
    options.sentences.assign(sources.begin(),
                             sources.begin() + static_cast<int64_t>(std::min<std::size_t>(sources.size(), 20)));
    report = export_torchscript(*model, path, options);
    compared = compare_translations(*model, sources, options, path);
  } else {
    report = dynamic_cast<FrameEncoder*>(model.get())
                 ? export_frames(*model, path, files, options_.absorb)
                 : export_single_stack(*model, path, task.writes(), files, options_.absorb);
    compared = compare_answers(*model, task, options_.split, options_.compare, path);
  }
  auto weights = path;
  weights.replace_extension(".safetensors");
  write_safetensors(
      weights, named_tensors(*model),
      {{"heads", to_json(model->heads()).dump()}, {"model", dump(context.model_options(options_.model)).dump()}});

  nlohmann::ordered_json result{{"file", path.filename().string()},
                                {"bytes", report.bytes},
                                {"max_difference", report.max_difference},
                                {"compared", compared.eager.size()}};
  auto wrong = different(compared.eager, compared.in_cpp);
  result["different_in_cpp"] = wrong;
  std::string also = "C++";
  if (!compared.in_python) {
    result["different_in_python"] = nullptr;  // no Python with torch was found
  } else {
    const auto in_python = different(compared.eager, *compared.in_python);
    result["different_in_python"] = in_python;
    wrong += in_python;
    also += " and Python";
  }
  result["different"] = wrong;
  result["text"] = report.no_text.empty() ? "translate takes and gives text" : report.no_text;
  const auto count = with_commas(static_cast<int64_t>(compared.eager.size()));
  context.console().line("export", (path.parent_path().filename() / path.filename()).string() + "   TorchScript, " +
                                       byte_count(static_cast<double>(report.bytes)) + "; " +
                                       (wrong == 0 ? "same " + count + " " + compared.what + " as eager in " + also
                                                   : with_commas(wrong) + " " + compared.what + " differ from eager"));
  return result;
}

}  // namespace headlab
