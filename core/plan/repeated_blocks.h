#pragma once
/// Blocks of a model that compute the same ("model.layers.0", "model.layers.1", ...), so that what is found out of one
/// holds of its like. Internal to this room.
///
/// Whether a node can be split where any value may be gathered or cut is a question about its block alone: at its
/// borders all can be whole. So it is asked of the first of equal blocks, with the values in and at it to be
/// redistributed, instead of with all of a model of 60 blocks.
#include "solve/problem/variables.h"

#include <string>
#include <vector>

namespace cleave::plan {

class RepeatedBlocks {
 public:
  /// Both must outlive it.
  RepeatedBlocks(const graph::Graph& graph, const solve::Variables& variables);

  /// A node that stands for another: in the first of equal blocks; itself, where it is in no block.
  struct Stand {
    graph::NodeId node;
    std::size_t block = 0;  ///< equal for nodes of equal blocks
    std::size_t own = 0;    ///< equal for nodes of one block
  };
  Stand standOf(graph::NodeId node) const;
  /// The calls' results that a block holds or reads from elsewhere, and what those that are in no block meet with in
  /// others.
  std::vector<std::string> valuesOf(std::size_t block) const;
  /// False where there are fewer equal ones than it is worth the while for.
  bool hasMany() const { return m_blocks.size() > kFew + 1; }

 private:
  static constexpr std::size_t kFew = 8;
  struct Block {
    std::vector<graph::NodeId> calls;
    std::size_t first = 0;  ///< the first block that computes the same
  };
  bool isOwn(graph::ValueId value, graph::NodeId reader) const;
  std::size_t hashOf(const Block& block) const;
  /// Whether they compute the same: steps that rules cannot tell apart, on each other's results in the same places.
  bool areEqual(const Block& a, const Block& b) const;

  const graph::Graph& m_graph;
  const solve::Variables& m_variables;
  std::vector<Block> m_blocks;           ///< [0]: what is in no block
  std::vector<std::uint32_t> m_blockOf;  ///< by NodeId
  std::vector<std::uint32_t> m_placeOf;  ///< by NodeId: in Block::calls
};

}  // namespace cleave::plan
