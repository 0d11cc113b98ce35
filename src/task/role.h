#pragma once

#include <map>
#include <memory>

#include "modules/tensor/registry.h"
#include "src/task/annotated.h"

/// Which tokens of a text a head of a role may look at, as the data knows it; attentions use it through the gate
/// role_masks.
namespace headlab {

class Task;
struct TokenBatch;

/// A text as a model reads it.
struct RoleText {
  std::vector<int64_t> ids;
  std::vector<char> special;            // of each id: whether it is an end of the text, and no token of it
  const AnnotatedText* tree = nullptr;  // nullptr: this data has none
  int64_t number = 0;                   // of the example in its split
  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};

/// Pairs of places: whether the token at one may look at the token at the other.
class Looks {
 public:
  explicit Looks(int64_t size) : size_(size), pairs_(static_cast<std::size_t>(size * size)) {}
  int64_t size() const { return size_; }
  void allow(int64_t from, int64_t to) { pairs_[static_cast<std::size_t>(from * size_ + to)] = 1; }
  /// From every token.
  void allow_all_to(int64_t to) {
    for (int64_t from = 0; from < size_; ++from) allow(from, to);
  }
  bool allowed(int64_t from, int64_t to) const { return pairs_[static_cast<std::size_t>(from * size_ + to)] != 0; }
  const std::vector<unsigned char>& pairs() const { return pairs_; }

 private:
  int64_t size_;
  std::vector<unsigned char> pairs_;
};

/// What a role may know of the training data.
class TrainingTexts {
 public:
  explicit TrainingTexts(const Task& task) : task_(task) {}
  /// In how many training texts an id stands; they are counted when it is first asked.
  int64_t with(int64_t id) const;
  /// What a person would write for an id; "" for a special one.
  std::string token(int64_t id) const;

 private:
  const Task& task_;
  mutable std::vector<int64_t> with_;
};

/// The role's rule: which tokens of a text may look at which.
struct Role {
  virtual ~Role() = default;
  virtual void look(const RoleText& text, const TrainingTexts& training, Looks& looks) const = 0;
  /// Whether it needs RoleText::tree.
  virtual bool needs_trees() const { return false; }
};

/// What the options of every role have.
struct RoleCommon {
  std::string name;
  void describe_name(Fields& fields) {
    fields.add("name", name, "what the model's heads call it").means("absent: its type");
  }
};

using RoleRegistry = Registry<Role>;
const RoleRegistry& roles();
const Catalogue& role_catalogue();

/// The name of a role: its own, or its type.
std::string role_name(const Choice& role);

/// Tells the roles of a task's texts with each batch: TokenBatch::inputs.side[role_side(name)], bool [B,S,S], S the
/// length of what the model reads (the source, where there are two texts); padding looks at nothing and is looked at by
/// nothing.
class RoleTeller {
 public:
  /// Throws UsageError where a role needs trees and the task's data has none.
  RoleTeller(const Choices& chosen, const Task& task);
  void tell(const std::string& split, TokenBatch& batch) const;

 private:
  const std::vector<AnnotatedText>& trees(const std::string& split) const;
  const Task& task_;
  TrainingTexts training_;
  std::vector<std::pair<std::string, std::shared_ptr<Role>>> roles_;
  bool needs_trees_ = false;  // what none needs is not made
  mutable std::map<std::string, std::vector<AnnotatedText>> trees_;
};

}  // namespace headlab
