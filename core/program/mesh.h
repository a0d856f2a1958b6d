#pragma once
/// Ranks that split a model (tensor parallelism) and are there several times over (data parallelism), as Megatron-LM
/// and PyTorch's DeviceMesh number them: the ranks of one replica are neighbours.
///
///     dp=2,tp=3   replica 0: ranks 0 1 2   replica 1: ranks 3 4 5
///                 counterparts, which hold the same part: 0 3, 1 4, 2 5
///
/// Of each micro-batch a replica computes its rows, as many as the plan's batch: replica d those from d · batch on.
/// Pure values.
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::program {

inline constexpr int kMostReplicas = 1024;

struct Mesh {
  int dp = 1;  ///< replicas
  int tp = 1;  ///< ranks of each: those of the plan
  int ranks() const { return dp * tp; }
  int replicaOf(int rank) const { return rank / tp; }
  int placeOf(int rank) const { return rank % tp; }  ///< the plan's rank that it is
  bool isReplicated() const { return dp > 1; }
  bool operator==(const Mesh&) const = default;
};

/// "dp=2,tp=4", in either order; what is not named is 1. BadUsage names `flag` and what is wrong.
Result<Mesh> parseMesh(std::string_view flag, std::string_view text);
std::string toText(const Mesh& mesh);  ///< "dp=2,tp=4"

/// BadUsage for what only one replica can run: an exported program, in whose inputs nobody knows which are rows.
Result<void> checkReplicated(const Mesh& mesh, std::string_view source, bool isExported);

}  // namespace cleave::program
