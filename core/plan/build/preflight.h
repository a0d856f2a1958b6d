#pragma once
/// Facts about a model that are known without a search: what cannot be split, why, and its cost. Pure. Takes a few
/// milliseconds for a large model, so run it off the GUI thread.
#include "graph/attention.h"
#include "plan/plan.h"

namespace cleave::plan {

/// An operator without a rule: its operands must be replicated.
struct UnknownOperator {
  std::string op;
  std::size_t count = 0;
  NodeId first;
  bool matters = false;  ///< a layer's split result could have reached it
  std::string text;      ///< the consequence, one sentence
};

/// Equal layers whose sizes do not divide by the ranks.
struct IndivisibleLayers {
  std::string pattern;  ///< "model.layers.*.self_attn.k_proj"
  std::size_t count = 0;
  NodeId first;
  std::string reason;      ///< "3 heads do not split over 2 ranks"
  std::int64_t bytes = 0;  ///< bytes of their whole weights
};

/// Equal weights that are replicated in every plan.
struct ReplicatedWeights {
  std::string pattern;
  std::size_t count = 0;
  NodeId first;
  std::int64_t bytes = 0;
  std::string why;
};

/// Attention whose heads do not divide: every rank computes all of it, or ranks share copies of keys and values.
struct IndivisibleHeads {
  std::string pattern;  ///< "model.layers.*.self_attn"
  std::size_t count = 0;
  NodeId first;
  graph::Heads heads;
  std::string text;  ///< the consequence, one sentence
};

struct Preflight {
  std::vector<UnknownOperator> unknownOperators;
  std::vector<IndivisibleHeads> heads;
  std::vector<IndivisibleLayers> indivisible;
  std::vector<ReplicatedWeights> replicated;
  std::int64_t replicatedBytes = 0;
  std::size_t unsplitLayers = 0;  ///< layers without a strategy that splits them, or whose sizes do not divide
};

/// For the problem's world size. Uses only rules and the strategies of layers.
Preflight preflight(const solve::Problem& problem);

/// The checks that found no problem, as clauses: "every operator has a rule".
std::vector<std::string> passedChecks(const Preflight& report, int ranks);

}  // namespace cleave::plan
