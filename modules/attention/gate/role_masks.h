#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct RoleMasksOptions : Described<RoleMasksOptions> {
  std::vector<std::string> roles;
  void describe(Fields& fields) override {
    fields
        .add("roles", roles,
             "the role of each head, from the first on, as task.roles names them; \"\" and heads after the last: no "
             "mask")
        .required()
        .role();
  }
};

/// Heads that see the keys of a role alone: softmax over S + (-inf)(1 - M_role).          (2012.12366, section 3)
/// M_role is told with each batch: Forward::side[role_side(role)], bool [B,S,S], true = may attend (src/task/role.h).
/// Other conditions, such as padding, hold too; a row with nothing to attend to gives zeros. In the self-attention of
/// what reads the whole text at once: an encoder, or a decoder alone without a cache. Throws ShapeError in a
/// cross-attention or for more roles than heads, and in a pass UsageError for a role that the batch does not tell, and
/// where keys are cached.
class RoleMasks : public Gate {
 public:
  RoleMasks(const RoleMasksOptions& options, Shape shape);
  void plan(HeadPlan& plan, const AttentionCall& call) override;

 private:
  Shape shape_;
  std::vector<std::string> roles_;  // by original head
};

/// Where Forward::side holds the mask of a role.
inline std::string role_side(const std::string& role) { return "role/" + role; }

void role_masks_rule(const RoleMasksOptions& options, const AttentionAround& around);

}  // namespace headlab
