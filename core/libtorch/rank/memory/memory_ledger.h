#pragma once
/// The purpose of a rank's allocations. The parts of the step in which an allocation is made and freed determine its
/// kind. This header uses LibTorch.
///
/// | made in            | freed in                    | kind                                                   |
/// |--------------------|-----------------------------|--------------------------------------------------------|
/// | loading            |                             | parameter, if the program has it as one; else fixed    |
/// | before the step    |                             | gradient or optimizer state, if made in these parts    |
/// | forward            | the same node, a collective | communication buffer                                   |
/// | forward            | forward                     | transient                                              |
/// | forward, training  | backward or later           | saved activation                                       |
/// | backward, the sum  | in the step                 | transient                                              |
/// | backward, the sum  | later                       | gradient of a parameter                                |
/// | optimizer          | never                       | optimizer state                                        |
/// | anything else      |                             | transient; outside the step: fixed (inputs)            |
///
///     ledger.startStep();  ...;  sink(ledger.account(parameters, isTraining));
#include "graph/graph.h"
#include "libtorch/rank/collectives/step_recorder.h"

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cleave::torch_rank {

class MemoryLedger {
 public:
  /// `recorder` has the current part of the step. It must outlive the ledger.
  explicit MemoryLedger(const StepRecorder& recorder) : m_recorder(recorder) {}

  /// These may be called from any thread.
  void made(const void* memory, std::int64_t bytes);
  void freed(const void* memory);

  /// An allocation that is not freed.
  struct Live {
    const void* memory = nullptr;
    std::int64_t bytes = 0;
    protocol::MemoryKind kind = protocol::MemoryKind::Fixed;
    std::int32_t node = -1;  ///< the program's node that made it, or -1
  };
  /// The current allocations. `parameters` as in `account`.
  std::vector<Live> live(const std::unordered_set<const void*>& parameters, bool isTraining) const;

  /// Starts to record events until the next `account`. Discards freed allocations. Records at most kMostEvents, which
  /// are the first micro-batches if there are very many.
  void startStep();
  /// Memory of the step by kind. `parameters`: the memory of the program's parameters. `isTraining`: the step had a
  /// backward pass.
  protocol::MemoryAccount account(const std::unordered_set<const void*>& parameters, const graph::Graph& program,
                                  bool isTraining);

 private:
  using Part = std::optional<StepRecorder::Current>;
  struct Allocation {
    const void* memory = nullptr;
    std::int64_t bytes = 0;
    Part made, freed;
    bool isBefore = false;  ///< it existed when the step began
    bool isGone = false;    ///< it was freed
  };
  /// An allocation was made (index + 1) or freed (-(index + 1)).
  using Event = std::int64_t;

  const StepRecorder& m_recorder;
  mutable std::mutex m_mutex;
  std::vector<Allocation> m_allocations;
  std::unordered_map<const void*, std::size_t> m_live;
  std::vector<std::size_t> m_unused;  ///< free entries of m_allocations; used outside a step
  std::vector<Event> m_events;
  bool m_isInStep = false;
  static constexpr std::size_t kMostEvents = 2'000'000;
  bool isFull() const { return m_isInStep && m_events.size() >= kMostEvents; }
};

}  // namespace cleave::torch_rank
