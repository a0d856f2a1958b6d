#pragma once
/// Shared memory through which the ranks of one NCCL communicator exchange bytes.
///
/// A segment has one seat per rank: counters, and room for one chunk. A rank writes its chunk, waits until all ranks
/// have written theirs, reads, and signals that. The next chunk follows when all have read. A wait ends when all ranks
/// arrive or the communicator is aborted, but not when a peer's process exits: NCCL's kernels wait forever as well.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::shims {

class Exchange {
 public:
  /// All chunks of a call, one per rank, and where in the call's bytes they start.
  using Read = std::function<void(std::size_t offset, std::size_t bytes, const std::vector<const char*>& chunks)>;

  /// The name is valid while this process lives.
  static std::string newName();
  /// Waits for all ranks; null when the process that made `name` is gone. `identity` names this rank's device.
  static std::unique_ptr<Exchange> open(const std::string& name, int rank, int size, const std::string& identity);

  int rank() const { return m_rank; }
  int size() const { return m_size; }
  /// Exchanges `bytes` bytes. `from` is null for a rank that sends nothing. Returns false if aborted. `call` describes
  /// the collective and must be equal on all ranks.
  bool run(const std::string& call, const char* from, std::size_t bytes, const Read& read);
  /// Ends all waits, now and later.
  void abort();
  bool isAborted() const { return m_isAborted; }
  /// Waits until `abort`.
  void waitForAbort();
  /// The first other rank with this rank's device.
  std::optional<int> rankOnSameDevice() const;
  /// The first other rank whose process has exited.
  std::optional<int> rankThatIsGone() const;

 private:
  struct Segment;
  struct Seat;
  Exchange(Segment& segment, int rank, int size) : m_segment(segment), m_rank(rank), m_size(size) {}
  template <class Condition>
  bool waitUntil(Condition&& isMet);
  void announce();
  void compareCalls() const;

  Segment& m_segment;
  const int m_rank, m_size;
  std::uint64_t m_chunk = 0;  ///< chunks exchanged so far
  std::atomic<bool> m_isAborted{false};
};

}  // namespace cleave::shims
