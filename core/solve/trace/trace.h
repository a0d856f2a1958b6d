#pragma once
/// The trace of a search: every event in 16 bytes, with interned tables of choices and conflicts.
///
/// Engines report to a `TraceSink`. `TraceRecorder` is the sink that keeps all events: the newest chunks in memory up
/// to a budget, older ones in an unlinked temporary file. At a size limit the search pauses and asks (`onFull`). Any
/// number of `Cursor`s read a finished trace, which is immutable. While one engine thread appends, others can read a
/// growing trace up to `Trace::size()`. The same problem and engine always give the same bytes.
#include "base/progress.h"
#include "solve/problem/problem.h"
#include "solve/trace/event_source.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cleave::solve {

class TimeIndex;
class Variables;

/// A trace, readable while it grows. All const functions are safe while one thread appends.
class Trace : public EventSource {
 public:
  Trace();
  ~Trace() override;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  virtual std::shared_ptr<const Problem> problem() const = 0;
  /// The requested engine; nullopt for files of older versions, which do not record it.
  virtual std::optional<Engine> engine() const = 0;
  /// Entries never change or move, so the references are valid while the trace exists.
  virtual const Choice& choice(ChoiceId id) const = 0;
  virtual const ConflictRecord& conflict(ConflictId id) const = 0;
  virtual std::size_t choiceCount() const = 0;
  virtual std::size_t conflictCount() const = 0;
  virtual SearchStats stats() const = 0;

  /// Derived data that cursors and explanations share: the order of the steps, and snapshots for seeking.
  const Variables& variables() const;
  TimeIndex& timeIndex() const;

 private:
  struct Derived;
  Derived& derived() const;
  std::unique_ptr<Derived> m_derived;
};

/// A versioned binary file: magic, version, graph and problem (so that it needs no other file), tables, events.
/// `openTrace` checks all limits. If `saveTrace` fails, it leaves no file. It saves a growing trace up to its size at
/// the call.
Result<void> saveTrace(const Trace& trace, const std::filesystem::path& file, const Progress& progress = {});
Result<std::shared_ptr<const Trace>> openTrace(const std::filesystem::path& file, const Progress& progress = {});

}  // namespace cleave::solve
