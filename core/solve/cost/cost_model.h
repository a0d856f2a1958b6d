#pragma once
// clang-format off
/// What a plan costs: predicted seconds of one step and bytes on one rank. All ranks do the same, so one rank's
/// figures are the plan's. Integers (femtoseconds and FLOPs in 128 bits, bytes in 64), rounded once for each operator
/// and each collective, so that the same plan has the same cost wherever it is added up; only bytes beyond 8 EiB stay
/// at the largest value.
///
/// Time of an operator, on one rank's shard (replicated work counts in full on every rank):
///     compute = max(FLOPs / peak of its dtype, bytes read and written / memory bandwidth) FLOPs: 2·m·k·n for a
///     product (torch.utils.flop_counter counts the same); attention 2·b·h·s·t·(d + d_v), causal or not; any other
///     operator one for each element of its largest tensor. An embedding reads the rows it looks up, no table; experts
///     work on tokens that spread evenly over them, and read as much of their weights as get a token. Views and aliases
///     cost nothing. The bias of a row layer is an operator of its own, after the reduction. Backward
///     (training), for results that need a gradient: a product once for each factor that needs one (so mostly twice
///     its forward), attention twice, anything else once.
/// Time of a collective over n ranks, V bytes being the whole tensor (ring; Thakur et al., "Optimization of Collective
/// Communication Operations in MPICH", 2005; NCCL's bus bandwidth factors):
///     all-reduce     α + 2·(n-1)/n·V·β          all-gather, reduce-scatter     α + (n-1)/n·V·β          β = 1 / link
///                    bandwidth
/// Forward: what the strategy names (strategies.h); a value on the sequence is gathered once for all layers that read
/// it whole; the vocabulary-parallel loss 3 all-reduces of N reals; graph outputs that are split are gathered (when
/// training, the loss alone is one, where there is a loss); a redistributed value is gathered, or cut for nothing. V
/// is n times a rank's part, so replicas and padding count. Backward (Megatron-LM arXiv:1909.08053 section 3,
/// arXiv:2205.05198 section 4.2.2):
///     a value on the sequence that layers gather is saved as the rank's part and gathered again for the gradients of
///     their weights, once for all of them; where a split weight reads it, each rank has a part of its whole gradient:
///     one reduce-scatter (a whole weight leaves the complete gradient, of which each rank takes its part for
///     nothing); a reduce-scatter after becomes an all-gather, a cut an all-gather; an all-reduce or all-gather after:
///     nothing; a value that is R, needs a gradient, and is read split by somebody (a column layer, the split experts'
///     tokens and routing weights, an operator whose result is split; with as many replicas as ranks a value counts as
///     R): one all-reduce of its gradient, however many readers (Megatron's f);
///     parameters likewise (norms on the sequence), and weights with k replicas over the k ranks that share them:
///     these sums wait for the end of the backward pass and start together as one bucket, so that they pay α once for
///     all (Megatron-LM's finalize_model_grads flattens them so). So a Megatron layer has 2 all-reduces of b·s·h
///     forward and 2 backward; on the sequence 2 all-gathers and 2 reduce-scatters forward, 4 all-gathers and 2
///     reduce-scatters backward.
/// Memory of a rank: parameters (packed ones as they are stored: Graph::heldBytes) + gradients (dtype of the parameter;
/// held throughout) + optimizer (momentum: one copy, AdamW: two, in the parameter's dtype, but at least float32; a
/// float32 master copy for half precision) + activations saved for backward (training: what PyTorch's formulas save,
/// graph/operators.h) or the KV cache (inference, causal attention: keys and values before heads are repeated) + inputs
/// and constants + transient peak. All but the transient peak are sums over steps.
///     Transient peak: what the step's fullest moment holds beyond these. Forward: live values that do not stay,
///     gathered inputs, buffers of collectives. Backward (training): saved activations, freed after the last node that
///     needs them; a gradient for each value, from its first reader's backward to its producer's; what one expert
///     computes (forward, and its gradients backward; graph/expert_memory.h); inputs gathered again, and the whole of
///     their gradients; then the bucket of summed gradients; then what the optimizer takes beside its states. Saved
///     activations are all live between forward and backward, so it is never negative, and bytes() is the peak of a
///     step.
// clang-format on
#include "solve/problem/choice.h"
#include "solve/problem/cost_settings.h"
#include "solve/problem/problem.h"
#include "solve/problem/variables.h"

namespace cleave::solve {

struct StepCost {
  Wide flops = 0;                    ///< of one rank, forward, and backward when training
  Femtoseconds computeFs;            ///< forward, and backward when training
  Femtoseconds trafficFs;            ///< collectives, forward and backward
  std::int64_t trafficBytes = 0;     ///< bytes of the whole tensors of these collectives
  std::int64_t summedGradients = 0;  ///< of `gradients`: bytes in the bucket that is summed over ranks
  std::int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, kvCache = 0;  ///< bytes that stay
  Femtoseconds femtoseconds() const { return computeFs + trafficFs; }
  std::int64_t bytes() const;
  StepCost& operator+=(const StepCost& other);
  bool operator==(const StepCost&) const = default;
};

/// The cost of a whole solution.
struct PlanCost {
  StepCost sum;                    ///< of all steps
  std::int64_t fixedBytes = 0;     ///< inputs and constants
  std::int64_t transientPeak = 0;  ///< what the fullest moment of a step holds beyond the rest
  Femtoseconds femtoseconds() const { return sum.femtoseconds(); }
  std::int64_t additiveBytes() const;
  std::int64_t bytes() const;
  bool operator==(const PlanCost&) const = default;
};

/// What a value shares among the steps that read it; each part is charged once, whoever asks first. Bits.
using Shares = std::uint8_t;
inline constexpr Shares kSharesNothing = 0;
inline constexpr Shares kSharesWhole = 1;  ///< the whole of a value on the sequence: gathered, and again in backward
inline constexpr Shares kSharesGradientSum = 2;  ///< the sum of its gradient's parts

/// Bytes beyond what stays that a rank holds at least at moments of one step's turn.
struct LeastTransient {
  bool isKnown = false;        ///< false: how much of what stays is there by then depends on other steps
  std::int64_t forward = 0;    ///< while it runs; what it does not read is not counted (CostModel::heldFor)
  std::int64_t elsewhere = 0;  ///< in its backward, and at the end
  std::int64_t beside(std::int64_t others) const;
};

struct CostFacts;
class Buffers;

/// Immutable; any thread. Problem and variables must outlive it.
class CostModel {
 public:
  CostModel(const Problem& problem, const Variables& variables);
  ~CostModel();

  /// What taking `choice` costs when the operands are placed as `reads` (in the order of Variables::reads). Everything
  /// but the shared collectives of what it reads. Equal steps (structureHash, sameStructure, and `costClass`) cost the
  /// same.
  StepCost step(NodeId node, const Choice& choice, std::span<const Placement> reads) const;

  /// Shared collectives: what a value costs once, however many steps ask for it.
  Shares asksShared(NodeId node, const Choice& choice, std::span<const Placement> reads, std::size_t index) const;
  /// Of the `index`th value that the step writes: what its own cost pays already.
  Shares paysShared(NodeId node, const Choice& choice, std::size_t index) const;
  /// False when no step can ask for this value's, however it is placed.
  bool mayShare(ValueId value) const;
  /// To be charged once for each part that any step asks of a value that is placed as `placement`.
  StepCost shared(ValueId value, const Placement& placement, Shares parts) const;

  /// False when no choice of the step, nor what it asks for, has StepCost::summedGradients.
  bool maySumGradients(NodeId node) const;
  /// To be charged once where any cost has StepCost::summedGradients.
  StepCost bucketStart() const;

  /// Names the static facts beyond structure that decide a step's cost and what its results share (graph output, saved
  /// for backward, cached, needs a gradient, gathered by readers; size of a parameter).
  std::uint32_t costClass(NodeId node) const;
  std::int64_t fixedBytes() const;

  PlanCost evaluate(const Solution& solution) const;
  /// By NodeId; shared collectives are charged to the value's producer. Sums to evaluate().sum.
  std::vector<StepCost> byNode(const Solution& solution) const;
  /// PlanCost::transientPeak; `sum` is the solution's PlanCost::sum.
  std::int64_t transientPeak(const Solution& solution, const StepCost& sum) const;
  /// No plan in which the step takes this choice while its operands are placed as `reads` has a smaller transient peak.
  /// Equal for equal steps.
  LeastTransient leastTransient(NodeId node, const Choice& choice, std::span<const Placement> reads) const;
  /// The memory that a value keeps beside the steps that do not read it, where that is no part of what stays; else
  /// invalid.
  ValueId holderOf(ValueId value) const;
  /// What of its holder's memory is there at least on a rank, when the value is placed as `placement`.
  std::int64_t heldFor(ValueId value, const Placement& placement) const;
  /// All that `heldFor` reads of a value but its type.
  struct Holding {
    std::int64_t holderBytes = 0;  ///< whole
    bool isHolder = false, isPart = false;
    int cutAlong = 0;  ///< ValueFacts::cutAlong
  };
  Holding holdingOf(ValueId value) const;
  /// First and last node at whose turn a holder's memory is there.
  std::pair<NodeId, NodeId> lifeOf(ValueId holder) const;
  /// What the one step that gathers a value from the sequence for all holds beside the whole of it.
  std::int64_t gatherBuffers(ValueId value, const Placement& placement) const;

 private:
  /// Calls `add(node, cost)` with all that the nodes cost; of some nodes more than once.
  template <class Add>
  void forEachCost(const Solution& solution, Add add) const;
  /// What is held at least in memory that `ownerOf` finds for the facts of what the step reads, each owner counted
  /// once.
  template <class OwnerOf>
  std::int64_t heldByReads(NodeId node, std::span<const Placement> reads, OwnerOf ownerOf) const;
  std::int64_t leastOf(const Buffers& buffers, ValueId owner, ValueId value, const Placement& placement) const;
  /// What the optimizer takes for its largest parameter.
  std::int64_t optimizerBytes(const Solution& solution) const;

  const Problem& m_problem;
  const Variables& m_variables;
  std::unique_ptr<const CostFacts> m_facts;
};

/// CostModel::evaluate of one solution.
PlanCost costOf(const Problem& problem, const Solution& solution);

/// The choice that a solution makes of a node, as candidatesOf would have offered it (without its reason).
Choice choiceOf(const Variables& variables, const Problem& problem, const Solution& solution, NodeId node);

/// Three significant digits, whole multiples without decimals, as bytesText: "1.25 ms", "2.50 ms", "830 µs", "3 h",
/// "40.5 years".
std::string timeText(Femtoseconds time);
/// By how much another plan's step differs: "as long", "3 µs longer", "3 µs less".
std::string longerText(Femtoseconds change);
/// By how much what a rank holds for another plan differs: "holds as much", "holds 3 KiB more per rank".
std::string holdsText(std::int64_t bytes);

}  // namespace cleave::solve
