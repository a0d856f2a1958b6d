#pragma once
/// The line protocol between a rank and its launcher: one JSON object per line, at most 64 KiB each. Lines go over an
/// inherited pipe, or over a connection if the rank was started elsewhere (join.h).
///
/// | type        | fields                                                                            |
/// |-------------|-----------------------------------------------------------------------------------|
/// | hello       | version, rank, pid, device, precision                                             |
/// | phase       | phase (connecting, loading, warm-up, running, gathering, done), done, total       |
/// | memory      | bytes by category; at least 10 times a second                                     |
/// | heartbeat   | time spent in collective calls; about seven times a second                        |
/// | collective  | index in the plan, kind, bytes, microseconds                                      |
/// | measurement | what, amount, threads, repeats, median, lowest, highest (cleave-rank --calibrate) |
/// | cuda        | versions of driver, runtime and NCCL, number of GPUs (cleave-rank --probe)        |
/// | gpu         | index, name, uuid, capability, bytes, the error if no kernel ran on it            |
/// | step        | number of a training step from 1, loss, norm of its gradients, microseconds       |
/// | generated   | microseconds of prefill and decode steps, number of decode steps, cache bytes     |
/// | times       | the next spans of one step's timeline, and their total number (cleave-rank --times) |
/// | account     | memory of that step by purpose                                                    |
/// | output      | total, bytes: the next part of the output file; only on a connection, see join.h  |
/// | program     | index, storages, then as result: one of several programs on the same weights (cleave-rank --then) |
/// | result      | output digests, loss, counts                                                      |
/// | error       | message, peer_failed, code (the exit code of its class, base/result.h)            |
///
/// The input is untrusted (a rank may be on another machine), so it is bounded and versioned. Texts longer than 8 KiB
/// are cut when encoded. A line of an unknown type decodes as Heartbeat: it only shows that the rank lives. Missing
/// fields keep their defaults.
#include "base/result.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace cleave::protocol {

inline constexpr int kProtocolVersion = 2;
inline constexpr std::size_t kMaxLineBytes = 64 << 10;

enum class Phase : std::uint8_t { Spawned, Connecting, Loading, WarmUp, Running, Gathering, Done, Failed };
std::string_view toText(Phase phase);

/// Binary data, base64 in a line. kMaxPartBytes is the limit.
struct Bytes {
  std::string data;
};
inline constexpr std::size_t kMaxPartBytes = 32 << 10;

struct Hello {
  int version = kProtocolVersion;
  int rank = 0;
  std::int64_t pid = 0;
  std::string device;
  std::string precision;  ///< precision of float32 products on a GPU: "IEEE float32 (TF32 off)"
};
struct PhaseChange {
  Phase phase = Phase::Spawned;
  std::int64_t done = 0, total = 0;
};
/// Memory in bytes. On CPUs `deviceUsed` is the process's RSS and `deviceTotal` the machine's memory.
struct MemorySample {
  std::int64_t timeUs = 0;         ///< time since the rank started
  std::int64_t weights = 0;        ///< parameters and constants loaded so far
  std::int64_t activations = 0;    ///< current live values of the program
  std::int64_t communication = 0;  ///< buffers of collectives, context
  std::int64_t peakActivations = 0;
  std::int64_t allocated = 0, peak = 0;  ///< bytes of the program's tensors: current value, and peak so far
  /// Extra bytes because a GPU's allocator gives larger blocks: current value, and at its peak. 0 on CPUs.
  std::int64_t rounding = 0, peakRounding = 0;
  std::int64_t reserved = 0;  ///< memory that the allocator holds, free blocks included
  std::int64_t deviceUsed = 0, deviceTotal = 0, deviceFree = 0;
  std::int64_t rss = 0, peakRss = 0;
  std::int64_t pss = 0;           ///< proportional set size, where shared memory counts by its share; updated at most
                                  ///< once a second
  std::int32_t programNode = -1;  ///< node being executed; -1: outside any node
};
/// Peak memory of a rank. Every view shows these figures under the same names.
struct PeakMemory {
  std::int64_t program =
      0;  ///< weights, activations and work space, as the allocator counts them: what a plan predicts
  std::int64_t rounding = 0;  ///< extra bytes in `program` because a GPU's allocator gives larger blocks
  std::int64_t process = 0;   ///< peak of the whole process where its program runs: RSS on CPUs, else GPU memory
  bool operator==(const PeakMemory&) const = default;
};
/// Peaks up to this sample.
PeakMemory peakOf(const MemorySample& sample);
/// Seven per second, from a thread that waits for nothing else. A rank that sends no heartbeat is stopped, gone or out
/// of reach.
struct Heartbeat {
  std::int64_t waitedUs = 0;  ///< microseconds spent so far in collective calls, waiting for other ranks or the network
};
inline constexpr std::chrono::milliseconds kHeartbeatPeriod{150};
/// One executed collective. `index` counts them within a run of the program, in the plan's order. `kind` is the plan's
/// name.
struct CollectiveDone {
  std::int32_t index = 0;
  std::string kind;
  std::int64_t bytes = 0, microseconds = 0;
};
/// What a rank measures on its machine: matrix products by element type (half: bfloat16), a pass over memory, the
/// collectives.
enum class Measured : std::uint8_t { Half, Float32, Float64, Memory, AllReduce, AllGather, ReduceScatter };
std::string_view toText(Measured what);
/// One of these at one size, called several times on all ranks at once.
struct Measurement {
  Measured what = Measured::Half;
  std::int64_t amount = 0;   ///< FLOPs of a product; bytes that a pass reads and writes; bytes of a collective's tensor
  std::int32_t threads = 0;  ///< number of threads the rank computes with
  std::int32_t repeats = 0;
  double median = 0, lowest = 0, highest = 0;  ///< seconds per call
};
/// Limit of a measuring rank's tensors on CPUs.
inline constexpr std::int64_t kMeasuringBytes = 256 << 20;
/// CUDA as this process finds it. Versions are CUDA's numbers: 13000 is 13.0; 0: not known.
struct CudaFound {
  std::int32_t driver = 0;   ///< newest CUDA version that the driver supports; 0: no driver
  std::int32_t runtime = 0;  ///< version of the CUDA runtime in use
  std::int32_t nccl = 0;     ///< 22809 is 2.28.9
  std::int32_t gpus = 0;     ///< number of GpuFound messages that follow
  std::string error;         ///< why CUDA lists no GPU; empty: it listed them
};
/// One GPU, numbered in CUDA's order.
struct GpuFound {
  std::int32_t index = 0;
  std::string name;             ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;             ///< "GPU-8932f937-..."
  std::int32_t capability = 0;  ///< 10 × major + minor: 90
  std::int64_t freeBytes = 0;   ///< measured after a process has made its CUDA context
  std::int64_t totalBytes = 0;
  std::string error;               ///< why no kernel ran on it; empty: a kernel ran and its result was right
  std::int64_t withoutAccess = 0;  ///< bit i: no direct access to the memory of GPU i < 63
  bool operator==(const GpuFound&) const = default;
};
/// A completed training step: the mean loss of its micro-batches before the parameters changed, and the norm of all
/// gradients before clipping.
struct TrainingStep {
  std::int64_t step = 1, steps = 1;
  double loss = 0;
  double gradientNorm = 0;
  bool hasNorm = false;  ///< the norm is known if gradients are clipped
  std::int64_t microseconds = 0;
};
/// Kind of work in a part of a step: a node forward or backward, work on all gradients, or a collective.
enum class SpanKind : std::uint8_t {
  Forward,
  Again,  ///< recomputed forward pass of a checkpointed block
  Backward,
  GradientSum,  ///< sum of parameter gradients at the end of the step
  Clipping,
  Optimizer,
  AllReduce,
  AllGather,
  ReduceScatter
};
inline constexpr int kSpanKinds = 9;
std::string_view toText(SpanKind kind);  ///< "forward", "gradient sum", "all_reduce"
constexpr bool isCollective(SpanKind kind) { return kind >= SpanKind::AllReduce; }

/// One part of a step. Parts nest: a collective is inside its node.
struct Span {
  SpanKind kind = SpanKind::Forward;
  std::int32_t node = -1;               ///< node of the program; -1: outside any node
  std::int64_t bytes = 0;               ///< bytes of a collective, as in CollectiveDone
  std::int64_t beginNs = 0, endNs = 0;  ///< nanoseconds since the step began
  /// Ranks in a collective, and the distance between neighbours. The first rank of the group of rank r is r - (r /
  /// stride) % ranks · stride.
  std::int32_t ranks = 0, stride = 1;
  bool operator==(const Span&) const = default;
};
inline constexpr std::size_t kMostSpansInLine = 500;
inline constexpr std::int64_t kMostSpans = 1'000'000;
/// Timeline of the last step: all lines of a rank in order, the first with `first` 0.
struct StepTimes {
  std::string clock;           ///< id of the host's steady clock since boot; times of equal clocks are comparable
  std::int64_t meetingNs = 0;  ///< time on that clock when the ranks met, at about the same moment on each
  std::int64_t startNs = 0;    ///< time on that clock when the step began
  std::int64_t first = 0, total = 0;
  std::vector<Span> spans;
};
/// Purpose of memory (libtorch/rank/memory/memory_ledger.h). `Fixed`: inputs and constants.
enum class MemoryKind : std::uint8_t { Parameters, Gradients, Optimizer, Saved, Transient, Communication, Fixed };
inline constexpr int kMemoryKinds = 7;
std::string_view toText(MemoryKind kind);  ///< "saved activations"

struct NodeBytes {
  MemoryKind kind = MemoryKind::Transient;
  std::int32_t node = -1;  ///< node of the program that allocated them; -1: outside any node
  std::int64_t bytes = 0;
  bool operator==(const NodeBytes&) const = default;
};
inline constexpr std::size_t kMostNodeBytes = 450;
/// Memory of the same step as StepTimes, as the allocator counts it.
struct MemoryAccount {
  std::int64_t peak = 0;                  ///< peak bytes
  SpanKind peakPart = SpanKind::Forward;  ///< the part of the step with the peak
  std::int32_t peakNode = -1;
  std::array<std::int64_t, kMemoryKinds> most{};    ///< peak of each kind
  std::array<std::int64_t, kMemoryKinds> atPeak{};  ///< bytes of each kind at the peak; the sum is `peak`
  std::vector<NodeBytes> saved, nodesAtPeak;        ///< largest first: saved activations; all bytes at the peak
};
/// Statistics of generation, sent after the last token.
struct Generated {
  std::int64_t prefillMicroseconds = 0, decodeMicroseconds = 0;  ///< time of the prompt; total time of all decode steps
  std::int64_t steps = 0;       ///< decode steps that ran; the prompt gives one token and each step one more
  std::int64_t cacheBytes = 0;  ///< allocated bytes of this rank's part of the cache
};
struct RankResult {
  std::int64_t bytesRead = 0, shardBytes = 0, largestParameterAllocation = 0;
  PeakMemory peak;
  std::int64_t allReduce = 0, allGather = 0, reduceScatter = 0;
  double loss = 0;
  bool hasLoss = false;
  std::int64_t stepMicroseconds = 0;
  std::map<std::string, std::string> outputDigests;  ///< output name → hex digest; equal on all ranks
  std::string program;  ///< hex digest of the program that ran (program::digestOf), for a launcher that does not know
                        ///< it
};
/// One of several programs that a rank runs in sequence on the same weights has ended.
struct ProgramDone {
  std::int32_t index = 0;  ///< position in the order of execution
  std::string storages;    ///< hex digest of the addresses of its parameters: equal for all programs
  RankResult result;       ///< the result of this program alone; bytes read exclude weights that it reused
};
/// A part of the safetensors file with rank 0's outputs, or with another rank's deviating outputs. All parts come in
/// order, before the result. `total` is the file's size.
struct OutputPart {
  std::int64_t total = 0;
  Bytes bytes;
};
/// `peerFailed`: this rank only noticed that another rank is gone, so the first failure is elsewhere.
struct RankError {
  std::string message;
  bool peerFailed = false;
  ErrorCode code = ErrorCode::RankFailed;
};

/// The failure class of a rank's exit code; RankFailed for an unknown code.
ErrorCode errorCodeOf(int exitCode);

using Message =
    std::variant<Hello, PhaseChange, MemorySample, Heartbeat, CollectiveDone, Measurement, TrainingStep, RankResult,
                 RankError, OutputPart, StepTimes, MemoryAccount, Generated, ProgramDone, CudaFound, GpuFound>;

std::string encode(const Message& message);  ///< one line, with the newline
/// BadInput for a line that is too long, is not a JSON object, has another protocol version, or has a field of a wrong
/// type.
Result<Message> decode(std::string_view line);

}  // namespace cleave::protocol
