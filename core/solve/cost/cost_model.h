#pragma once
/// What a plan costs: predicted seconds of one step and bytes on one rank. All ranks do the same, so one rank's figures are
/// the plan's. Integers (femtoseconds, bytes), rounded once for each operator and each collective, so that the same plan has
/// the same cost wherever it is added up; sums that 64 bits cannot hold stay at their largest value.
///
/// Time of an operator, on one rank's shard (replicated work counts in full on every rank):
///     compute = max(FLOPs / peak of its dtype, bytes read and written / memory bandwidth)
///     FLOPs: 2·m·k·n for a product (torch.utils.flop_counter counts the same); attention 2·b·h·s·t·(d + d_v), causal or
///     not; any other operator one for each element of its largest tensor. An embedding reads the rows it looks up, no
///     table. Views and aliases cost nothing. The bias of a row layer is an operator of its own, after the reduction.
///     Backward (training), for results that need a gradient: a product once for each factor that needs one (so mostly
///     twice its forward), attention twice, anything else once.
/// Time of a collective over n ranks, V bytes being the whole tensor (ring; Thakur et al., "Optimization of Collective
/// Communication Operations in MPICH", 2005; NCCL's bus bandwidth factors):
///     all-reduce     α + 2·(n-1)/n·V·β          all-gather, reduce-scatter     α + (n-1)/n·V·β          β = 1 / link bandwidth
/// Forward: what the strategy names (strategies.h); a value on the sequence is gathered once for all layers that read it
/// whole; the vocabulary-parallel loss 3 all-reduces of N reals; graph outputs that are split are gathered; a redistributed
/// value is gathered, or cut for nothing. V is n times a rank's part, so replicas and padding count.
/// Backward (Megatron-LM arXiv:1909.08053 section 3, arXiv:2205.05198 section 4.2.2):
///     an all-gather before becomes a reduce-scatter, a reduce-scatter after an all-gather, a cut an all-gather; an
///     all-reduce or all-gather after: nothing;
///     a value that is R, needs a gradient, and is read split by somebody (a column layer, an operator whose result is
///     split): one all-reduce of its gradient, however many readers (Megatron's f); parameters likewise;
///     weights with k replicas: an all-reduce over the k ranks that share them.
///     So a Megatron layer has 2 all-reduces of b·s·h forward and 2 backward.
/// Memory of a rank: parameters + gradients (dtype of the parameter) + optimizer (momentum: one copy, AdamW: two, in the
/// parameter's dtype, but at least float32; a float32 master copy for half precision) + activations saved for backward
/// (training: what PyTorch's formulas save, operator_costs.h) or the KV cache (inference, causal attention: keys and values
/// before heads are repeated) + inputs and constants + transient peak (live values that do not stay, by liveness of the
/// forward pass). All but the transient peak are sums over steps.
#include "solve/candidates.h"
#include "solve/cost/settings.h"

namespace cleave::solve {

struct StepCost {
  std::int64_t computeFs = 0;    ///< forward, and backward when training
  std::int64_t trafficFs = 0;    ///< collectives, forward and backward
  std::int64_t trafficBytes = 0; ///< bytes of the whole tensors of these collectives
  std::int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, kvCache = 0;  ///< bytes that stay
  std::int64_t femtoseconds() const;
  std::int64_t bytes() const;
  StepCost& operator+=(const StepCost& other);
  bool operator==(const StepCost&) const = default;
};

/// The cost of a whole solution.
struct PlanCost {
  StepCost sum;                      ///< of all steps
  std::int64_t fixedBytes = 0;       ///< inputs and constants
  std::int64_t transientPeak = 0;
  std::int64_t femtoseconds() const { return sum.femtoseconds(); }
  std::int64_t additiveBytes() const;
  std::int64_t bytes() const;
  bool operator==(const PlanCost&) const = default;
};

struct CostFacts;

/// Immutable; any thread. Problem and variables must outlive it.
class CostModel {
 public:
  CostModel(const Problem& problem, const Variables& variables);
  ~CostModel();

  /// What taking `choice` costs when the operands lie as `reads` (in the order of Variables::reads). Everything but the
  /// shared collectives of what it reads. Equal steps (structureHash, sameStructure, and `costClass`) cost the same.
  StepCost step(NodeId node, const Choice& choice, std::span<const Placement> reads) const;

  /// Shared collectives: what a value costs once, however many steps ask for it. A value that is R: the all-reduce of its
  /// gradient, of which the asking step leaves only a part on each rank. A value on the sequence: its all-gather, and the
  /// reduce-scatter of its gradient. (The layer that owns a parameter pays for its gradient in its own step.)
  bool asksShared(NodeId node, const Choice& choice, std::span<const Placement> reads, std::size_t index) const;
  /// False when no step can ask for this value's, however it lies.
  bool mayShare(ValueId value) const;
  /// To be charged once for a value that lies as `placement` if any step asks.
  StepCost shared(ValueId value, const Placement& placement) const;

  /// Names the static facts beyond structure that decide a step's cost and what its results share (graph output, saved for
  /// backward, cached, needs a gradient, gathered by readers; size of a parameter).
  std::uint32_t costClass(NodeId node) const;
  std::int64_t fixedBytes() const;

  PlanCost evaluate(const Solution& solution) const;
  /// By NodeId; shared collectives are charged to the value's producer. Sums to evaluate().sum.
  std::vector<StepCost> byNode(const Solution& solution) const;
  /// Most bytes of live, not staying values (and collectives' buffers) at once.
  std::int64_t transientPeak(const Solution& solution) const;
  /// No plan in which the step takes this choice has a smaller transient peak. Equal for equal steps.
  std::int64_t leastTransient(NodeId node, const Choice& choice) const;

 private:
  /// Calls `add(node, cost)` with all that the nodes cost; of some nodes more than once.
  template <class Add>
  void forEachCost(const Solution& solution, Add add) const;

  const Problem& m_problem;
  const Variables& m_variables;
  std::unique_ptr<const CostFacts> m_facts;
};

/// CostModel::evaluate of one solution.
PlanCost costOf(const Problem& problem, const Solution& solution);

/// The choice that a solution makes of a node, as candidatesOf would have offered it (without its reason).
Choice choiceOf(const Variables& variables, const Problem& problem, const Solution& solution, NodeId node);

/// "1.25 ms", "830 µs", "12 ns": times as people read them.
std::string timeText(std::int64_t femtoseconds);

}  // namespace cleave::solve
