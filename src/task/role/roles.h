#pragma once

#include "src/task/role.h"

/// The masks of 2012.12366, section 3.1, and their control.
namespace headlab {

struct NeighboursOptions : Described<NeighboursOptions>, RoleCommon {
  int64_t distance = 2;
  void describe(Fields& fields) override;
};

/// |i - j| <= distance ("relative position").
class Neighbours : public Role {
 public:
  explicit Neighbours(const NeighboursOptions& options) : options_(options) {}
  void look(const RoleText& text, const TrainingTexts& training, Looks& looks) const override;

 private:
  NeighboursOptions options_;
};

struct SyntaxOptions : Described<SyntaxOptions>, RoleCommon {
  void describe(Fields& fields) override { describe_name(fields); }
};

/// A word looks at itself, its head and its children, with all their pieces; a special id at itself ("dependency
/// syntax").
class Syntax : public Role {
 public:
  explicit Syntax(const SyntaxOptions&) {}
  void look(const RoleText& text, const TrainingTexts& training, Looks& looks) const override;
  bool needs_trees() const override { return true; }
};

struct MajorRelationsOptions : Described<MajorRelationsOptions>, RoleCommon {
  std::vector<std::string> relations{"nsubj", "obj", "amod", "advmod"};
  void describe(Fields& fields) override;
};

/// All look at the words at either end of one of the relations, and at special ids ("major relations").
class MajorRelations : public Role {
 public:
  explicit MajorRelations(const MajorRelationsOptions& options) : options_(options) {}
  void look(const RoleText& text, const TrainingTexts& training, Looks& looks) const override;
  bool needs_trees() const override { return true; }

 private:
  MajorRelationsOptions options_;
};

struct SeparatorsOptions : Described<SeparatorsOptions>, RoleCommon {
  std::vector<std::string> tokens{";", "?", ",", ".", ":"};
  void describe(Fields& fields) override;
};

/// All look at separators and at special ids ("delimiters").
class Separators : public Role {
 public:
  explicit Separators(const SeparatorsOptions& options) : options_(options) {}
  void look(const RoleText& text, const TrainingTexts& training, Looks& looks) const override;

 private:
  SeparatorsOptions options_;
};

struct RareOptions : Described<RareOptions>, RoleCommon {
  int64_t least = 2;
  double share = 0.1;
  void describe(Fields& fields) override;
  /// max(least, floor(share n)) of a text's n tokens
  int64_t count(const RoleText& text) const;
};

/// All look at the max(least, floor(share n)) tokens of a text of n that stand in the fewest training texts; special
/// ids, numbers and tokens of one character don't count; of equals the first ("rare words").
class Rare : public Role {
 public:
  explicit Rare(const RareOptions& options) : options_(options) {}
  void look(const RoleText& text, const TrainingTexts& training, Looks& looks) const override;

 private:
  RareOptions options_;
};

struct RandomRoleOptions : RareOptions {
  int64_t seed = 1;
  void describe(Fields& fields) override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<RandomRoleOptions>(*this); }
};

/// The control: as many tokens as `rare` would look at, drawn for each text by itself.
class RandomRole : public Role {
 public:
  explicit RandomRole(const RandomRoleOptions& options) : options_(options) {}
  void look(const RoleText& text, const TrainingTexts& training, Looks& looks) const override;

 private:
  RandomRoleOptions options_;
};

}  // namespace headlab
