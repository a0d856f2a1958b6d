#pragma once
/// For a node that no plan splits: can a plan split it that may gather values or split them
/// (Problem::redistributable)? Internal to this room.
///
/// All readers of a split value must accept its placement. After the readers everything can be replicated, so the
/// readers alone are asked before a search, and both of these answers are exact:
///   Fails   the readers cannot agree on placements that split the node, even if all other nodes are ignored
///           (solve/explain/relaxed.h)
///   Holds   the readers can agree on even splits and replicated values, with replicated values after them: these are
///           split and gathered at the border, and everything else is replicated
/// Otherwise the search may redistribute every value of the node's block, or in a small model every value.
#include "plan/replication/possible.h"
#include "plan/replication/repeated_blocks.h"
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

  /// The answer with these changes. Unknown: the search stopped at its limits.
  solve::Answer splits(graph::NodeId node, Part part, const std::vector<solve::Change>& changes);

 private:
  struct Readers;
  /// Readers in one block, represented by those of an equal block, and the results that no other node reads.
  struct Alike {
    std::vector<std::pair<graph::NodeId, std::vector<bool>>> readers;
    Part part;
    std::string changes;
    auto operator<=>(const Alike&) const = default;
  };

  /// The answer of the readers alone; equal readers are asked once.
  solve::Answer agreed(graph::NodeId node, Part part, const std::vector<solve::Change>& changes);
  solve::Answer agreed(const std::vector<graph::NodeId>& readers, Part part, const std::vector<solve::Change>& changes);
  /// Demands may name one of equal blocks.
  bool isInBlocks();
  /// The result of a search, and the node to look up in it.
  std::pair<const Possible*, graph::NodeId> searched(graph::NodeId node, const std::vector<solve::Change>& changes);
  /// nullopt if a change does not fit the problem.
  std::optional<solve::Problem> changed(solve::Problem problem, const std::vector<solve::Change>& changes) const;

  const solve::Problem& m_problem;
  const solve::Variables& m_variables;
  const Progress m_progress;
  const bool m_isDemanded;
  std::optional<RepeatedBlocks> m_blocks;
  std::map<std::string, std::unique_ptr<Readers>> m_readers;  ///< by the texts of the changes; null: they do not fit
  std::map<Alike, solve::Answer> m_agreed;
  std::unique_ptr<Readers> m_widest;           ///< with everything that a user can allow
  std::map<std::string, Possible> m_searched;  ///< by values and the changes' texts
};

}  // namespace cleave::plan
