#include "solve/trace/recorder.h"

#include "base/quantities.h"
#include "solve/trace/event_log.h"
#include "solve/trace/trace_tables.h"

#include <array>
#include <atomic>

namespace cleave::solve {
/// The trace that a recorder fills. The engine's thread appends. Const functions are safe from any thread.
class TraceRecorder::Storage final : public Trace {
 public:
  Storage(std::shared_ptr<const Problem> problem, RecorderLimits limits)
      : m_problem(std::move(problem)), m_limits(std::move(limits)), m_log(m_limits.memoryBytes) {}

  std::shared_ptr<const Problem> problem() const override { return m_problem; }
  StepId size() const override { return m_log.size(); }
  std::size_t read(StepId first, std::span<Event> out) const override { return m_log.read(first, out); }
  const Choice& choice(ChoiceId id) const override { return m_choices.at(id); }
  const ConflictRecord& conflict(ConflictId id) const override { return m_conflicts.at(id); }
  std::size_t choiceCount() const override { return m_choices.size(); }
  std::size_t conflictCount() const override { return m_conflicts.size(); }

  SearchStats stats() const override {
    const auto count = [&](EventType type) {
      return m_counts[static_cast<std::size_t>(type)].load(std::memory_order_relaxed);
    };
    return {m_log.size(), count(EventType::Visit), count(EventType::Try), count(EventType::Conflict),
            count(EventType::Backtrack)};
  }

  bool append(const Event& event) {
    // The limit does not apply to the last event of a search, so that every trace has an end.
    if (m_log.size() * sizeof(Event) >= m_limits.totalBytes && !isEnd(event.type) && !mayGrow()) return false;
    if (auto appended = m_log.append(event); !appended) {
      stop(std::move(appended.error().message));
      return false;
    }
    auto& count = m_counts[static_cast<std::size_t>(event.type)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }

  std::optional<Engine> engine() const override {
    const std::lock_guard lock(m_mutex);
    return m_engine;
  }
  void start(Engine engine) {
    const std::lock_guard lock(m_mutex);
    m_engine = engine;
  }
  std::uint64_t memoryBytes() const { return m_log.memoryBytes(); }
  std::string whyStopped() const {
    const std::lock_guard lock(m_mutex);
    return m_whyStopped;
  }
  ChoiceId add(Choice choice) { return m_choices.add(std::move(choice)); }
  ConflictId add(ConflictRecord conflict) { return m_conflicts.add(std::move(conflict)); }

 private:
  bool mayGrow() {
    const std::uint64_t bytes = m_log.size() * sizeof(Event);
    if (m_limits.onFull && m_limits.onFull(bytes)) {
      m_limits.totalBytes *= 2;
      return true;
    }
    stop(fmt::format("The trace reached its limit of {}.", bytesText(static_cast<std::int64_t>(m_limits.totalBytes))));
    return false;
  }
  void stop(std::string why) {
    const std::lock_guard lock(m_mutex);
    m_whyStopped = std::move(why);
  }

  std::shared_ptr<const Problem> m_problem;
  RecorderLimits m_limits;  ///< writer only
  EventLog m_log;
  ChoiceTable m_choices;
  ConflictTable m_conflicts;
  std::array<std::atomic<std::uint64_t>, kEventTypes> m_counts{};
  mutable std::mutex m_mutex;
  std::optional<Engine> m_engine;
  std::string m_whyStopped;
};

TraceRecorder::TraceRecorder(std::shared_ptr<const Problem> problem, RecorderLimits limits)
    : m_storage(std::make_shared<Storage>(std::move(problem), std::move(limits))) {}
TraceRecorder::~TraceRecorder() = default;

void TraceRecorder::onStart(Engine engine) { m_storage->start(engine); }
ChoiceId TraceRecorder::internChoice(Choice choice) { return m_storage->add(std::move(choice)); }
ConflictId TraceRecorder::internConflict(ConflictRecord conflict) { return m_storage->add(std::move(conflict)); }
bool TraceRecorder::onEvent(const Event& event) { return m_storage->append(event); }
std::shared_ptr<const Trace> TraceRecorder::trace() const { return m_storage; }
std::uint64_t TraceRecorder::memoryBytes() const { return m_storage->memoryBytes(); }
std::string TraceRecorder::whyStopped() const { return m_storage->whyStopped(); }

}  // namespace cleave::solve
