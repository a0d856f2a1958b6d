#pragma once
/// The line protocol between a rank and its launcher: one JSON object a line, at most 64 KiB each, on an inherited pipe
/// or, of a rank that was started elsewhere, on a connection (join.h).
///
/// | type        | fields                                                                            |
/// |-------------|-----------------------------------------------------------------------------------|
/// | hello       | version, rank, pid, device, precision                                             |
/// | phase       | phase (connecting, loading, warm-up, running, gathering, done), done, total       |
/// | memory      | by category, bytes; at least 10 times a second                                    |
/// | heartbeat   | four times a second: how long it has been in collective calls                     |
/// | collective  | index in the plan, kind, bytes, microseconds                                      |
/// | measurement | what, amount, threads, repeats, median, lowest, highest (cleave-rank --calibrate) |
/// | cuda        | versions of driver, runtime and NCCL, how many GPUs (cleave-rank --probe)            |
/// | gpu         | index, name, uuid, capability, bytes, why no kernel ran on it                     |
/// | step        | number of a training step from 1, loss, norm of its gradients, microseconds       |
/// | generated   | microseconds of prefill and decode steps, how many, bytes of the cache            |
/// | times       | what the rank did when in one step: the next spans of so many (cleave-rank --times) |
/// | account     | what its memory was for in that step                                              |
/// | output      | total, bytes: the next part of the file of outputs; on a connection, see join.h   |
/// | program     | index, storages, the rest as result: one of several on the same weights (cleave-rank --then) |
/// | result      | outputs' digests, loss, counts                                                    |
/// | error       | message, peer_failed, code (the exit code of its class, base/result.h)            |
///
/// Foreign input (a rank may be on another machine): bounded, versioned. Texts longer than 8 KiB are cut when encoded.
/// A line of an unknown type only says that the rank lives: it decodes as Heartbeat. Missing fields keep their
/// defaults.
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

/// In a line as base64, so many at most.
struct Bytes {
  std::string data;
};
inline constexpr std::size_t kMaxPartBytes = 32 << 10;

struct Hello {
  int version = kProtocolVersion;
  int rank = 0;
  std::int64_t pid = 0;
  std::string device;
  std::string precision;  ///< of float32 products on a GPU: "IEEE float32 (TF32 off)"
};
struct PhaseChange {
  Phase phase = Phase::Spawned;
  std::int64_t done = 0, total = 0;
};
/// Bytes. On CPUs `deviceUsed` is the process's RSS and `deviceTotal` the machine's memory.
struct MemorySample {
  std::int64_t timeUs = 0;         ///< since the rank started
  std::int64_t weights = 0;        ///< parameters and constants loaded so far
  std::int64_t activations = 0;    ///< live values of the program now
  std::int64_t communication = 0;  ///< buffers of collectives, context
  std::int64_t peakActivations = 0;
  std::int64_t allocated = 0, peak = 0;  ///< what the program's tensors need: now, and at most so far
  /// What a GPU's allocator adds to that by giving larger blocks: now, and at its peak. 0 on CPUs.
  std::int64_t rounding = 0, peakRounding = 0;
  std::int64_t reserved = 0;  ///< memory that the allocator holds, free blocks included
  std::int64_t deviceUsed = 0, deviceTotal = 0, deviceFree = 0;
  std::int64_t rss = 0, peakRss = 0;
  std::int64_t pss = 0;           ///< memory shared with other ranks counted by its share; anew at most once a second
  std::int32_t programNode = -1;  ///< node being executed; -1: none
};
/// The most that a rank held, two figures under one name each wherever they are shown.
struct PeakMemory {
  std::int64_t program =
      0;  ///< weights, activations and work space, as the allocator counts them: what a plan predicts
  std::int64_t rounding = 0;  ///< what a GPU's allocator adds to `program` by giving larger blocks
  std::int64_t process = 0;   ///< all that the process took where its program lies: on CPUs its RSS, else of its GPU
  bool operator==(const PeakMemory&) const = default;
};
/// Of all that a rank did until this sample.
PeakMemory peakOf(const MemorySample& sample);
/// Seven a second, from a thread that waits for nothing else: a rank that sends none is stopped, gone or out of reach.
struct Heartbeat {
  std::int64_t waitedUs = 0;  ///< microseconds until now in collective calls, for others or for the network
};
inline constexpr std::chrono::milliseconds kHeartbeatPeriod{150};
/// One executed collective: `index` counts them within a run of the program, in the plan's order. `kind` is the plan's
/// name.
struct CollectiveDone {
  std::int32_t index = 0;
  std::string kind;
  std::int64_t bytes = 0, microseconds = 0;
};
/// What a rank measures of its machine: products of matrices by element type (half: bfloat16), a pass over memory, the
/// collectives.
enum class Measured : std::uint8_t { Half, Float32, Float64, Memory, AllReduce, AllGather, ReduceScatter };
std::string_view toText(Measured what);
/// One of these at one size, called several times while all ranks do the same.
struct Measurement {
  Measured what = Measured::Half;
  std::int64_t amount = 0;   ///< FLOPs of a product; bytes that a pass reads and writes; bytes of a collective's tensor
  std::int32_t threads = 0;  ///< that the rank computes with
  std::int32_t repeats = 0;
  double median = 0, lowest = 0, highest = 0;  ///< seconds of a call
};
/// What the tensors of a rank that measures take at most on CPUs.
inline constexpr std::int64_t kMeasuringBytes = 256 << 20;
/// What CUDA offers this process. Versions as CUDA counts: 13000 is 13.0; 0: not known.
struct CudaFound {
  std::int32_t driver = 0;   ///< newest CUDA version that the driver supports; 0: no driver
  std::int32_t runtime = 0;  ///< of the CUDA runtime in use
  std::int32_t nccl = 0;     ///< 22809 is 2.28.9
  std::int32_t gpus = 0;     ///< as many GpuFound follow
  std::string error;         ///< why CUDA lists none; empty: it listed them
};
/// One GPU, by its number in CUDA's order.
struct GpuFound {
  std::int32_t index = 0;
  std::string name;             ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;             ///< "GPU-8932f937-..."
  std::int32_t capability = 0;  ///< 10 × major + minor: 90
  std::int64_t freeBytes = 0;   ///< after a process has made its CUDA context
  std::int64_t totalBytes = 0;
  std::string error;               ///< why no kernel ran on it; empty: one ran, and its result was right
  std::int64_t withoutAccess = 0;  ///< bit i: it has no direct access to the memory of GPU i < 63
  bool operator==(const GpuFound&) const = default;
};
/// A training step is through: the mean loss of its micro-batches before the parameters changed, and the norm of all
/// gradients before they were scaled down.
struct TrainingStep {
  std::int64_t step = 1, steps = 1;
  double loss = 0;
  double gradientNorm = 0;
  bool hasNorm = false;  ///< it is known where gradients are clipped
  std::int64_t microseconds = 0;
};
/// What a part of a step does: a node forward or backward, what happens to all gradients, a collective.
enum class SpanKind : std::uint8_t {
  Forward,
  Again,  ///< forward once more, of a block that is checkpointed
  Backward,
  GradientSum,  ///< of parameters, at the end of the step
  Clipping,
  Optimizer,
  AllReduce,
  AllGather,
  ReduceScatter
};
inline constexpr int kSpanKinds = 9;
std::string_view toText(SpanKind kind);  ///< "forward", "gradient sum", "all_reduce"
constexpr bool isCollective(SpanKind kind) { return kind >= SpanKind::AllReduce; }

/// One part of a step. Parts nest: a collective lies within its node.
struct Span {
  SpanKind kind = SpanKind::Forward;
  std::int32_t node = -1;               ///< of the program; -1: none
  std::int64_t bytes = 0;               ///< of a collective, as in CollectiveDone
  std::int64_t beginNs = 0, endNs = 0;  ///< since the step began
  /// Of a collective: how many take part, each `stride` behind the one before; the first of rank r's has the number
  /// r - (r / stride) % ranks · stride.
  std::int32_t ranks = 0, stride = 1;
  bool operator==(const Span&) const = default;
};
inline constexpr std::size_t kMostSpansInLine = 500;
inline constexpr std::int64_t kMostSpans = 1'000'000;
/// Of the last step: all lines of a rank in order, the first with `first` 0.
struct StepTimes {
  std::string clock;           ///< names the steady clock of this host since it was started; equal clocks compare
  std::int64_t meetingNs = 0;  ///< on that clock: when the ranks had all met, at about the same moment on each
  std::int64_t startNs = 0;    ///< on that clock: when the step began
  std::int64_t first = 0, total = 0;
  std::vector<Span> spans;
};
/// What memory is for (libtorch/rank/memory_ledger.h). `Fixed`: inputs and constants.
enum class MemoryKind : std::uint8_t { Parameters, Gradients, Optimizer, Saved, Transient, Communication, Fixed };
inline constexpr int kMemoryKinds = 7;
std::string_view toText(MemoryKind kind);  ///< "saved activations"

struct NodeBytes {
  MemoryKind kind = MemoryKind::Transient;
  std::int32_t node = -1;  ///< of the program: that allocated them; -1: none
  std::int64_t bytes = 0;
  bool operator==(const NodeBytes&) const = default;
};
inline constexpr std::size_t kMostNodeBytes = 450;
/// Of the step that StepTimes is of, as the allocator counts.
struct MemoryAccount {
  std::int64_t peak = 0;                  ///< the most bytes at once
  SpanKind peakPart = SpanKind::Forward;  ///< the part of the step at which that was
  std::int32_t peakNode = -1;
  std::array<std::int64_t, kMemoryKinds> most{};    ///< by kind: the most at once
  std::array<std::int64_t, kMemoryKinds> atPeak{};  ///< by kind: adds up to `peak`
  std::vector<NodeBytes> saved, nodesAtPeak;        ///< largest first: saved activations; all at the peak
};
/// What a rank generated, after its last token.
struct Generated {
  std::int64_t prefillMicroseconds = 0, decodeMicroseconds = 0;  ///< of the prompt; of all decode steps together
  std::int64_t steps = 0;       ///< decode steps that ran: the prompt gives one token, each of them another one
  std::int64_t cacheBytes = 0;  ///< what the allocator counts of this rank's part of the cache
};
struct RankResult {
  std::int64_t bytesRead = 0, shardBytes = 0, largestParameterAllocation = 0;
  PeakMemory peak;
  std::int64_t allReduce = 0, allGather = 0, reduceScatter = 0;
  double loss = 0;
  bool hasLoss = false;
  std::int64_t stepMicroseconds = 0;
  std::map<std::string, std::string> outputDigests;  ///< output name → hex digest; equal on all ranks
  std::string program;  ///< hex digest of what it ran (program::digestOf), for who cannot know it otherwise
};
/// One of the programs that a rank runs one after the other on the same weights is through.
struct ProgramDone {
  std::int32_t index = 0;  ///< in the order in which they run
  std::string storages;    ///< hex digest of where in memory its parameters lie: the same for all of them
  RankResult result;       ///< as of a run of it alone; it read what it loaded, and did not take over
};
/// Of the safetensors file that rank 0 writes its outputs to, or another rank its own that deviate: all parts in order,
/// before the result. `total`: the file's size.
struct OutputPart {
  std::int64_t total = 0;
  Bytes bytes;
};
/// `peerFailed`: this rank only noticed that another one is gone; the first failure is to be looked for there.
struct RankError {
  std::string message;
  bool peerFailed = false;
  ErrorCode code = ErrorCode::RankFailed;
};

/// The class of failure that a rank ended with; RankFailed for an exit code that is none of them.
ErrorCode errorCodeOf(int exitCode);

using Message =
    std::variant<Hello, PhaseChange, MemorySample, Heartbeat, CollectiveDone, Measurement, TrainingStep, RankResult,
                 RankError, OutputPart, StepTimes, MemoryAccount, Generated, ProgramDone, CudaFound, GpuFound>;

std::string encode(const Message& message);  ///< one line, with the newline
/// BadInput for a line that is too long, no JSON object, of another protocol version, or has a field of a wrong type.
Result<Message> decode(std::string_view line);

}  // namespace cleave::protocol
