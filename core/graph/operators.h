#pragma once
/// Properties of operators that do not depend on placements or devices: one table, one row per operator.
///
/// A row defines the operator's cost class, the values that autograd saves, the memory of its results and the origin of
/// their dimensions. For a few it also defines how the operands make a layer (layers.h), or which of Cleave's own
/// operators it is. core/rules defines how placements pass through it, and core/libtorch/rank how a rank runs it.
/// Overloads share a row ("aten::add" is also "aten::add.Scalar") unless one has its own. Pure and thread-safe.
///
///     operatorOf("aten::mm").cost == CostClass::Product;
#include "base/result.h"
#include "graph/graph.h"
#include "graph/layer_kind.h"
#include "graph/parallel_op.h"

#include <optional>
#include <span>
#include <string_view>

namespace cleave::graph {

enum class CostClass : std::uint8_t {
  Nothing,      ///< shares its operand's memory
  Elementwise,  ///< one FLOP for each element of the largest tensor
  Product,      ///< two FLOPs for each element of the result and each summed index
  Convolution,
  Attention,
  Lookup,  ///< reads as many elements of the table (the first operand) as the result has
};

/// Values that autograd saves until the backward pass (PyTorch's tools/autograd/derivatives.yaml).
enum class Saves : std::uint8_t {
  Nothing,   ///< sums, views, copies, scaling by a number; results without a gradient
  Factors,   ///< each operand whose counterpart needs a gradient, except the added one (`added`)
  Quotient,  ///< the divisor; the dividend if the divisor needs a gradient
  First,     ///< the first operand
  Operands,  ///< all floating-point operands
  Result,    ///< the first result
  FirstAndResult,
  Discrete,    ///< operands and results that are not real numbers: indices, conditions, masks
  Attention,   ///< query, key, value, result, and a float32 for each query (logsumexp)
  Mask,        ///< a byte for each element of the result; not a value of the graph
  Loss,        ///< the log-softmax, as large as the logits; not a value of the graph
  Experts,     ///< intermediate values for each token of an expert (expert_memory.h); not values of the graph
  Everything,  ///< operands and results
};

/// The memory of the results.
enum class Holds : std::uint8_t {
  New,         ///< memory of its own
  View,        ///< the first operand's memory, when ATen runs it
  Repetition,  ///< the first operand's elements, each once or several times
};

/// The origin of the results' dimensions.
enum class DimsFrom : std::uint8_t {
  Aligned,    ///< from all operands, counted from the right, as in broadcasting
  Regrouped,  ///< the first operand's elements in order with other sizes
  Permuted,
  Dropped,  ///< the first operand's, with some removed or new
  First,    ///< the first operand's
  Product,  ///< rows of the left factor, columns of the right one
};

/// How an operator's arguments make a layer. Positions in its schema; -1 if there is no such argument.
struct LayerArguments {
  LayerKind kind = LayerKind::Linear;
  int input = 0, weight = 1, bias = -1;
  int target = -1, shares = -1, down = -1;  ///< see LayerShape
  int outAxis = 0;                          ///< dimension of a matrix that becomes the output's last
  int factor = -1;                          ///< the first of two numbers that scale the sum; both must be 1 for a layer
  std::string_view withoutBias = {};        ///< the operator of input and weight only; empty: the same operator with
                                            ///< bias None
};

/// The condition under which an operator draws random numbers.
enum class Draws : std::uint8_t {
  Never,
  Always,
  ForDropout,   ///< unless the chance, argument 1, is 0 or `train`, argument 2, is false
  ForAttention  ///< unless the chance, argument 4, is 0
};

struct Operator {
  std::string_view name;  ///< "aten::mul" for all its overloads, or "aten::repeat_interleave.self_int" for one
  CostClass cost = CostClass::Elementwise;
  Saves saves = Saves::Nothing;
  Holds holds = Holds::New;
  DimsFrom dims = DimsFrom::Aligned;
  bool stopsGradient = false;
  Draws draws = Draws::Never;
  bool keepsIndices = false;  ///< an index into a table remains one in the result; ranges of inputs are found through
                              ///< it
  int added = -1;  ///< Saves::Factors: the operand that is added to the product; -1 if there is no such operand
  int summed = 0;  ///< CostClass::Product: the operand whose last dimension is summed over
  std::optional<LayerArguments> layer = {};
  std::optional<ParallelOp> own = {};
  std::span<const ArgumentRow> arguments = {};  ///< for Cleave's own operators; LibTorch knows ATen's schemas
};

inline constexpr int kSummedByEquation = -1;  ///< `summed` of einsum

/// The whole table, in a stable order.
std::span<const Operator> operators();
/// Null for an operator without a row.
const Operator* findOperator(std::string_view op);
/// The same. An operator without a row counts as element-wise and saves everything.
const Operator& operatorOf(std::string_view op);

/// True if the node draws random numbers.
bool drawsNumbers(const Graph& graph, const Node& node);
/// True for a dropout with a chance above 0 whose mask has no reader. A rank program decides each element by its index
/// in the unsplit tensor (kDropout), so ranks may have parts. Any other random operator would draw the same numbers for
/// each part.
bool isDropout(const Graph& graph, const Node& node);

/// One of Cleave's own operators, which have no overloads; nullopt for all others.
std::optional<ParallelOp> parallelOp(std::string_view op);
/// Checks the arguments of one of Cleave's own operators. BadInput names the argument.
Result<void> checkArguments(ParallelOp op, const Node& node);

/// True if the operator's result is a view of its first operand (without memory of its own) when ATen runs it.
inline bool isView(std::string_view op) { return operatorOf(op).holds == Holds::View; }

}  // namespace cleave::graph
