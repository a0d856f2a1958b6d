#pragma once
/// The order in which steps are taken, and what has to be remembered between two of them.
///
/// Inputs, constants, parameters without an owner and whatever is computed from them alone are always R: they are
/// *fixed*, cost the same in every plan and take no place. The other steps follow the graph's order, or an order that
/// computes a value as late as possible where that keeps fewer values live. Between two places the frontier has a slot
/// for each live value whose placement matters, and for each fixed value whose shared collectives (CostModel::shared)
/// may have been charged already; when training, the first slot knows whether the bucket of summed gradients was
/// started (CostModel::bucketStart).
#include "solve/optimal/priced_table.h"

namespace cleave::solve::optimal {

inline constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();

/// What a slot holds: a placement id, and which of the value's shared collectives are charged already. The bucket's
/// slot: R, and its start as the sum of a gradient.
struct Token {
  static constexpr std::uint32_t kShares = kSharesWhole | kSharesGradientSum;
  static std::uint32_t of(std::uint32_t placement, Shares charged) { return placement << 2 | charged; }
  static std::uint32_t placement(std::uint32_t token) { return token >> 2; }
  static Shares charged(std::uint32_t token) { return token & kShares; }
};

/// One step and its wiring to the slots before and after it. Places with equal `kind` behave alike.
struct Place {
  NodeId node;
  std::uint32_t classIndex = 0;
  struct Operand {
    std::uint32_t slot = kNoSlot;  ///< kNoSlot: R, and nothing charged
    std::uint32_t first = 0;       ///< first operand that is the same value
    ValueId value;
  };
  std::vector<Operand> operands;
  /// A slot before whose value the step does not read, and whose memory is there at its turn.
  struct Bystander {
    std::uint32_t slot = 0;
    std::uint32_t memory = 0;   ///< equal for bystanders in the same memory, counted from 0
    std::uint32_t holding = 0;  ///< PricedTable::holdingOf
    ValueId value;
  };
  std::vector<Bystander> bystanders;
  std::int64_t fixedBeside = 0;    ///< bytes of fixed values that are there too
  std::uint32_t bucket = kNoSlot;  ///< slot before the step; kNoSlot: no earlier step can start it
  enum class Origin : std::uint32_t { Slot, FixedOperand, Write, Bucket };
  struct Exit {
    Origin origin = Origin::Slot;
    std::uint32_t index = 0;          ///< of the slot before, the operand, or the write; Bucket: 0
    std::uint32_t operand = kNoSlot;  ///< the first operand that is this value, when it may be charged
    bool mayBeCharged = false;
  };
  std::vector<Exit> exits;  ///< by slot behind the step
  Words kind;
};

/// The steps of a problem, sorted into fixed ones and places.
struct Layout {
  struct Fixed {
    NodeId node;
    std::shared_ptr<const PricedRow> row;  ///< exactly one candidate
  };
  std::vector<Fixed> fixed;
  std::vector<NodeId> order;  ///< steps at places
  bool isInOrder = true;      ///< that of the graph
  std::vector<bool> isFixed;  ///< by ValueId
  NodeId impossible;          ///< a fixed step without a candidate; else invalid
};
Layout layoutOf(const Pricing& pricing, PricedTable& table);

/// Walks the places of a layout.
class Frontier {
 public:
  Frontier(const Pricing& pricing, PricedTable& table, const Layout& layout);
  /// Good until the next call.
  const Place& next();
  /// What the slots behind the last place that `next` gave hold; invalid: the bucket.
  const std::vector<ValueId>& slotValues() const { return m_slots; }

 private:
  /// What Place::kind says of `m_next`, which is filled in.
  void nameKind();
  /// Which memory is there that the step does not read.
  void findBystanders();
  /// By NodeId: bytes of fixed values at its turn.
  void findFixedBytes();
  /// First and last place whose step may start the bucket.
  void findBucket();

  const Pricing& m_pricing;
  PricedTable& m_table;
  const Layout& m_layout;
  std::uint32_t m_place = 0;
  std::vector<std::uint32_t> m_lastRead;  ///< by ValueId: place of the last step that reads it, plus one; 0: none
  std::vector<std::uint32_t> m_slotOf;    ///< by ValueId
  std::vector<ValueId> m_slots;           ///< invalid: the bucket
  std::uint32_t m_firstSum = kNoSlot, m_lastSum = 0;
  std::vector<std::int64_t> m_fixedBytes;  ///< by NodeId
  std::vector<ValueId> m_holders;          ///< of what the step at `m_next` reads, then of its bystanders
  std::vector<ValueId> m_exitSlots;        ///< behind `m_next`
  Place m_next;
};

}  // namespace cleave::solve::optimal
