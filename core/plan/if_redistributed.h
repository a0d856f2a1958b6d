#pragma once
/// Whether a node that no plan splits is split by one that may gather values or cut them (Problem::redistributable).
/// Internal to this room.
///
/// Where a value is split, all its readers have to take it so; at the borders of these all can be whole. So it is asked
/// of them alone before it is searched for, and both answers are right by themselves:
///   Fails   the readers cannot agree on any placements with which the node is split, all other nodes let go
///           (solve/explain/relaxed.h)
///   Holds   they can agree on even splits and whole values, with whole values behind them: these are cut and gathered
///           there, and everything else stays whole
/// Else all of the node's block may be redistributed, or in a small model everything, and plans are searched for.
#include "plan/possible.h"
#include "plan/repeated_blocks.h"
#include "solve/explain/change.h"

#include <functional>
#include <map>
#include <string>

namespace cleave::plan {

class IfRedistributed {
 public:
  /// Both must outlive it.
  IfRedistributed(const solve::Problem& problem, const solve::Variables& variables, const Progress& progress);
  ~IfRedistributed();

  /// After these changes as well. Unknown: the search ended at its limits.
  solve::Answer splits(graph::NodeId node, Part part, const std::vector<solve::Change>& changes);

 private:
  struct Readers;
  /// Readers in one block, for which those of an equal block stand, and what nothing else sees of their results.
  struct Alike {
    std::vector<std::pair<graph::NodeId, std::vector<bool>>> readers;
    Part part;
    std::string changes;
    auto operator<=>(const Alike&) const = default;
  };

  /// Of readers alone; equal ones are asked once.
  solve::Answer agreed(graph::NodeId node, Part part, const std::vector<solve::Change>& changes);
  solve::Answer agreed(const std::vector<graph::NodeId>& readers, Part part, const std::vector<solve::Change>& changes);
  /// Demands may speak of one of equal blocks.
  bool isInBlocks();
  /// By a search; and the node to look at in it.
  std::pair<const Possible*, graph::NodeId> searched(graph::NodeId node, const std::vector<solve::Change>& changes);
  /// Nullopt: a change does not fit the problem.
  std::optional<solve::Problem> changed(solve::Problem problem, const std::vector<solve::Change>& changes) const;

  const solve::Problem& m_problem;
  const solve::Variables& m_variables;
  const Progress m_progress;
  const bool m_isDemanded;
  std::optional<RepeatedBlocks> m_blocks;
  std::map<std::string, std::unique_ptr<Readers>> m_readers;  ///< by the changes' texts; null: they do not fit
  std::map<Alike, solve::Answer> m_agreed;
  std::unique_ptr<Readers> m_widest;           ///< with all that a user could allow
  std::map<std::string, Possible> m_searched;  ///< by values and the changes' texts
};

}  // namespace cleave::plan
