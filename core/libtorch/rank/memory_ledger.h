#pragma once
/// What a rank's allocations were for: each with the part of the step in which it was made and the one in which it was
/// freed, which together say what it is. LibTorch inside.
///
/// | made in            | freed in                   | is                                                            |
/// |--------------------|----------------------------|---------------------------------------------------------------|
/// | loading            |                            | a parameter, where the program was given it; else fixed       |
/// | before the step    |                            | a gradient or an optimizer state, where it was made for these |
/// | forward            | the same node, a collective | a communication buffer                                       |
/// | forward            | forward                    | transient                                                     |
/// | forward, training  | backward or later          | a saved activation                                            |
/// | backward, the sum  | in the step                | transient                                                     |
/// | backward, the sum  | later                      | a gradient of a parameter                                     |
/// | optimizer          | never                      | an optimizer state                                            |
/// | anything else      |                            | transient; outside of the step: fixed (inputs)                |
///
///     ledger.startStep();  ...;  sink(ledger.account(parameters, isTraining));
#include "graph/graph.h"
#include "libtorch/rank/step_recorder.h"

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cleave::torch_rank {

class MemoryLedger {
 public:
  /// `recorder` says which part of the step goes on; it must outlive this.
  explicit MemoryLedger(const StepRecorder& recorder) : m_recorder(recorder) {}

  /// Any thread.
  void made(const void* memory, std::int64_t bytes);
  void freed(const void* memory);

  /// What is allocated now. `parameters` as below.
  struct Live {
    const void* memory = nullptr;
    std::int64_t bytes = 0;
    protocol::MemoryKind kind = protocol::MemoryKind::Fixed;
    std::int32_t node = -1;  ///< of the program: that made it; -1: none
  };
  std::vector<Live> live(const std::unordered_set<const void*>& parameters, bool isTraining) const;

  /// Forgets what is gone. From here to the next `account` it is known when what was made and freed; of very many
  /// micro-batches in the first.
  void startStep();
  /// Of the step. `parameters`: memory that the program was given for them; `isTraining`: it went backward as well.
  protocol::MemoryAccount account(const std::unordered_set<const void*>& parameters, const graph::Graph& program,
                                  bool isTraining);

 private:
  using Part = std::optional<StepRecorder::Current>;
  struct Allocation {
    const void* memory = nullptr;
    std::int64_t bytes = 0;
    Part made, freed;
    bool isBefore = false;  ///< it was there when the step began
    bool isGone = false;
  };
  /// Something was made (positive: index + 1) or freed (negative).
  using Event = std::int64_t;

  const StepRecorder& m_recorder;
  mutable std::mutex m_mutex;
  std::vector<Allocation> m_allocations;
  std::unordered_map<const void*, std::size_t> m_live;
  std::vector<std::size_t> m_unused;  ///< of m_allocations, outside of a step
  std::vector<Event> m_events;
  bool m_isInStep = false;
  static constexpr std::size_t kMostEvents = 2'000'000;
  bool isFull() const { return m_isInStep && m_events.size() >= kMostEvents; }
};

}  // namespace cleave::torch_rank
