#pragma once
/// What the elimination has to remember between two steps, and what a step does with it.
///
/// The frontier has a slot for each live value whose placement matters, and for each fixed value whose shared
/// collectives (CostModel::shared) may have been charged already; when training, the first slot knows whether the
/// bucket of summed gradients was started (CostModel::bucketStart).
#include "solve/candidates/frontier.h"
#include "solve/optimal/layout.h"

namespace cleave::solve::optimal {

/// What a slot holds: a placement id, and which of the value's shared collectives are charged already. The bucket's
/// slot: R, and its start as the sum of a gradient.
struct Token {
  static constexpr std::uint32_t kShares = kSharesWhole | kSharesGradientSum;
  static std::uint32_t of(PlacementId placement, Shares charged) { return placement << 2 | charged; }
  static PlacementId placement(std::uint32_t token) { return token >> 2; }
  static Shares charged(std::uint32_t token) { return token & kShares; }
};

/// One step of the order. Places with equal `kind` behave alike.
struct Place {
  const FrontierStep& step;  ///< its fresh operands are fixed, its own slot is the bucket's
  std::uint32_t classIndex = 0;
  /// A slot before whose value the step does not read, and whose memory is there at its turn.
  struct Bystander {
    std::uint32_t slot = 0;
    std::uint32_t memory = 0;   ///< equal for bystanders in the same memory, counted from 0
    std::uint32_t holding = 0;  ///< PricedTable::holdingOf
    ValueId value;
  };
  std::vector<Bystander> bystanders;
  std::int64_t fixedBeside = 0;  ///< bytes of fixed values that are there too
  bool isInOrder = true;         ///< Layout::isInOrder
  Words kind;
};

/// Walks the places of a layout.
class Places {
 public:
  Places(const Pricing& pricing, PricedTable& table, const Layout& layout);
  /// Good until the next call.
  const Place& next();

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
  Frontier m_frontier;
  std::uint32_t m_place = 0;
  std::uint32_t m_firstSum = kNoSlot, m_lastSum = 0;
  std::vector<std::int64_t> m_fixedBytes;  ///< by NodeId
  std::vector<ValueId> m_holders;          ///< of what the step of `m_next` reads, then of its bystanders
  Place m_next{m_frontier.step()};
};

}  // namespace cleave::solve::optimal
