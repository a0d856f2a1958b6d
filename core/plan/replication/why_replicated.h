#pragma once
/// What keeps a node replicated in a solution: the user's pins, a number of heads, or what refuses each split strategy
/// that it could have taken. Internal to this room; one thread.
#include "plan/replication/possible.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace cleave::plan {

class WhyReplicated {
 public:
  /// Both must outlive it.
  WhyReplicated(const solve::Problem& problem, const solve::Solution& solution);
  /// Texts of the pins that leave the layer no split strategy; what pins speak of is looked up once.
  std::vector<std::string> demanded(graph::NodeId layer) const;
  /// A clause with the numbers, without the node's name and without a full stop: "113 output features do not divide by
  /// 2 ranks". Heads come before all else: everything between the projections follows from them.
  std::string of(graph::NodeId node, Part part);
  /// The same of a layer whose heads divide, or are not in question.
  std::string ofLayer(graph::NodeId layer) const;

 private:
  /// "the sequence of 128 does not divide by 3 ranks", where that refuses all layers their strategies along it; else
  /// empty.
  const std::string& ofSequence();
  /// "28 heads do not divide by 8 ranks", of the attention in the node's module or between the projections that a layer
  /// is one of; empty: they do, or it is elsewhere.
  std::string ofHeads(graph::NodeId node);
  /// By the path of the module whose attention does not go by copies of KV heads; empty text: its heads divide.
  const std::unordered_map<std::string, std::string>& headsByModule();

  const solve::Problem& m_problem;
  const solve::Solution& m_solution;
  const solve::Variables m_variables;
  std::vector<solve::PinTargets> m_targets;  ///< by index into Problem::pins
  std::optional<std::string> m_ofSequence;
  std::optional<std::unordered_map<std::string, std::string>> m_headsByModule;
};

}  // namespace cleave::plan
