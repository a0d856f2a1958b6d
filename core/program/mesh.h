#pragma once
/// Ranks that split a model (tensor parallelism), with several replicas (data parallelism), numbered as in Megatron-LM
/// and PyTorch's DeviceMesh: the ranks of one replica are neighbours.
///
///     dp=2,tp=3   replica 0: ranks 0 1 2   replica 1: ranks 3 4 5
///                 counterparts with the same part: 0 3, 1 4, 2 5
///
/// Each replica computes as many rows of each micro-batch as the plan's batch; replica d starts at row d · batch. Pure
/// values.
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::program {

inline constexpr int kMostReplicas = 1024;

struct Mesh {
  int dp = 1;  ///< replicas
  int tp = 1;  ///< ranks per replica, as in the plan
  int ranks() const { return dp * tp; }
  int replicaOf(int rank) const { return rank / tp; }
  int placeOf(int rank) const { return rank % tp; }  ///< its rank in the plan
  bool isReplicated() const { return dp > 1; }
  bool operator==(const Mesh&) const = default;
};

/// "dp=2,tp=4", in either order; an omitted number is 1. BadUsage names `flag` and the error.
Result<Mesh> parseMesh(std::string_view flag, std::string_view text);
std::string toText(const Mesh& mesh);  ///< "dp=2,tp=4"

/// BadUsage for more than one replica of an exported program, because it is not known which of its inputs have rows.
Result<void> checkReplicated(const Mesh& mesh, std::string_view source, bool isExported);

}  // namespace cleave::program
