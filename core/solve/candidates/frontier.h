#pragma once
/// The values that are live between two steps of an order, and how each step is wired to them.
///
/// Between two steps there is a *slot* for each value that was placed before and that a later step reads; what the
/// slots hold is a state of a sweep (sweep.h). A value that a step reads and that has no slot is *fresh* there: no step
/// of the order places it. Who sweeps says what a fresh value may be, and whether it is worth a slot from then on.
///
///     Frontier frontier(variables, graph.values.size(), order);
///     for (std::size_t i = 0; i < order.size(); ++i) use(frontier.next(isCarried));
///
/// A step takes time by the width of the frontier. One thread.
#include "base/words.h"
#include "solve/problem/variables.h"

#include <functional>
#include <limits>

namespace cleave::solve {

inline constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();

/// One step and its wiring to the slots before and behind it.
struct FrontierStep {
  NodeId node;
  std::vector<ValueId> before;  ///< by slot before the step; invalid: the owner's own
  struct Operand {
    ValueId value;
    std::uint32_t slot = kNoSlot;  ///< kNoSlot: fresh
    std::uint32_t first = 0;       ///< first operand that is the same value
  };
  std::vector<Operand> operands;     ///< Variables::reads
  std::vector<std::uint32_t> fresh;  ///< operands: each fresh value once, where it is read first
  enum class Origin : std::uint32_t {
    Own,  ///< the owner's own slot: it is the first, and holds no value
    Slot,
    Fresh,
    Write,
  };
  struct Exit {
    ValueId value;
    Origin origin = Origin::Slot;
    std::uint32_t index = 0;          ///< of the slot before, the operand, or the write; Own: 0
    std::uint32_t operand = kNoSlot;  ///< the first operand that is this value; kNoSlot: none is
  };
  std::vector<Exit> exits;  ///< by slot behind the step

  /// Slot before the step that is the owner's; kNoSlot: there is none.
  std::uint32_t ownSlot() const { return !before.empty() && !before.front().isValid() ? 0 : kNoSlot; }
  /// Appends what the wiring is, whatever values it is of.
  void nameWiring(Words& kind) const;
};

/// By ValueId: place in `order` of the last step that reads it, plus one; 0: none.
std::vector<std::uint32_t> lastReads(const Variables& variables, std::size_t values, std::span<const NodeId> order);

class Frontier {
 public:
  /// `values`: of the graph. `order` is topological; `variables` must outlive this.
  Frontier(const Variables& variables, std::size_t values, std::vector<NodeId> order);

  using IsCarried = std::function<bool(ValueId)>;
  /// Takes the next step. `isCarried`: fresh values that get a slot when they are read later. `hasOwnSlot`: the owner
  /// has one behind the step.
  const FrontierStep& next(const IsCarried& isCarried, bool hasOwnSlot = false);
  /// The step that was taken last; good until the next one.
  const FrontierStep& step() const { return m_step; }

 private:
  void addOperands();
  void addExits(const IsCarried& isCarried, bool hasOwnSlot);
  bool isReadLater(ValueId value) const { return m_lastRead[value.index()] > m_taken + 1; }

  const Variables& m_variables;
  const std::vector<NodeId> m_order;
  const std::vector<std::uint32_t> m_lastRead;  ///< by ValueId
  std::vector<std::uint32_t> m_slotOf;          ///< by ValueId: behind the last step
  std::uint32_t m_taken = 0;
  FrontierStep m_step;
};

}  // namespace cleave::solve
