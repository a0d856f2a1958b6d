#pragma once
/// How much of a model its plan divides among the ranks, by work and by bytes: a layer whose weight is split may feed
/// an attention that every rank computes in full. Read by everything that says how parallel a plan is.
///
///     Standings standings(problem, solution, engine, optimum);
///     const Shares shares = sharesOf(problem, solution, &standings);
///     fmt::print("{}\n", toText(shares));   // "Each rank holds 50.1 % of the weights and computes 51.4 % of the
///     FLOPs."
#include "plan/standing.h"
#include "solve/problem/layer_count.h"

#include <string>
#include <vector>

namespace cleave::plan {

struct Plan;

/// Operators of one kind of module that every rank computes in full, for one reason.
struct ReplicatedWork {
  std::string pattern;           ///< "model.layers.*.self_attn"; "": outside of modules
  std::vector<std::string> ops;  ///< the dearest first: "scaled_dot_product_attention", "mul.Tensor"
  std::size_t count = 0;         ///< of operators
  std::size_t modules =
      0;  ///< of those that the pattern names, so many are computed whole for this reason; 0: not known
  std::size_t modulesLike = 0;  ///< that the pattern names
  graph::NodeId first;          ///< the dearest
  Wide flops = 0;               ///< on each rank
  Femtoseconds femtoseconds;    ///< of each rank's step
  Standing why = NotKnown{};    ///< of the dearest
};

/// Parameters of one kind of module that every rank holds in full.
struct WholeWeights {
  std::string pattern;        ///< "features.*.block.0"; a parameter's name where it belongs to no module
  std::size_t count = 0;      ///< of parameters
  std::int64_t bytes = 0;     ///< on each rank
  graph::ValueId first;       ///< the largest
  Standing why = NotKnown{};  ///< of the layer that has the largest, or of the first operator that reads it
};

struct Shares {
  int ranks = 1;
  solve::LayerCount layers;
  Wide flops = 0, rankFlops = 0;                      ///< of one step: of the whole model, of one rank
  std::int64_t weightBytes = 0, rankWeightBytes = 0;  ///< of parameters, each once: of the whole model, on one rank
  Femtoseconds computeFs;                             ///< of one rank's step, without collectives
  Femtoseconds replicatedFs;                          ///< of these: on what every rank computes in full
  std::vector<ReplicatedWork> replicated;             ///< the dearest first
  std::optional<WholeWeights> largestWhole;           ///< nullopt: no parameter is on every rank, or there is one rank

  /// What a rank holds of the weights and computes of the FLOPs, of 1.
  double heldWeights() const;
  double computedFlops() const;
  /// 1: each rank does its even share and no more; 0: each does all. Copies on some ranks count in part.
  double flopsShare() const;
  double weightShare() const;
};

/// What the model costs on one rank, which holds and computes all of it.
solve::PlanCost costOfReplicated(const solve::Problem& problem);
/// What that rank holds at most while it trains the rows of all replicas (program/mesh.h) as the plan does, without
/// checkpoints.
std::int64_t unsplitTrainingBytes(const Plan& plan, int replicas);

/// Without `standings` nothing is known of why.
Shares sharesOf(const solve::Problem& problem, const solve::Solution& solution, Standings* standings);

/// "92.4 %": never "100 %" of less than all, nor "0 %" of more than nothing.
std::string percentText(double share);
/// The number that `percentText` shows.
double shownPercent(double share);
/// "Each rank holds 50.1 % of the weights and computes 51.4 % of the FLOPs (even shares are 50 %). 224 of 226 layers
/// with weights are split, 2 are gathered after the product."
std::string toText(const Shares& shares);
/// "Largest part on every rank: `features.*.block.0`, 21 MiB, 75.2 % of the weights: cannot be split: …"; empty where
/// that is less than a hundredth of the weights.
std::string largestWholeText(const Shares& shares);
/// "`model.layers.*.self_attn`", "`model.layers.*.self_attn` (1 of 2)": which modules.
std::string modulesText(const ReplicatedWork& work);
/// "`model.layers.*.self_attn` is computed replicated (28 × scaled_dot_product_attention …): it cannot be
/// split: …; 1.2 ms of each step".
std::string toText(const ReplicatedWork& work);
/// Attention that every rank computes in full because it cannot be split, or not under these settings: what a count of
/// split layers hides.
std::vector<const ReplicatedWork*> indivisibleHeads(const Shares& shares);

}  // namespace cleave::plan
