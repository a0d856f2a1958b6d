#pragma once
/// The elimination with each repeated block as one link. A link has the ways from the states before it to those after
/// it that are Pareto-optimal in time and bytes. A model of 126 equal blocks is a chain of about two hundred links.
#include "solve/optimal/bounds.h"

#include <functional>

namespace cleave::solve::optimal {

/// A way from an entry state to an exit state.
struct Arc {
  Wide femtoseconds = 0, bytes = 0;
  std::uint32_t to = 0;
  std::uint32_t pricing = 0;  ///< for a single place: the transition; for a block: the label at its end
};

/// Arcs by entry state.
struct Relation {
  std::uint32_t entries = 0, exits = 0;
  std::vector<std::uint32_t> begins;
  std::vector<Arc> arcs;
};

/// Time and bytes of a way from the start to a state.
struct Label {
  Wide femtoseconds = 0, bytes = 0;
  std::uint32_t parent = 0;  ///< label before the arc
  std::uint32_t arc = 0;     ///< into Relation::arcs
};

/// Labels at one boundary, the Pareto front of each state by rising time and falling bytes.
struct LabelSet {
  std::vector<std::uint32_t> begins;
  std::vector<Label> labels;
};

/// The labels after `relation`. A label is dropped if `keeps(state, femtoseconds, bytes)` is false.
using Keeps = std::function<bool(std::uint32_t, Wide, Wide)>;
LabelSet extended(const LabelSet& labels, const Relation& relation, const Keeps& keeps);
/// One label of zero cost at `state`.
LabelSet startingAt(std::uint32_t state, std::uint32_t states);

/// A sequence of places that occurs several times.
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
    std::shared_ptr<const Repetition> block;  ///< null: the link is a single place
    std::size_t place = 0;                    ///< first place of the link
  };
  const std::vector<Link>& links() const { return m_links; }
  /// The transitions of a path, given one arc per link.
  Path expanded(const std::vector<std::uint32_t>& arcs) const;

  static constexpr std::int64_t kAnyPeak = std::numeric_limits<std::int64_t>::max();
  /// The chain without transitions whose transientBytes are `peakLimit` or more. nullopt if cancelled.
  static std::optional<Chain> of(const Elimination& elimination, std::int64_t peakLimit, const Progress& progress);
  /// A chain with one link per place and fewer transitions.
  static Chain unfolded(const Elimination& elimination, std::int64_t peakLimit, const Restriction& restriction);
  /// The chain with fewer transitions at some places. Blocks with such a place are split into places.
  Chain restricted(const Elimination& elimination, const Restriction& restriction) const;
  /// The same links and arcs with time and bytes exchanged, for searches that minimise bytes.
  Chain withCostsSwapped() const;

 private:
  std::vector<Link> m_links;
  std::int64_t m_peakLimit = kAnyPeak;
};

/// Least weight from each state to the end, by boundary.
std::vector<std::vector<Wide>> backward(const Chain& chain, Weights weights);
/// An upper bound of the cost of every way through the chain.
PathCost mostOf(const Chain& chain);

}  // namespace cleave::solve::optimal
