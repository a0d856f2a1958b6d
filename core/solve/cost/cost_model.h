#pragma once
/// Predicted time of one step and peak memory of one rank. All ranks do the same work, so the figures of one rank are
/// the figures of the plan. docs/costs.md has the formulas and their sources.
///
/// Time and FLOPs are integers of 128 bits, bytes integers of 64 bits. Each operator and each collective is rounded
/// once, so that a plan has the same cost wherever it is added up. Bytes beyond 8 EiB stay at the largest value.
///
///     const CostModel model(problem, variables);
///     StepCost cost = model.step(node, choice, reads);   // add model.shared(...) once for each value that is shared
#include "solve/problem/choice.h"
#include "solve/problem/cost_settings.h"
#include "solve/problem/problem.h"
#include "solve/problem/variables.h"

namespace cleave::solve {

struct StepCost {
  Wide flops = 0;                    ///< per rank, forward, and backward when training
  Femtoseconds computeFs;            ///< forward, and backward when training
  Femtoseconds trafficFs;            ///< collectives, forward and backward
  std::int64_t trafficBytes = 0;     ///< bytes of the whole tensors of these collectives
  std::int64_t summedGradients = 0;  ///< part of `gradients` in the bucket that is summed over ranks
  std::int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0,
               kvCache = 0;  ///< bytes that stay for the whole step
  Femtoseconds femtoseconds() const { return computeFs + trafficFs; }
  std::int64_t bytes() const;
  StepCost& operator+=(const StepCost& other);
  bool operator==(const StepCost&) const = default;
};

/// The cost of a solution.
struct PlanCost {
  StepCost sum;                    ///< of all steps
  std::int64_t fixedBytes = 0;     ///< inputs and constants
  std::int64_t transientPeak = 0;  ///< bytes beyond the rest at the moment with the most
  Femtoseconds femtoseconds() const { return sum.femtoseconds(); }
  std::int64_t additiveBytes() const;
  std::int64_t bytes() const;
  bool operator==(const PlanCost&) const = default;
};

/// Collectives that the readers of a value share, as bits. Each is charged once, to the first reader that needs it.
using Shares = std::uint8_t;
inline constexpr Shares kSharesNothing = 0;
inline constexpr Shares kSharesGather = 1;       ///< all-gather of a value on the sequence, forward and backward
inline constexpr Shares kSharesGradientSum = 2;  ///< sum of the parts of its gradient

/// Lower bounds of the transient bytes per rank while one step runs.
struct LeastTransient {
  bool isKnown = false;        ///< false if the bytes live at that moment depend on other steps
  std::int64_t forward = 0;    ///< while it runs, without values it does not read (CostModel::heldFor)
  std::int64_t elsewhere = 0;  ///< in its backward, and at the end of the step
  std::int64_t totalWith(std::int64_t others) const;
};

struct CostFacts;
class Buffers;

/// Immutable and thread-safe. Problem and variables must outlive it.
class CostModel {
 public:
  CostModel(const Problem& problem, const Variables& variables);
  ~CostModel();

  /// The cost of `choice` for operands with the placements `reads` (in the order of Variables::reads), without the
  /// shared collectives of the operands. Equal steps (structureHash, sameStructure, and `costClass`) cost the same.
  StepCost step(NodeId node, const Choice& choice, std::span<const Placement> reads) const;

  /// Shared collectives of operand `index` that the step needs.
  Shares needsShared(NodeId node, const Choice& choice, std::span<const Placement> reads, std::size_t index) const;
  /// Shared collectives of written value `index` that the cost of the step includes.
  Shares paysShared(NodeId node, const Choice& choice, std::size_t index) const;
  /// False if no step can need shared collectives of this value, whatever its placement is.
  bool mayShare(ValueId value) const;
  /// The cost of shared collectives of a value with this placement. Charge each part once if any step needs it.
  StepCost shared(ValueId value, const Placement& placement, Shares parts) const;

  /// False if no choice of the step, and no shared collective it needs, has StepCost::summedGradients.
  bool maySumGradients(NodeId node) const;
  /// The start cost of the bucket. Charge it once if any cost has StepCost::summedGradients.
  StepCost bucketStart() const;

  /// Id of the facts beyond structure that decide a step's cost and the shared collectives of its results. Examples are
  /// graph outputs, values saved for backward, cached values, gradients, and sizes of parameters.
  std::uint32_t costClass(NodeId node) const;
  std::int64_t fixedBytes() const;

  PlanCost evaluate(const Solution& solution) const;
  /// Costs by NodeId, which add up to evaluate().sum. Shared collectives are charged to the producer of the value.
  std::vector<StepCost> byNode(const Solution& solution) const;
  /// PlanCost::transientPeak; `sum` is the solution's PlanCost::sum.
  std::int64_t transientPeak(const Solution& solution, const StepCost& sum) const;
  /// A lower bound of the transient peak of every plan with this choice and these placements of the operands. Equal for
  /// equal steps.
  LeastTransient leastTransient(NodeId node, const Choice& choice, std::span<const Placement> reads) const;
  /// The owner of the memory that a value keeps live while other steps run; invalid if that memory stays for the whole
  /// step.
  ValueId holderOf(ValueId value) const;
  /// A lower bound of the live bytes of its holder per rank, for a value with this placement.
  std::int64_t heldFor(ValueId value, const Placement& placement) const;
  /// The data of a value that `heldFor` uses besides its type.
  struct Holding {
    std::int64_t holderBytes = 0;  ///< bytes of the full tensor
    bool isHolder = false, isPart = false;
    int cutAlong = 0;  ///< ValueFacts::cutAlong
  };
  Holding holdingOf(ValueId value) const;
  /// First and last node that run while a holder's memory is live.
  std::pair<NodeId, NodeId> lifeOf(ValueId holder) const;
  /// Bytes of buffers in the step that gathers a value on the sequence for all readers, without the gathered tensor.
  std::int64_t gatherBuffers(ValueId value, const Placement& placement) const;

 private:
  /// Calls `add(node, cost)` for all costs; several times for some nodes.
  template <class Add>
  void forEachCost(const Solution& solution, Add add) const;
  /// A lower bound of the bytes in the memories that `ownerOf` returns for the operands of the step, each counted once.
  template <class OwnerOf>
  std::int64_t heldByReads(NodeId node, std::span<const Placement> reads, OwnerOf ownerOf) const;
  std::int64_t leastOf(const Buffers& buffers, ValueId owner, ValueId value, const Placement& placement) const;
  /// Transient bytes of the optimizer while it updates the parameter that needs most.
  std::int64_t optimizerBytes(const Solution& solution) const;

  const Problem& m_problem;
  const Variables& m_variables;
  std::unique_ptr<const CostFacts> m_facts;
};

/// CostModel::evaluate of one solution.
PlanCost costOf(const Problem& problem, const Solution& solution);

/// The choice of a node in a solution, in the form of candidatesOf but without its reason.
Choice choiceOf(const Variables& variables, const Problem& problem, const Solution& solution, NodeId node);

/// Three significant digits, without decimals for exact whole numbers, like bytesText: "1.25 ms", "2.50 ms", "830 µs",
/// "3 h", "40.5 years".
std::string timeText(Femtoseconds time);
/// The step time of another plan relative to this plan, after "takes": "as long", "3 µs longer", "3 µs less".
std::string longerText(Femtoseconds change);
/// The memory of another plan relative to this plan: "needs as much memory", "needs 3 KiB more per rank".
std::string needsText(std::int64_t bytes);

}  // namespace cleave::solve
