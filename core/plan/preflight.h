#pragma once
/// What can be said of a model before any search: what will not split, why, and what that costs. Pure; a few
/// milliseconds for a large model, so run it off the GUI thread.
#include "graph/attention.h"
#include "plan/plan.h"

namespace cleave::plan {

/// An operator of the graph that no rule knows: its operands must be replicated.
struct UnknownOperator {
  std::string op;
  std::size_t count = 0;
  NodeId first;
  bool matters = false;  ///< a layer's split result could have reached it
  std::string text;      ///< what follows from it, one sentence
};

/// A layer (or a group of equal ones) that does not divide, with the numbers.
struct IndivisibleLayers {
  std::string pattern;  ///< "model.layers.*.self_attn.k_proj"
  std::size_t count = 0;
  NodeId first;
  std::string reason;      ///< "3 heads do not split over 2 ranks"
  std::int64_t bytes = 0;  ///< of their weights, whole
};

/// Weights that every rank holds in full, and their bytes.
struct ReplicatedWeights {
  std::string pattern;
  std::size_t count = 0;
  NodeId first;
  std::int64_t bytes = 0;
  std::string why;
};

/// Attention that every rank computes in full, or whose keys and values some ranks hold in copies, because heads do not
/// divide.
struct IndivisibleHeads {
  std::string pattern;  ///< "model.layers.*.self_attn"
  std::size_t count = 0;
  NodeId first;
  graph::Heads heads;
  std::string text;  ///< what follows from it, one sentence
};

struct Preflight {
  std::vector<UnknownOperator> unknownOperators;
  std::vector<IndivisibleHeads> heads;
  std::vector<IndivisibleLayers> indivisible;
  std::vector<ReplicatedWeights> whole;
  std::int64_t replicatedBytes = 0;
  std::size_t unsplitLayers = 0;  ///< layers that no strategy splits, for their sizes or for want of one
};

/// For the problem's own world size. Asks rules and layer options only; no search.
Preflight preflight(const solve::Problem& problem);

/// What stands in no plan's way on so many ranks, a clause each: "every operator has a rule".
std::vector<std::string> whatIsWell(const Preflight& report, int ranks);

}  // namespace cleave::plan
