#pragma once
/// The order of steps in the elimination.
///
/// Inputs, constants, parameters without an owner, and values computed only from them are always R. They are *fixed*:
/// they cost the same in every plan and need no place. The other steps follow the graph's order, or an order that
/// computes values as late as possible if that keeps fewer values live.
#include "solve/optimal/priced_table.h"

namespace cleave::solve::optimal {

/// The steps of a problem, sorted into fixed ones and places.
struct Layout {
  struct Fixed {
    NodeId node;
    std::shared_ptr<const PricedRow> row;  ///< exactly one candidate
  };
  std::vector<Fixed> fixed;
  std::vector<NodeId> order;  ///< steps at places
  bool isInOrder = true;      ///< `order` is the order of the graph
  std::vector<bool> isFixed;  ///< by ValueId
  NodeId impossible;          ///< a fixed step without a candidate, if there is one
};
Layout layoutOf(const Pricing& pricing, PricedTable& table);

}  // namespace cleave::solve::optimal
