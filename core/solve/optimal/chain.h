#pragma once
/// The elimination with folded stretches put together: what leads from the states before a whole block to those behind
/// it, as the few ways that no other beats in both time and bytes. A model of 126 equal blocks is a chain of some two
/// hundred links.
#include "solve/optimal/bounds.h"

#include <functional>

namespace cleave::solve::optimal {

/// A way from an entry state to an exit state.
struct Arc {
  Wide femtoseconds = 0, bytes = 0;
  std::uint32_t to = 0;
  std::uint32_t pricing = 0;  ///< of a single place: the transition; of a block: the label at its end
};

/// Arcs by entry state.
struct Relation {
  std::uint32_t entries = 0, exits = 0;
  std::vector<std::uint32_t> begins;
  std::vector<Arc> arcs;
};

/// Time and bytes of some way from the start to a state.
struct Label {
  Wide femtoseconds = 0, bytes = 0;
  std::uint32_t parent = 0;  ///< label before the arc
  std::uint32_t arc = 0;     ///< into Relation::arcs
};

/// Labels at one boundary: of each state by rising time and falling bytes, none beaten in both by another.
struct LabelSet {
  std::vector<std::uint32_t> begins;
  std::vector<Label> labels;
};

/// The labels behind `relation`. `keeps(state, femtoseconds, bytes)` false drops one.
using Keeps = std::function<bool(std::uint32_t, Wide, Wide)>;
LabelSet extended(const LabelSet& labels, const Relation& relation, const Keeps& keeps);
/// One label of nothing at `state`.
LabelSet startingAt(std::uint32_t state, std::uint32_t states);

/// A stretch of places that several stretches equal.
struct Repetition {
  Relation relation;
  std::size_t places = 0;
  std::vector<std::shared_ptr<const Relation>> inner;  ///< by place
  std::vector<std::vector<LabelSet>> labels;           ///< by entry state, then boundary
};

class Chain {
 public:
  struct Link {
    std::shared_ptr<const Relation> relation;
    std::shared_ptr<const Repetition> block;  ///< null: a single place
    std::size_t place = 0;                    ///< the first
  };
  const std::vector<Link>& links() const { return m_links; }
  /// One arc for each link, as transitions.
  Path expanded(const std::vector<std::uint32_t>& arcs) const;

  static constexpr std::int64_t kAnyPeak = std::numeric_limits<std::int64_t>::max();
  /// Without the transitions whose transientBytes are `peakLimit` or more. nullopt when cancelled.
  static std::optional<Chain> of(const Elimination& elimination, std::int64_t peakLimit, const Progress& progress);
  /// Place by place, with fewer transitions.
  static Chain unfolded(const Elimination& elimination, std::int64_t peakLimit, const Restriction& restriction);
  /// The same with fewer transitions at some places, whose blocks are taken apart.
  Chain restricted(const Elimination& elimination, const Restriction& restriction) const;
  /// The same links and arcs with time and bytes exchanged, for searches that minimise bytes.
  Chain turned() const;

 private:
  std::vector<Link> m_links;
  std::int64_t m_peakLimit = kAnyPeak;
};

/// Least weight from each state to the end, by boundary.
std::vector<std::vector<Wide>> backward(const Chain& chain, Weights weights);
/// No way through the chain costs more.
PathCost mostOf(const Chain& chain);

}  // namespace cleave::solve::optimal
