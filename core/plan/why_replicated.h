#pragma once
/// What keeps a layer replicated in a solution: the user's pins, or what refuses each split strategy it could have
/// taken. Internal to this room.
#include "solve/problem/problem.h"

#include <string>
#include <vector>

namespace cleave::plan {

class WhyReplicated {
 public:
  /// Both must outlive it.
  WhyReplicated(const solve::Problem& problem, const solve::Solution& solution);
  /// Texts of the pins that leave the layer no split strategy; what pins speak of is looked up once.
  std::vector<std::string> demanded(graph::NodeId layer) const;
  /// A clause with the numbers, without the layer's name and without a full stop: "113 output features do not divide by
  /// 2 ranks".
  std::string refusal(graph::NodeId layer) const;

 private:
  const solve::Problem& m_problem;
  const solve::Solution& m_solution;
  std::vector<solve::PinTargets> m_targets;  ///< by index into Problem::pins
};

}  // namespace cleave::plan
