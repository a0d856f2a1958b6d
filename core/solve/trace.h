#pragma once
/// The recording of a search: every event in 16 bytes, with interned tables for what events refer to.
///
/// Engines report to a `TraceSink` they were handed. `TraceRecorder` is the sink that keeps everything: the newest chunks
/// in memory up to a budget, older ones in an unlinked temporary file, up to a limit at which the search pauses and asks
/// (`onFull`). A finished recording is an immutable `Trace`, read by any number of `Cursor`s; a recording still growing
/// can be read up to `Trace::size()` while one engine thread appends (single writer, many readers).
/// Deterministic: same problem, same engine, same bytes.
#include "base/progress.h"
#include "solve/problem.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cleave::solve {

enum class Engine : std::uint8_t;  // solve/engine.h

enum class EventType : std::uint8_t {
  Visit,      ///< the search arrives at `node`; `count` candidates are open
  Try,        ///< `node` takes candidate `ordinal`; `detail` is a ChoiceId
  Conflict,   ///< no (further) candidate of `node` holds; `detail` is a ConflictId
  Backtrack,  ///< all nodes after `target` (in order), and the choice of `target`, are undone; `count` decisions undone
  Solution,   ///< every node has a choice
  Exhausted,  ///< no candidate is left anywhere: there is no solution
  Stopped,    ///< the user stopped the search here
  Ended,      ///< the search ended at its limits: no solution was found, and that there is none was not shown
};
inline constexpr std::size_t kEventTypes = 8;
/// The last event of a search.
constexpr bool isEnd(EventType type) {
  return type == EventType::Solution || type == EventType::Exhausted || type == EventType::Stopped || type == EventType::Ended;
}
std::string_view toText(EventType type);  ///< "visit", "try", ...

/// Only Try and Backtrack change what is assigned; after Exhausted the last attempt stays, to be looked at.
struct Event {
  EventType type = EventType::Visit;
  std::uint8_t reserved = 0;
  std::uint16_t ordinal = 0;  ///< Try: position among the node's candidates
  std::uint32_t node = 0;     ///< NodeId
  std::uint32_t detail = 0;   ///< Try: ChoiceId; Conflict: ConflictId; Visit: candidates; Backtrack: decisions undone
  std::uint32_t target = 0;   ///< Backtrack: NodeId gone back to (its next candidate is tried); else 0
  bool operator==(const Event&) const = default;
};
static_assert(sizeof(Event) == 16);

using StepId = std::uint64_t;  ///< index of an event
using ChoiceId = Id<struct ChoiceTag>;
using ConflictId = Id<struct ConflictTag>;

/// What a Try assigns: placements of the node's results and, for a layer, its strategy (which also places its weight).
struct Choice {
  std::vector<Placement> results;
  rules::TakenOption strategy;
  std::string reason;
  std::vector<Placement> computedAs;  ///< beside `results` where one was redistributed (Problem::redistributable); else empty
  bool operator==(const Choice& other) const;
};

/// Why a node cannot be assigned: a sentence and the values whose placements cause it.
struct ConflictRecord {
  NodeId node;
  std::string reason;
  std::vector<ValueId> culprits;
  std::vector<std::string> pins;  ///< texts of the pins involved, "lm_head=row"
  /// True when no node is to blame: what all steps together hold is more than the budget.
  bool isOfWholePlan() const { return culprits.empty() && pins.empty(); }
  bool operator==(const ConflictRecord& other) const;
};

/// Where an engine reports to. Called from the engine's thread. `false` from `onEvent` stops the search.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// The engine that was asked, before anything else.
  virtual void onStart(Engine) {}
  virtual ChoiceId internChoice(Choice choice) = 0;
  virtual ConflictId internConflict(ConflictRecord conflict) = 0;
  virtual bool onEvent(const Event& event) = 0;
};

/// Counts of a search; `tries` is what comparisons call steps.
struct SearchStats {
  std::uint64_t events = 0, visits = 0, tries = 0, conflicts = 0, backtracks = 0;
};

class TimeIndex;
class Variables;

/// A recording, readable while it grows. All const functions are safe beside one appending thread.
class Trace {
 public:
  Trace();
  virtual ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  virtual std::shared_ptr<const Problem> problem() const = 0;
  /// The engine that was asked; nullopt: not known, of a file that was written before files said it.
  virtual std::optional<Engine> engine() const = 0;
  virtual StepId size() const = 0;
  /// Copies events [first, first + out.size()) and returns how many there were.
  virtual std::size_t read(StepId first, std::span<Event> out) const = 0;
  /// Entries never change or move: the references live as long as the trace.
  virtual const Choice& choice(ChoiceId id) const = 0;
  virtual const ConflictRecord& conflict(ConflictId id) const = 0;
  virtual std::size_t choiceCount() const = 0;
  virtual std::size_t conflictCount() const = 0;
  virtual SearchStats stats() const = 0;

  /// What cursors and explanations derive once and share: the order of the steps, and snapshots to seek by.
  const Variables& variables() const;
  TimeIndex& timeIndex() const;

 private:
  struct Derived;
  Derived& derived() const;
  std::unique_ptr<Derived> m_derived;
};

struct RecorderLimits {
  std::uint64_t memoryBytes = 256ull << 20;
  std::uint64_t totalBytes = 4ull << 30;
  /// At totalBytes: true doubles the limit, false stops the search (what was recorded stays). Default: stop.
  std::function<bool(std::uint64_t bytes)> onFull;
};

/// The sink that keeps a trace.
class TraceRecorder : public TraceSink {
 public:
  explicit TraceRecorder(std::shared_ptr<const Problem> problem, RecorderLimits limits = {});
  ~TraceRecorder() override;
  void onStart(Engine engine) override;
  ChoiceId internChoice(Choice choice) override;
  ConflictId internConflict(ConflictRecord conflict) override;
  bool onEvent(const Event& event) override;
  /// The growing (or finished) recording; outlives the recorder.
  std::shared_ptr<const Trace> trace() const;
  std::uint64_t memoryBytes() const;  ///< bytes of events held in memory now
  /// Why `onEvent` answered false ("The recording reached its limit of 4096 MiB."); empty while it has not.
  std::string whyStopped() const;

 private:
  class Storage;
  std::shared_ptr<Storage> m_storage;
};

/// Versioned binary file: magic, version, graph and problem (so that it opens alone), tables, events. Bounded on read.
/// Saving is all or nothing; a trace that still grows is saved as far as it is when the call begins.
Result<void> saveTrace(const Trace& trace, const std::filesystem::path& file, const Progress& progress = {});
Result<std::shared_ptr<const Trace>> openTrace(const std::filesystem::path& file, const Progress& progress = {});

}  // namespace cleave::solve
