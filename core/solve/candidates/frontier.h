#pragma once
/// The live values between two steps of an order, and the connections of each step to them.
///
/// Between two steps there is a *slot* for each value that was placed before and that a later step reads. The contents
/// of the slots are a state of a sweep (sweep.h). An operand without a slot is *fresh*: no step of the order places it.
/// The caller decides the possible placements of a fresh value, and whether it gets a slot.
///
///     Frontier frontier(variables, graph.values.size(), order);
///     for (std::size_t i = 0; i < order.size(); ++i) use(frontier.next(isCarried));
///
/// The time of a step is proportional to the width of the frontier. Use it from one thread.
#include "base/id_tuple.h"
#include "solve/problem/variables.h"

#include <functional>
#include <limits>

namespace cleave::solve {

inline constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();

/// One step and its connections to the slots before and after it.
struct FrontierStep {
  NodeId node;
  std::vector<ValueId> before;  ///< by slot before the step; invalid: the owner's own slot
  struct Operand {
    ValueId value;
    std::uint32_t slot = kNoSlot;  ///< kNoSlot: fresh
    std::uint32_t first = 0;       ///< first operand that is the same value
  };
  std::vector<Operand> operands;     ///< Variables::reads
  std::vector<std::uint32_t> fresh;  ///< index of the first operand of each fresh value
  enum class Origin : std::uint32_t {
    Own,  ///< the owner's own slot, which is the first and has no value
    Slot,
    Fresh,
    Write,
  };
  struct Exit {
    ValueId value;
    Origin origin = Origin::Slot;
    std::uint32_t index = 0;          ///< index of the entry slot, the operand or the write; Own: 0
    std::uint32_t operand = kNoSlot;  ///< the first operand that is this value; kNoSlot: not an operand
  };
  std::vector<Exit> exits;  ///< by slot after the step

  /// The owner's slot before the step; kNoSlot if it does not exist.
  std::uint32_t ownSlot() const { return !before.empty() && !before.front().isValid() ? 0 : kNoSlot; }
  /// Appends a description of the connections that does not depend on the values.
  void appendConnections(IdTuple& kind) const;
};

/// By ValueId: position in `order` of the last step that reads the value, plus one; 0 if no step reads it.
std::vector<std::uint32_t> lastReads(const Variables& variables, std::size_t values, std::span<const NodeId> order);

class Frontier {
 public:
  /// `values`: number of values of the graph. `order` is topological, and `variables` must outlive this object.
  Frontier(const Variables& variables, std::size_t values, std::vector<NodeId> order);

  using IsCarried = std::function<bool(ValueId)>;
  /// Goes to the next step. `isCarried`: true for fresh values that get a slot if they are read later. `hasOwnSlot`:
  /// the owner has a slot after the step.
  const FrontierStep& next(const IsCarried& isCarried, bool hasOwnSlot = false);
  /// The current step; valid until the next call of `next`.
  const FrontierStep& step() const { return m_step; }

 private:
  void addOperands();
  void addExits(const IsCarried& isCarried, bool hasOwnSlot);
  bool isReadLater(ValueId value) const { return m_lastRead[value.index()] > m_stepsDone + 1; }

  const Variables& m_variables;
  const std::vector<NodeId> m_order;
  const std::vector<std::uint32_t> m_lastRead;  ///< by ValueId
  std::vector<std::uint32_t> m_slotOf;          ///< by ValueId: slot after the last step
  std::uint32_t m_stepsDone = 0;
  FrontierStep m_step;
};

}  // namespace cleave::solve
