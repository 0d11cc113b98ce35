#include "src/task/role.h"

#include <algorithm>

#include "modules/attention/gate/role_masks.h"
#include "modules/base/nearest.h"
#include "modules/tensor/torch.h"
#include "src/task/readings.h"
#include "src/task/role/roles.h"
#include "src/task/token_loss.h"

namespace headlab {

const RoleRegistry& roles() {
  static const RoleRegistry registry =
      RoleRegistry("role", "which tokens of a text a head of this role may look at")
          .entry<Neighbours, NeighboursOptions>("neighbours", "tokens at most so far away", "2012.12366")
          .entry<Syntax, SyntaxOptions>("syntax", "a word, its head and its children; needs trees", "2012.12366")
          .entry<MajorRelations, MajorRelationsOptions>(
              "major_relations", "words at the ends of some relations; needs trees", "2012.12366")
          .entry<Separators, SeparatorsOptions>("separators", "punctuation, and the ends of the text", "2012.12366")
          .entry<Rare, RareOptions>("rare", "the tokens that stand in the fewest training texts", "2012.12366")
          .entry<RandomRole, RandomRoleOptions>("random", "as many tokens, drawn at random: the control");
  return registry;
}
const Catalogue& role_catalogue() { return roles().catalogue(); }

std::string role_name(const Choice& role) {
  const auto& name = dynamic_cast<const RoleCommon&>(role.options()).name;
  return name.empty() ? role.type() : name;
}

int64_t TrainingTexts::with(int64_t id) const {
  if (with_.empty()) {
    with_.resize(1);
    for (const auto& examples : first_batches(task_, "train", 0, 8192)) {
      const auto read = readings_of(task_.collect("train", examples, torch::kCPU).inputs);
      const auto &ids_BS = read.source_BS, &mask_BS = read.source_mask_BS;
      for (int64_t b = 0; b < ids_BS.size(0); ++b) {
        const auto ids =
            std::get<0>(at::_unique2(mask_BS.defined() ? ids_BS[b].masked_select(mask_BS[b]) : ids_BS[b])).contiguous();
        if (ids.numel() == 0) continue;
        const auto* at = ids.data_ptr<int64_t>();
        const auto largest = static_cast<std::size_t>(at[ids.numel() - 1]);
        if (largest >= with_.size()) with_.resize(largest + 1);
        for (int64_t i = 0; i < ids.numel(); ++i) ++with_[static_cast<std::size_t>(at[i])];
      }
    }
  }
  return id >= 0 && id < static_cast<int64_t>(with_.size()) ? with_[static_cast<std::size_t>(id)] : 0;
}

std::string TrainingTexts::token(int64_t id) const { return task_.token(id); }

RoleTeller::RoleTeller(const Choices& chosen, const Task& task) : task_(task), training_(task) {
  for (const auto& choice : chosen.items) {
    roles_.emplace_back(role_name(choice), roles().make(choice));
    if (!roles_.back().second->needs_trees()) continue;
    needs_trees_ = true;
    const auto* knows = dynamic_cast<const KnowsTrees*>(&task);
    if (!knows || knows->trees("train", 1).empty())
      throw UsageError("task.roles: " + in_quotes(choice.type()) +
                       " needs dependency trees, and this data has none; the grammar's source texts have");
  }
}

const std::vector<AnnotatedText>& RoleTeller::trees(const std::string& split) const {
  auto& known = trees_[split];
  if (known.empty() && needs_trees_)
    if (const auto* knows = dynamic_cast<const KnowsTrees*>(&task_)) known = knows->trees(split, 0);
  return known;
}

void RoleTeller::tell(const std::string& split, TokenBatch& batch) const {
  auto& inputs = batch.inputs;
  const auto read = readings_of(inputs);
  const auto ids_BS = read.source_BS.to(torch::kCPU).contiguous();
  const auto& mask_BS = read.source_mask_BS;
  const auto B = ids_BS.size(0), S = ids_BS.size(1);
  const auto lengths = mask_BS.defined() ? mask_BS.sum(1).to(torch::kCPU) : torch::full({B}, S, torch::kLong);
  const auto ends = task_.reads().ids;
  const auto& known = trees(split);
  std::vector<Tensor> masks(roles_.size());
  for (auto& mask : masks) mask = torch::zeros({B, S, S}, torch::kBool);
  for (int64_t b = 0; b < B; ++b) {
    RoleText text;
    const auto* ids = ids_BS.data_ptr<int64_t>() + b * S;
    text.ids.assign(ids, ids + lengths[b].item<int64_t>());
    for (const auto id : text.ids) text.special.push_back(id == ends.pad || id == ends.bos || id == ends.eos);
    text.number = batch.examples[static_cast<std::size_t>(b)];
    if (!known.empty()) text.tree = &known.at(static_cast<std::size_t>(text.number));
    const auto n = text.size();
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      Looks looks(n);
      roles_[r].second->look(text, training_, looks);
      auto* row = masks[r].data_ptr<bool>() + b * S * S;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) row[i * S + j] = looks.allowed(i, j);
    }
  }
  const auto device = read.source_BS.device();
  for (std::size_t r = 0; r < roles_.size(); ++r) inputs.side[role_side(roles_[r].first)] = masks[r].to(device);
}

}  // namespace headlab
