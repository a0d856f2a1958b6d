#pragma once
/// The places of the elimination: the slots before and after each step, and how the step uses them.
///
/// The frontier has a slot for each live value whose placement matters, and for each fixed value whose shared
/// collectives (CostModel::shared) may already be charged. When training, the first slot records whether the bucket of
/// summed gradients was started (CostModel::bucketStart).
#include "solve/candidates/frontier.h"
#include "solve/optimal/layout.h"

namespace cleave::solve::optimal {

/// The content of a slot: a placement id, and the shared collectives of the value that are already charged. The
/// bucket's slot has R; after the bucket was started it also has kSharesGradientSum.
struct Token {
  static constexpr std::uint32_t kShares = kSharesGather | kSharesGradientSum;
  static std::uint32_t of(PlacementId placement, Shares charged) { return placement << 2 | charged; }
  static PlacementId placement(std::uint32_t token) { return token >> 2; }
  static Shares charged(std::uint32_t token) { return token & kShares; }
};

/// One step of the order. Places with equal `kind` are interchangeable.
struct Place {
  const FrontierStep& step;  ///< its fresh operands are fixed, and its own slot is the bucket's
  std::uint32_t classIndex = 0;
  /// An entry slot whose value the step does not read, but whose memory is live while it runs.
  struct UnreadSlot {
    std::uint32_t slot = 0;
    std::uint32_t memory = 0;   ///< index of the memory; slots that share memory have the same index
    std::uint32_t holding = 0;  ///< PricedTable::holdingOf
    ValueId value;
  };
  std::vector<UnreadSlot> unreadSlots;
  std::int64_t unreadFixedBytes = 0;  ///< bytes of live fixed values that the step does not read
  bool isInOrder = true;              ///< Layout::isInOrder
  IdTuple kind;
};

/// Walks the places of a layout.
class Places {
 public:
  Places(const Pricing& pricing, PricedTable& table, const Layout& layout);
  /// Valid until the next call.
  const Place& next();

 private:
  /// Sets Place::kind of `m_next` from its other members.
  void setKind();
  /// Finds the live memory that the step does not read.
  void findUnreadSlots();
  /// Finds the bytes of live fixed values at each node.
  void findFixedBytes();
  /// Finds the first and the last place whose step may start the bucket.
  void findBucket();

  const Pricing& m_pricing;
  PricedTable& m_table;
  const Layout& m_layout;
  Frontier m_frontier;
  std::uint32_t m_place = 0;
  std::uint32_t m_firstSum = kNoSlot, m_lastSum = 0;
  std::vector<std::int64_t> m_fixedBytes;  ///< by NodeId
  std::vector<ValueId> m_holders;          ///< holders of the operands of `m_next`, then of its unread slots
  Place m_next{m_frontier.step()};
};

}  // namespace cleave::solve::optimal
