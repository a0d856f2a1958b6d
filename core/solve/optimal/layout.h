#pragma once
/// The order in which the elimination takes steps.
///
/// Inputs, constants, parameters without an owner and whatever is computed from them alone are always R: they are
/// *fixed*, cost the same in every plan and take no place. The other steps follow the graph's order, or an order that
/// computes a value as late as possible where that keeps fewer values live.
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
  bool isInOrder = true;      ///< that of the graph
  std::vector<bool> isFixed;  ///< by ValueId
  NodeId impossible;          ///< a fixed step without a candidate; else invalid
};
Layout layoutOf(const Pricing& pricing, PricedTable& table);

}  // namespace cleave::solve::optimal
