#include "src/export/torchscript.h"

#include <torch/script.h>

#include <cstdlib>
#include <fstream>

#include "src/checkpoint/checkpoint.h"
#include "src/decode/translate.h"
#include "src/run/stages/stages.h"
#include "src/spec/dump.h"
#include "src/task/translation.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

// What torch.jit.load in Python makes of the same sources; needs torch alone.
const char* python_program = R"(
import json, sys, torch
torch.set_num_threads(int(sys.argv[3]))
model = torch.jit.load(sys.argv[1])
texts = []
with open(sys.argv[2]) as file:
    for rows in json.load(file):
        texts += [[int(i) for i in row if i != model.target_pad] for row in model.translate_ids(torch.tensor(rows))]
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
    if (std::system((quoted(name) + " -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"torch\") is None)' >/dev/null 2>&1").c_str()) == 0)
      return name;
  return {};
}

using Ids = std::vector<std::vector<int64_t>>;

Ids rows_of(const Tensor& ids_BT, int64_t pad) {
  Ids rows;
  const auto on_cpu = ids_BT.to(torch::kCPU).contiguous();
  for (int64_t b = 0; b < on_cpu.size(0); ++b) {
    auto& row = rows.emplace_back();
    for (int64_t t = 0; t < on_cpu.size(1); ++t)
      if (const auto id = on_cpu.data_ptr<int64_t>()[b * on_cpu.size(1) + t]; id != pad) row.push_back(id);
  }
  return rows;
}

int64_t different(const Ids& a, const Ids& b) {
  int64_t count = std::abs(static_cast<int64_t>(a.size()) - static_cast<int64_t>(b.size()));
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a[i] != b[i];
  return count;
}

}  // namespace

void ExportStageOptions::describe(Fields& fields) {
  describe_common(fields, "export");
  fields.add("file", file, "name of the file in exports/").means("absent: the stage's name and .pt");
  fields.add("split", split, "the sources whose translations are compared").one_of({"train", "valid", "test"});
  fields.add("compare", compare, "number of sources to compare").at_least(0).unit("examples").means("0: all");
  fields.add("search", search, "the defaults of the file's translate methods");
}

void ExportStageOptions::rules(Problems& problems) const {
  const auto says = [&](const char* field) {
    problems.add(std::string("search.") + field, "an exported file translates greedily or by beam search, from the beginning; leave it out");
  };
  if (search.draws()) says("temperature");
  if (!search.prefix.empty()) says("prefix");
}

nlohmann::ordered_json ExportStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "export" : options_.name;
  const auto* task = dynamic_cast<const Translation*>(&context.task());
  if (!task) throw UsageError("export: the task is \"" + context.spec().task.type() + "\"; expected translation");
  auto model = context.model(options_.model);
  model->multiply_in(std::nullopt);  // a file computes in the type of its weights
  if (!context.masked(options_.model).empty())
    throw UsageError("export: the model of \"" + options_.model + "\" has masked heads; prune them, so that the file does not carry them");
  const auto path = context.folder().exports() / (options_.file.empty() ? context.full(stage) + ".pt" : options_.file);
  make_folders(path.parent_path());

  auto sources = task->sources(options_.split);
  if (options_.compare > 0 && static_cast<int64_t>(sources.size()) > options_.compare) sources.resize(options_.compare);
  ExportOptions options;
  options.source = text_ids(task->tokenizers().source);
  options.target = text_ids(task->tokenizers().target);
  options.search = options_.search;
  options.source_tokenizer = task->tokenizers().source;
  options.target_tokenizer = task->tokenizers().target;
  options.files = task->files();
  options.files["spec.json"] = dump_text(context.spec());
  options.files["heads.json"] = to_json(model->heads()).dump();
  options.sentences.assign(sources.begin(), sources.begin() + static_cast<int64_t>(std::min<std::size_t>(sources.size(), 20)));
  const auto report = export_torchscript(*model, path, options);
  auto weights = path;
  weights.replace_extension(".safetensors");
  write_safetensors(weights, named_tensors(*model), {{"heads", to_json(model->heads()).dump()}, {"model", dump(context.spec()).at("model").dump()}});

  // All sources through the file, in batches of a size and lengths of their own, in C++ and in Python.
  Forward none;
  Ids eager;
  for (const auto& found : translate_ids(*model, sources, options.source, options.target, options_.search, 8192, none))
    eager.push_back(found.front().ids);
  auto file = torch::jit::load(path.string());
  Ids in_cpp;
  auto batches = nlohmann::json::array();
  constexpr std::size_t batch = 37;
  for (std::size_t i = 0; i < sources.size(); i += batch) {
    const Ids part(sources.begin() + i, sources.begin() + std::min(sources.size(), i + batch));
    const auto padded = pad_right(part, options.source.pad, torch::kCPU).first;
    const auto rows = rows_of(file.get_method("translate_ids")({padded}).toTensor(), options.target.pad);
    in_cpp.insert(in_cpp.end(), rows.begin(), rows.end());
    auto& json = batches.emplace_back(nlohmann::json::array());
    for (int64_t b = 0; b < padded.size(0); ++b)
      json.push_back(std::vector<int64_t>(padded[b].data_ptr<int64_t>(), padded[b].data_ptr<int64_t>() + padded.size(1)));
  }
  nlohmann::ordered_json result{{"file", path.filename().string()}, {"bytes", report.bytes}, {"max_difference", report.max_difference},
                                {"compared", sources.size()}};
  auto wrong = different(eager, in_cpp);
  result["different_in_cpp"] = wrong;
  const auto python = python_with_torch();
  std::string also = "C++";
  if (python.empty()) {
    result["different_in_python"] = nullptr;  // no Python with torch was found
  } else {
    const auto input = path.string() + ".sources.json", output = path.string() + ".python.json", program = path.string() + ".py";
    std::ofstream(input) << batches.dump();
    std::ofstream(program) << python_program;
    const auto command = quoted(python) + " -W ignore " + quoted(program) + " " + quoted(path.string()) + " " + quoted(input) + " " +
                         std::to_string(at::get_num_threads()) + " >" + quoted(output);
    if (std::system(command.c_str()) != 0) throw Error("export: " + path.string() + " does not run in Python: " + command);
    const auto in_python = different(eager, nlohmann::json::parse(read_file(output)).get<Ids>());
    result["different_in_python"] = in_python;
    wrong += in_python;
    also += " and Python";
    for (const auto& name : {input, output, program}) std::filesystem::remove(name);
  }
  result["different"] = wrong;
  result["text"] = report.no_text.empty() ? "translate takes and gives text" : report.no_text;
  context.console().line("export", (path.parent_path().filename() / path.filename()).string() + "   TorchScript, " +
                                       byte_count(static_cast<double>(report.bytes)) + "; " +
                                       (wrong == 0 ? "same " + with_commas(static_cast<int64_t>(sources.size())) + " translations as eager in " + also
                                                   : with_commas(wrong) + " translations differ from eager"));
  return result;
}

}  // namespace headlab
