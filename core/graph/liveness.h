#pragma once
/// Liveness of a program's intermediate values as an interpreter runs it: a result's memory is allocated when its node
/// runs and freed after the last node that reads it or a view of it; graph outputs stay to the end. Sources own no
/// memory here.
///
///     const Lifetimes lifetimes(graph);                    // once per graph
///     lifetimes.run(bytesByValue, workspaceByNode).peak;   // for each way its values may lie
#include "graph/graph.h"

#include <span>
#include <string_view>
#include <vector>

namespace cleave::graph {

struct MemoryUse {
  std::int64_t peak = 0;                ///< most bytes of live values and work space at once
  std::int64_t workspaceAtPeak = 0;     ///< of `peak`
  NodeId peakNode;                      ///< the first call at which that is; invalid: no calls
  std::vector<std::int64_t> liveAfter;  ///< by NodeId
};

/// Immutable; any thread. The graph must outlive it.
class Lifetimes {
 public:
  /// `inPlaceOp`: an operator whose result takes over the memory of its first operand where nothing reads that later.
  explicit Lifetimes(const Graph& graph, std::string_view inPlaceOp = {});

  /// The value whose memory `value` is: itself, or what it is a view of.
  ValueId ownerOf(ValueId value) const { return m_owner[value.index()]; }
  /// True for the result of a call that is no view.
  bool ownsMemory(ValueId value) const { return m_ownsMemory[value.index()]; }

  /// The last node that reads an owner's memory; its producer where none does. Outputs are not counted.
  NodeId lastReader(ValueId owner) const { return NodeId(m_lastUse[owner.index()]); }

  /// `bytes` by ValueId (asked of values that own memory), `workspace` by NodeId: buffers that live while the node
  /// runs.
  MemoryUse run(std::span<const std::int64_t> bytes, std::span<const std::int64_t> workspace) const;

 private:
  /// Owners, and by owner the last node that reads it or a view of it.
  std::vector<std::uint32_t> findOwners();
  void findDying(std::vector<std::uint32_t> lastUse);
  bool takesOver(NodeId id) const { return !m_takesOver.empty() && m_takesOver[id.index()]; }

  const Graph& m_graph;
  std::vector<ValueId> m_owner;             ///< by value
  std::vector<bool> m_ownsMemory;           ///< by value
  std::vector<std::uint32_t> m_lastUse;     ///< by owner: see lastReader
  std::vector<std::uint32_t> m_dyingBegin;  ///< by node: where its part of m_dying begins
  std::vector<ValueId> m_dying;             ///< values that are freed after each node
  std::vector<bool> m_takesOver;            ///< by node; empty: none does
};

}  // namespace cleave::graph
