#include "src/export/trace.h"

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/common_subexpression_elimination.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/shape_analysis.h>

#include <memory>
#include <set>
#include <unordered_map>

#include "modules/base/error.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

using c10::IValue;
using torch::Tensor;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

torch::jit::Module mirror(torch::nn::Module& module, const c10::QualifiedName& name,
                          const std::shared_ptr<torch::jit::CompilationUnit>& unit) {
  torch::jit::Module copy(name, unit, /*shouldMangle=*/true);
  copy.register_attribute("training", c10::BoolType::get(), false);
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    copy.register_parameter(item.key(), item.value(), /*is_buffer=*/false);
  for (const auto& item : module.named_buffers(/*recurse=*/false)) copy.register_buffer(item.key(), item.value());
  for (const auto& item : module.named_children())
    copy.register_module(item.key(), mirror(*item.value(), c10::QualifiedName(name, "Part"), unit));
  return copy;
}

/// Keeps the tracer from warning about values that become constants: those that matter are found by `check`.
class QuietTracer {
 public:
  QuietTracer() : before_(torch::jit::tracer::getTracerStateWarnMode()) {
    torch::jit::tracer::getTracerStateWarnMode() = false;
  }
  ~QuietTracer() { torch::jit::tracer::getTracerStateWarnMode() = before_; }
  QuietTracer(const QuietTracer&) = delete;
  QuietTracer& operator=(const QuietTracer&) = delete;

 private:
  bool before_;
};

void remove_dropout(Graph& graph) {
  for (auto* node : graph.nodes()) {
    if (node->kind() != c10::aten::dropout) continue;
    const auto train = torch::jit::toIValue(node->input(2));
    if (train && !train->toBool()) node->output()->replaceAllUsesWith(node->input(0));
  }
}

/// The values of a graph that do not depend on its inputs.
class Known {
 public:
  Known(Graph& graph, const torch::jit::Module& module) {
    values_[graph.inputs().at(0)] = module._ivalue();
    for (const auto& tensor : module.parameters()) storages_.insert(tensor.storage().unsafeGetStorageImpl());
    for (const auto& tensor : module.buffers()) storages_.insert(tensor.storage().unsafeGetStorageImpl());
    for (auto* node : graph.nodes()) visit(node);
  }
  bool has(Value* value) const { return values_.count(value) > 0; }
  /// The tensor of a value that was computed, and is not a view of a parameter; undefined: there is none.
  Tensor computed(Value* value) const {
    const auto found = values_.find(value);
    if (found == values_.end() || !found->second.isTensor()) return {};
    const auto kind = value->node()->kind();
    if (kind == c10::prim::GetAttr || kind == c10::prim::Constant) return {};
    const auto& tensor = found->second.toTensor();
    return storages_.count(tensor.storage().unsafeGetStorageImpl()) ? Tensor() : tensor;
  }

 private:
  void visit(Node* node) {
    for (auto* input : node->inputs())
      if (!has(input)) return;
    if (node->outputs().size() != 1 || !node->blocks().empty()) return;
    auto* output = node->output();
    if (node->kind() == c10::prim::GetAttr) {
      values_[output] = values_.at(node->input()).toObject()->getAttr(node->s(c10::attr::name));
    } else if (node->kind() == c10::prim::Constant) {
      values_[output] = torch::jit::toIValue(output).value_or(IValue());
    } else if (node->kind() == c10::prim::ListConstruct) {
      c10::List<int64_t> list;
      for (auto* input : node->inputs()) {
        if (!values_.at(input).isInt()) return;
        list.push_back(values_.at(input).toInt());
      }
      values_[output] = list;
    } else if (const auto* schema = node->maybeSchema();
               schema && !schema->is_mutable() && node->kind().is_aten() && !node->isNondeterministic()) {
      Stack stack;
      for (auto* input : node->inputs()) stack.push_back(values_.at(input));
      node->getOperation()(stack);
      values_[output] = stack.back();
    }
  }
  std::unordered_map<Value*, IValue> values_;
  std::set<const void*> storages_;
};

/// Replaces what parameters alone determine by buffers of `module`.
void fold(Graph& graph, torch::jit::Module& module, const std::string& method) {
  const Known known(graph, module);
  const auto is_needed = [&](Value* value) {  // by something that is not known itself
    for (const auto& use : value->uses())
      if (use.user->kind() == c10::prim::Return || use.user->outputs().size() != 1 || !known.has(use.user->output()))
        return true;
    return false;
  };
  std::vector<std::pair<Value*, Tensor>> folded;
  for (auto* node : graph.nodes()) {
    if (node->outputs().size() != 1 || !is_needed(node->output())) continue;
    const auto tensor = known.computed(node->output());
    if (tensor.defined()) folded.emplace_back(node->output(), tensor);
  }
  torch::jit::WithInsertPoint at_start(*graph.nodes().begin());
  for (std::size_t i = 0; i < folded.size(); ++i) {
    const auto name = method + "_constant" + std::to_string(i);
    module.register_buffer(name, folded[i].second.detach().contiguous());
    folded[i].first->replaceAllUsesWith(
        graph.insertGetAttr(graph.inputs().at(0), name)->setType(c10::TensorType::get()));
  }
}

/// What would bind a recording to one device or size.
void check(Graph& graph, const std::string& method) {
  for (auto* node : graph.nodes()) {
    if (node->kind() != c10::prim::Constant) continue;
    const auto value = torch::jit::toIValue(node->output());
    if (!value) continue;
    std::string users;
    for (const auto& use : node->output()->uses())
      users += std::string(users.empty() ? "" : ", ") + use.user->kind().toQualString();
    if (value->isDevice() && !users.empty())
      throw Error("export: " + method + " names the device " + value->toDevice().str() + " (" + users +
                  "): a module makes a tensor from options with a device while recorded; make it from its inputs");
    if (value->isTensor() && (value->toTensor().dim() > 0 || !value->toTensor().is_cpu()))
      throw Error("export: " + method + " holds a fixed tensor of " + std::to_string(value->toTensor().dim()) +
                  " dimensions (" + users +
                  "): a module makes it while recorded; register it as a buffer or make it from the inputs");
  }
}

}  // namespace

torch::jit::Module mirror(torch::nn::Module& module, const std::string& type_name) {
  return mirror(module, c10::QualifiedName("__torch__.headlab." + type_name),
                std::make_shared<torch::jit::CompilationUnit>());
}

void record(torch::jit::Module& mirrored, const std::string& method, const std::vector<std::string>& names,
            std::vector<IValue> inputs, const std::function<IValue(std::vector<IValue>)>& function) {
  const torch::NoGradGuard no_grad;
  const QuietTracer quiet;
  const auto traced = torch::jit::tracer::trace(
      std::move(inputs), [&](torch::jit::Stack stack) { return torch::jit::Stack{function(std::move(stack))}; },
      [](const Tensor&) { return std::string(); },
      /*strict=*/true, /*force_outplace=*/false, &mirrored, names);
  auto graph = traced.first->graph;
  remove_dropout(*graph);
  torch::jit::EliminateDeadCode(graph);
  torch::jit::EliminateCommonSubexpression(graph);
  fold(*graph, mirrored, method);
  torch::jit::EliminateDeadCode(graph);
  torch::jit::EraseShapeInformation(graph);
  check(*graph, method);
  const auto type = mirrored.type();
  auto* added =
      mirrored._ivalue()->compilation_unit()->create_function(c10::QualifiedName(*type->name(), method), graph);
  type->addMethod(added);
}

}  // namespace headlab
