#pragma once
/// What Cleave knows of operators that depends on no placement and no device: one table, one row an operator.
///
/// A row says what the operator computes, what autograd keeps of it, which memory its results have, where their
/// dimensions come from, and, for the few that these are, how its operands make a layer (layers.h) or which of Cleave's
/// own operators it is. How placements pass it is core/rules' to say, and how a rank runs it core/libtorch/rank's.
/// Overloads share a row ("aten::add" is also "aten::add.Scalar") unless one has its own. Pure and thread-safe.
///
///     operatorOf("aten::mm").cost == CostClass::Product;
#include "base/result.h"
#include "graph/graph.h"
#include "graph/layers.h"

#include <optional>
#include <span>
#include <string_view>

namespace cleave::graph {

enum class CostClass : std::uint8_t {
  Nothing,      ///< shares its operand's memory
  Elementwise,  ///< one FLOP for each element of the largest tensor
  Product,      ///< two for each element of the result and each summed index
  Convolution,
  Attention,
  Lookup,  ///< reads as much of the table (the first operand) as the result has
};

/// What autograd keeps of an operator until the backward pass (PyTorch's tools/autograd/derivatives.yaml).
enum class Saves : std::uint8_t {
  Nothing,   ///< sums, views, copies, scalings by a number; results that have no gradient
  Factors,   ///< each operand whose counterpart needs a gradient, without the one that is added (`added`)
  Quotient,  ///< the divisor; the dividend when the divisor needs a gradient
  First,     ///< the first operand
  Operands,  ///< all floating-point operands
  Result,    ///< the first result
  FirstAndResult,
  Discrete,    ///< operands and results that are no reals: indices, conditions, masks
  Attention,   ///< query, key, value, result, and a float32 for each query (logsumexp)
  Mask,        ///< a byte for each element of the result, no value of the graph
  Loss,        ///< the log-softmax: as much as the logits, no value of the graph
  Experts,     ///< for each token of an expert what it computes (expert_memory.h), no value of the graph
  Everything,  ///< operands and results
};

/// What the memory of the results holds.
enum class Holds : std::uint8_t {
  New,         ///< what the operator computes
  View,        ///< no memory of its own when ATen runs it: the first operand's
  Repetition,  ///< the first operand's elements, each once or several times
};

/// Where the dimensions of the results come from.
enum class DimsFrom : std::uint8_t {
  Aligned,    ///< from all operands, counted from the right, as broadcasting does
  Regrouped,  ///< the first operand's elements in order under other sizes
  Permuted,
  Dropped,  ///< the first operand's; some are gone or new
  First,    ///< the first operand's
  Product,  ///< rows of the left factor, columns of the right one
};

/// How an operator's arguments make a layer; positions in its schema, -1: none.
struct LayerArguments {
  LayerKind kind = LayerKind::Linear;
  int input = 0, weight = 1, bias = -1;
  int target = -1, shares = -1, down = -1;  ///< see LayerShape
  int outAxis = 0;                          ///< dimension of a matrix that becomes the output's last
  int factor = -1;                          ///< the first of two numbers that scale the sum: a layer when both are 1
  std::string_view withoutBias = {};        ///< the operator of input and weight alone; empty: the same, bias None
};

/// Cleave's own operators of a rank program, beside ATen's.
enum class ParallelOp : std::uint8_t {
  AllReduce,          ///< (x): the sum over the ranks; may reuse x's memory, which nothing reads after
  AllGather,          ///< (x, dim): the ranks' parts one behind the other along dim
  GatherInput,        ///< (x, dim): the same, of a layer's input that training gathers again for its backward pass and
                      ///< does not keep
  ReduceScatter,      ///< (x, dim): the sum over the ranks, of which each keeps its part of dim
  Shard,              ///< (x, dim): this rank's part of a tensor that every rank holds in full
  VocabEmbedding,     ///< rows of this rank's part of the vocabulary (rank r holds rows from r * weight.size(0)),
                      ///< zeros for other ids: a partial sum
  VocabCrossEntropy,  ///< the loss from logits [N, local] split on the vocabulary; columns from vocab on are padding
  MoeExperts,      ///< for each token the sum over its experts e of share · down[e] · (activation(gate) · up), where
                   ///< gate and up are the halves of gate_up[e] · hidden + gate_up_bias[e]; on a part of each expert's
                   ///< features a partial sum. With activation clamped_swiglu gate_up is [experts, hidden, 2 features],
                   ///< gate and up in turn, and down [experts, features, hidden]: then share · ((up + 1) · gate ·
                   ///< sigmoid(alpha · gate)) · down[e], gate at most limit, up within ±limit
  LocalExperts,    ///< the same with this rank's experts out of `experts` (rank r holds those from
                   ///< r * gate_up.size(0)): a partial sum
  GroupedProduct,  ///< input [rows, in], weight [groups, in, out], ends [groups] → [rows, out]: rows from ends[g - 1]
                   ///< (0 for the first group) to ends[g] times weight[g]; those behind the last are zero
  GradAllReduce,   ///< (x): the identity; backward a sum of the gradient over the ranks (Megatron's f), of a parameter
                   ///< over those that hold the same
  Dropout,  ///< (x, chance, stream, shape, placement): x with some elements 0, the others divided by 1 - chance. Which,
            ///< is decided element by element by its place in the whole (`shape`), of which this rank holds what
            ///< `placement` says; `stream` numbers the dropouts of a model
  Same,     ///< (x): the identity of what all ranks have computed alike, each from what it holds itself; backward
            ///< each takes one of as many shares of the gradient as there are ranks
};

enum class ArgumentKind : std::uint8_t { Tensor, TensorOrNone, Integer, Number, Absent, Text, Sizes };

struct ArgumentRow {
  std::string_view name;
  ArgumentKind kind = ArgumentKind::Tensor;
};

/// When an operator draws random numbers.
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
  bool keepsIndices = false;  ///< an index into a table is still one in the result: ranges of inputs are found through
  int added = -1;             ///< Saves::Factors: the operand that is added to the product; -1: none
  int summed = 0;             ///< CostClass::Product: the operand whose last dimension is summed over
  std::optional<LayerArguments> layer = {};
  std::optional<ParallelOp> own = {};
  std::span<const ArgumentRow> arguments = {};  ///< of Cleave's own; LibTorch knows ATen's schemas
};

inline constexpr int kSummedByEquation = -1;  ///< `summed` of einsum

inline constexpr std::string_view kAllReduce = "cleave::all_reduce";
inline constexpr std::string_view kAllGather = "cleave::all_gather";
inline constexpr std::string_view kGatherInput = "cleave::gather_input";
inline constexpr std::string_view kReduceScatter = "cleave::reduce_scatter";
inline constexpr std::string_view kShard = "cleave::shard";
inline constexpr std::string_view kVocabEmbedding = "cleave::vocab_embedding";
inline constexpr std::string_view kVocabCrossEntropy = "cleave::vocab_cross_entropy";
inline constexpr std::string_view kMoeExperts = "cleave::moe_experts";
inline constexpr std::string_view kLocalExperts = "cleave::local_experts";
inline constexpr std::string_view kGroupedProduct = "cleave::grouped_product";
inline constexpr std::string_view kGradAllReduce = "cleave::grad_all_reduce";
inline constexpr std::string_view kSame = "cleave::same";
inline constexpr std::string_view kDropout = "cleave::dropout";

inline constexpr std::string_view kClampedSwiglu = "clamped_swiglu";  ///< an activation of experts

/// The whole table; order is stable.
std::span<const Operator> operators();
/// Null for an operator without a row.
const Operator* findOperator(std::string_view op);
/// The same; an operator without a row counts as element-wise and as keeping everything.
const Operator& operatorOf(std::string_view op);

/// Draws random numbers.
bool drawsNumbers(const Graph& graph, const Node& node);
/// A dropout that drops something, and whose mask nobody reads: a rank program decides for each element by its place in
/// the whole (kDropout), so that ranks may have parts. Whatever else draws numbers would draw the same for each part.
bool isDropout(const Graph& graph, const Node& node);

/// Which of Cleave's own operators this is; they have no overloads. nullopt: none.
std::optional<ParallelOp> parallelOp(std::string_view op);
/// Whether a node has the arguments of one of Cleave's own operators; BadInput names the argument.
Result<void> checkArguments(ParallelOp op, const Node& node);

/// True when the operator's result is a view of its first operand (no memory of its own) when ATen runs it.
inline bool isView(std::string_view op) { return operatorOf(op).holds == Holds::View; }

/// "aten::sum.dim_IntList" → "sum.dim_IntList"
std::string_view withoutNamespace(std::string_view op);
/// "aten::sum.dim_IntList" → "sum"
std::string_view shortName(std::string_view op);

}  // namespace cleave::graph
