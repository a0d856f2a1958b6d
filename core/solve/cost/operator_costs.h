#pragma once
/// What operators do and keep, one table row each; operators that are not listed are element-wise and keep everything.
/// Inside this room and its tests only.
#include "graph/graph.h"

#include <cstdint>
#include <string_view>

namespace cleave::solve {

enum class Work : std::uint8_t {
  Nothing,      ///< shares its operand's memory
  Elementwise,  ///< one FLOP for each element of the largest tensor
  Product,      ///< two for each element of the result and each summed index
  Convolution,
  Attention,
  Lookup,  ///< reads as much of the table (the first operand) as the result has
};

/// What autograd keeps of an operator until the backward pass.
enum class Saves : std::uint8_t {
  Nothing,   ///< sums, views, copies, scalings by a number
  Factors,   ///< each operand whose counterpart needs a gradient
  Quotient,  ///< the divisor; the dividend when the divisor needs a gradient
  First,     ///< the first operand
  Operands,  ///< all floating-point operands
  Result,    ///< the first result
  FirstAndResult,
  Discrete,    ///< operands and results that are no reals: indices, conditions, masks
  Attention,   ///< query, key, value, result, and a float32 for each query (logsumexp)
  Mask,        ///< a byte for each element of the result, no value of the graph
  Loss,        ///< the log-softmax: as much as the logits, no value of the graph
  Experts,     ///< for each token of an expert what it computes (graph/expert_memory.h), no value of the graph
  Everything,  ///< operands and results
};

struct OperatorCosts {
  Work work = Work::Elementwise;
  Saves saves = Saves::Everything;
  bool stopsGradient = false;
};

/// By the operator's full name ("aten::mul.Tensor").
OperatorCosts operatorCosts(std::string_view op);

/// Product: how many elements each element of the result sums over; Convolution: weights a position; Attention: key
/// positions; 1 for everything else.
std::int64_t workDepth(const graph::Graph& graph, const graph::Node& node, Work work);

}  // namespace cleave::solve
