#pragma once
/// Liveness of a program's intermediate values in the interpreter. A result's memory is allocated when its node runs,
/// and freed after the last node that reads it or a view of it. Graph outputs live until the end. Sources own no memory
/// here.
///
///     const Lifetimes lifetimes(graph);                    // once per graph
///     lifetimes.run(bytesByValue, workspaceByNode).peak;   // for each placement of its values
#include "graph/graph.h"

#include <span>
#include <string_view>
#include <vector>

namespace cleave::graph {

struct MemoryUse {
  std::int64_t peak = 0;                ///< peak bytes of live values and work space together
  std::int64_t workspaceAtPeak = 0;     ///< work space in `peak`
  NodeId peakNode;                      ///< the first call that reaches the peak; invalid without calls
  std::vector<std::int64_t> liveAfter;  ///< by NodeId
};

/// Immutable; any thread. The graph must outlive it.
class Lifetimes {
 public:
  /// `inPlaceOp`: an operator whose result reuses the memory of its first operand if no later node reads that.
  explicit Lifetimes(const Graph& graph, std::string_view inPlaceOp = {});

  /// The value that owns the memory of `value`: itself, or the base of a view.
  ValueId ownerOf(ValueId value) const { return m_owner[value.index()]; }
  /// True for the result of a call that is not a view.
  bool ownsMemory(ValueId value) const { return m_ownsMemory[value.index()]; }

  /// The last node that reads an owner's memory, or its producer if no node reads it. Outputs do not count.
  NodeId lastReader(ValueId owner) const { return NodeId(m_lastUse[owner.index()]); }

  /// `bytes` by ValueId (used for values that own memory), `workspace` by NodeId: buffers that live while the node
  /// runs.
  MemoryUse run(std::span<const std::int64_t> bytes, std::span<const std::int64_t> workspace) const;

 private:
  /// Finds the owners, and for each owner the last node that reads it or a view of it.
  std::vector<std::uint32_t> findOwners();
  void findDying(std::vector<std::uint32_t> lastUse);
  bool takesOver(NodeId id) const { return !m_takesOver.empty() && m_takesOver[id.index()]; }

  const Graph& m_graph;
  std::vector<ValueId> m_owner;             ///< by value
  std::vector<bool> m_ownsMemory;           ///< by value
  std::vector<std::uint32_t> m_lastUse;     ///< by owner: see lastReader
  std::vector<std::uint32_t> m_dyingBegin;  ///< by node: start of its part of m_dying
  std::vector<ValueId> m_dying;             ///< values that are freed after each node
  std::vector<bool> m_takesOver;            ///< by node; empty without an in-place operator
};

}  // namespace cleave::graph
