#pragma once

#include <string>
#include <vector>

#include "modules/tensor/shapes.h"

/// Layer-wise relevance propagation: how much of a number of the output is owed to each number before it.
///
/// While a Guard lives, what the functions below give on its thread has the same values and another backward pass:
/// relevance R flows where a gradient would. One call of torch::autograd::grad that starts with the relevance of a
/// logit gives that of every number on the way. Without a guard each function is the plain operation, to the bit. For
/// models in evaluation mode.
///
/// Of a sum y_j = sum_i z_ij + b_j of I contributions, the positive and the negative ones are taken by themselves:
///   P_j = sum_i max(z_ij, 0) + max(b_j, 0),   N_j = sum_i min(z_ij, 0) + min(b_j, 0)
///   R_i = sum_j R_j (alpha (max(z_ij, 0) + max(b_j, 0) / I) / P_j + (1 - alpha) (min(z_ij, 0) + min(b_j, 0) / I) /
///   N_j)
/// (10.1371/journal.pone.0130140, eq. 60; alpha = 1/2 and a bias that all inputs share equally as 1905.09418 has it.)
/// Where one of P_j and N_j is empty the other gives all; where both are, R_j goes to the inputs in equal parts. So
/// each number gives away all that it got, no share is below 0, and no epsilon is needed, since no sum has terms of
/// both signs: what enters as relevance of a logit is, but for rounding, what arrives at the embeddings. A number that
/// several read gets the sum. (The program of 1905.09418 adds b_j / I to z_ij before it looks at the sign, and scales
/// each layer's sum afterwards.)
///
///   product with a matrix    z_ij = x_i W_ji
///   residual sum             z = x and y
///   weights times values     z_s = w_ts v_s: the weights are held constant, and queries and keys get nothing.
///   Contributions
///                            through them do not add up to what the head gives, so that something would be made up or
///                            lost; held, they do (2202.07304; an option of 1905.09418's program).
///   number by number         activations, norms with their statistics held (2202.07304), gates, factors on heads:
///                            y_i has the one input x_i, which gets R_i. Of a product of two, as in SwiGLU, the factor
///                            that gates is held constant.
/// It ends at the embeddings, with their positions.
namespace headlab::relevance {

/// `alpha`, from 0 to 1: the part of the positive contributions where there are both.
class Guard {
 public:
  explicit Guard(double alpha = 0.5);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  double before_;
};

/// Whether a guard lives on this thread.
bool flows();

/// x[..., I], weight [O,I], bias [O] or undefined -> x W^T + b, [..., O]. Parameters get nothing.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// x + y, of one shape.
Tensor sum(const Tensor& x, const Tensor& y);

/// weights [..., T,S], values [..., S,K] -> their product [..., T,K]. A sum that is 0 for want of contributions gives
/// to the values by their weights; a row without any weight has no input to give to.
Tensor weighted_sum(const Tensor& weights, const Tensor& values);

/// `y`, which was made from x number by number: x gets its relevance. Of one shape.
Tensor through(const Tensor& x, const Tensor& y);

/// An operation that would pass on a gradient in relevance's place.
struct Uncovered {
  std::string operation;  // "MulBackward0"
  uint64_t order = 0;     // when it ran: later ones have larger numbers (Node::sequence_nr)
};

/// Those on the way from `y` back to what requires a gradient, the last one first; empty: all is relevance. What only
/// moves numbers (views, slices, concatenation, copies, lookups) needs no rule.
std::vector<Uncovered> uncovered(const Tensor& y);

}  // namespace headlab::relevance
