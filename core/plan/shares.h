#pragma once
/// Shares of work and bytes that a plan splits among the ranks. A layer with a split weight may feed attention that
/// every rank computes in full, so the count of split layers is not enough.
///
///     const Shares shares = sharesOf(problem, solution, explanation);   // build/measure_shares.h
///     fmt::print("{}\n", toText(shares));                               // text/shares_text.h
#include "plan/replication_reason.h"
#include "solve/problem/layer_count.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cleave::plan {

/// Replicated operators of one kind of module, with one reason.
struct ReplicatedWork {
  std::string pattern;                 ///< "model.layers.*.self_attn"; "": outside of modules
  std::vector<std::string> ops;        ///< the most expensive first: "scaled_dot_product_attention", "mul.Tensor"
  std::size_t count = 0;               ///< number of operators
  std::size_t modules = 0;             ///< modules of the pattern that are replicated for this reason; 0: unknown
  std::size_t modulesLike = 0;         ///< modules of the pattern
  graph::NodeId first;                 ///< the most expensive operator
  Wide flops = 0;                      ///< on each rank
  Femtoseconds femtoseconds;           ///< time per step on each rank
  ReplicationReason why = NotKnown{};  ///< of the most expensive
};

/// Replicated parameters of one kind of module.
struct WholeWeights {
  std::string pattern;                 ///< "features.*.block.0"; the parameter's name if it belongs to no module
  std::size_t count = 0;               ///< number of parameters
  std::int64_t bytes = 0;              ///< on each rank
  graph::ValueId first;                ///< the largest
  ReplicationReason why = NotKnown{};  ///< of the layer that has the largest, or of the first operator that reads it
};

struct Shares {
  int ranks = 1;
  solve::LayerCount layers;
  Wide flops = 0, rankFlops = 0;                      ///< per step: of the whole model, of one rank
  std::int64_t weightBytes = 0, rankWeightBytes = 0;  ///< of parameters, each once: of the whole model, on one rank
  Femtoseconds computeFs;                             ///< of one rank's step, without collectives
  Femtoseconds replicatedFs;                          ///< part of computeFs for replicated work
  std::vector<ReplicatedWork> replicated;             ///< the most expensive first
  std::optional<WholeWeights> largestWhole;           ///< nullopt: no parameter is replicated, or one rank

  /// Fractions of the weights and of the FLOPs per rank.
  double heldWeights() const;
  double partOfWeights(std::int64_t bytes) const;
  double computedFlops() const;
  /// 1: each rank has its even share; 0: each rank has all. Copies on some ranks count in part.
  double flopsShare() const;
  double weightShare() const;
};

}  // namespace cleave::plan
