#pragma once
/// Blocks of a model that compute the same ("model.layers.0", "model.layers.1", ...): a result for one block is valid
/// for its equals. Internal to this room.
///
/// If any value may be gathered or split, the question whether a node can be split depends on its block only, because
/// values at the border can be replicated. So the search runs on the first of equal blocks, not on a model of 60
/// blocks.
#include "solve/problem/variables.h"

#include <string>
#include <vector>

namespace cleave::plan {

class RepeatedBlocks {
 public:
  /// Both must outlive it.
  RepeatedBlocks(const graph::Graph& graph, const solve::Variables& variables);

  /// The representative of a node: its counterpart in the first of equal blocks, or itself outside of blocks.
  struct Stand {
    graph::NodeId node;
    std::size_t block = 0;  ///< equal for nodes of equal blocks
    std::size_t own = 0;    ///< equal for nodes of one block
  };
  Stand standOf(graph::NodeId node) const;
  /// Results of calls that a block contains or reads, and the values that readers of outside values combine with them.
  std::vector<std::string> valuesOf(std::size_t block) const;
  /// False if there are too few equal blocks for the effort.
  bool hasMany() const { return m_blocks.size() > kFew + 1; }

 private:
  static constexpr std::size_t kFew = 8;
  struct Block {
    std::vector<graph::NodeId> calls;
    std::size_t first = 0;  ///< the first block that computes the same
  };
  bool isOwn(graph::ValueId value, graph::NodeId reader) const;
  std::size_t hashOf(const Block& block) const;
  /// True if the blocks compute the same: steps with equal rules on corresponding results.
  bool areEqual(const Block& a, const Block& b) const;

  const graph::Graph& m_graph;
  const solve::Variables& m_variables;
  std::vector<Block> m_blocks;           ///< [0]: nodes outside of blocks
  std::vector<std::uint32_t> m_blockOf;  ///< by NodeId
  std::vector<std::uint32_t> m_placeOf;  ///< by NodeId: in Block::calls
};

}  // namespace cleave::plan
