#pragma once
/// One rank of a run, from the program in a plan file to result lines. No LibTorch in this header.
///
/// The interpreter runs the rank program (or several, one after the other, on the same weights) node by node with ATen,
/// frees values when dead, and sends every collective through one `Collectives` interface (Gloo, NCCL, or none for one
/// rank). Loads only this rank's slices.
#include "base/progress.h"
#include "libtorch/rank/limits.h"
#include "program/generation.h"
#include "program/training.h"
#include "protocol/events.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cleave::torch_rank {

/// A batch and a sequence within those of a program, whose other positions are padding: 0 and 0: all of them.
struct Rows {
  std::int64_t batch = 0, sequence = 0;
  bool areAll() const { return batch == 0; }
  bool operator==(const Rows&) const = default;
};

struct RankRequest {
  struct Plan {
    std::filesystem::path file;
    Rows rows = {};
    bool operator==(const Plan&) const = default;
  };
  std::filesystem::path planFile;
  /// What runs behind it on the weights that it has loaded, one after the other; one that was there before runs again.
  /// Outputs of the n-th of all go to `outputFile` with "-n" behind it, n > 1.
  std::vector<Plan> then;
  std::string backend = "gloo";  ///< "gloo" or "nccl"
  int rank = 0, localRank = 0, worldSize = 1;
  int replicas = 1;  ///< of the plan's ranks (program/mesh.h)
  std::string masterAddress = "127.0.0.1";
  int masterPort = 0;
  int listenFd = -1;       ///< rank 0: an inherited socket that listens on masterPort; -1: none
  std::string agentStore;  ///< see protocol::RankEnvironment
  std::chrono::seconds collectiveTimeout = kCallTimeout;  ///< a collective that takes longer fails the rank
  std::chrono::seconds connectTimeout{60};          ///< until all ranks have met and the first collective is through
  std::optional<std::filesystem::path> inputFile;   ///< safetensors with input_ids, labels, attention_mask, ...
  std::optional<std::filesystem::path> outputFile;  ///< rank 0 writes gathered outputs here
  /// Rank r writes its outputs to this name with ".r" behind it when they are not bit for bit those of rank 0.
  std::optional<std::filesystem::path> deviationFile;
  /// program/watch.h: which values of the forward pass are looked at; what is seen goes to `watchedFile`.
  std::optional<std::filesystem::path> watchFile, watchedFile;
  bool skipWeights = false;        ///< fill every parameter from the seed instead of reading
  int passes = 1;                  ///< of the program forward: outputs are those of the last, the time is their median
  bool isQuiet = false;            ///< samples no memory, and tells of no collective and no progress, before the end
  bool recordsTimes = false;       ///< run warm, and tell what the rank did when in the (last) step
  bool initMissing = false;        ///< fill parameters the checkpoint lacks from the seed
  program::Training training;      ///< where steps are asked for: outputs are the losses and the parameters after them
  program::Generation generation;  ///< where tokens are asked for: `planFile` is of the prompt, and the output the
                                   ///< tokens
  std::filesystem::path decodeFile;  ///< the plan of a step behind the prompt, on the same weights
  std::string ncclLibrary;           ///< path of libcleave_nccl.so; for backend "nccl"
};

using EventSink = std::function<void(const protocol::Message&)>;

/// Runs to the end or to the first error. Messages go to the sink from this and from the sampling thread.
/// The last message of a failed rank is its RankError, sent before anything is torn down (a process group may wait for
/// peers that are gone). RankFailed: a collective broke because a peer is gone; BadInput: plan, weights or inputs;
/// Environment: no device, no memory, nobody to meet. All of a process's LibTorch state (threads, seed) is this
/// function's while it runs.
Result<protocol::RankResult> runRank(const RankRequest& request, const EventSink& sink, const Progress& progress = {});

}  // namespace cleave::torch_rank
