#pragma once
/// Whether some of a problem's nodes can hold together while the others are let go: what a deletion filter over nodes asks.
///
/// A node that is let go (relaxed) may place its results anyhow: whole, any even split that divides, and every placement that
/// the layers beside it know. Sources (inputs, constants, parameters that no layer owns) and nodes that a pin speaks of
/// are always kept. Exact over that universe: the kept nodes are taken in topological order, and the placements of values that a later kept
/// node still reads are the state (transformer graphs are narrow). Remembers the rules' answers; one thread.
#include "solve/candidates.h"

#include <chrono>
#include <unordered_map>

namespace cleave::solve {

/// When to stop: at a moment, or when the user asks.
class Deadline {
 public:
  Deadline(std::int64_t timeLimitMs, const Progress& progress)
      : m_end(std::chrono::steady_clock::now() + std::chrono::milliseconds(timeLimitMs)), m_progress(progress) {}
  bool isOver() const { return m_progress.cancelled() || std::chrono::steady_clock::now() >= m_end; }
  const Progress& progress() const { return m_progress; }

 private:
  std::chrono::steady_clock::time_point m_end;
  const Progress& m_progress;
};

/// How the operands and results of one node lie in an assignment that every kept node agrees with.
struct Witness {
  std::vector<Placement> reads, writes;  ///< in the order of Variables::reads and writes
};

class Relaxation {
 public:
  Relaxation(const Problem& problem, const Variables& variables);

  enum class Answer : std::uint8_t { Holds, Fails, Unknown };
  /// `kept`: by NodeId. Unknown: too many states, or the deadline.
  Answer check(const std::vector<bool>& kept, const Deadline& deadline);
  /// An assignment of the kept nodes as `observed`, a node that is let go, sees it; nullopt when there is none or it is not known.
  std::optional<Witness> witness(const std::vector<bool>& kept, NodeId observed, const Deadline& deadline);

  /// True for nodes that cannot be let go.
  bool isBackground(NodeId node) const { return m_isBackground[node.index()]; }

 private:
  using PlacementId = std::uint16_t;
  struct Class {
    std::unordered_map<std::u16string, std::vector<std::vector<PlacementId>>> answers;  ///< reads → the writes of each candidate
  };
  struct State {
    std::u16string live;       ///< placement ids of the live values, in the order of `m_live`
    std::uint32_t before = 0;  ///< index among the states before the step
  };
  /// One run of the elimination.
  struct Sweep;

  void classify();
  PlacementId intern(const Placement& placement);
  const std::vector<PlacementId>& universe(ValueId value);
  const std::vector<std::vector<PlacementId>>& answers(NodeId node, const std::u16string& reads);

  const Problem& m_problem;
  const Variables& m_variables;
  const Graph& m_graph;
  std::vector<bool> m_isBackground;                    ///< by NodeId
  std::vector<std::uint32_t> m_classOf;                ///< by NodeId
  std::vector<Class> m_classes;
  std::vector<Placement> m_placements;                 ///< by placement id; 0 is R
  std::unordered_map<Placement, PlacementId> m_ids;
  std::unordered_map<std::uint32_t, std::vector<PlacementId>> m_universes;  ///< by raw ValueId
};

}  // namespace cleave::solve
