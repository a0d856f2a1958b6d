#pragma once
/// The recording of a search: every event in 16 bytes, with interned tables for what events refer to.
///
/// Engines report to a `TraceSink` they were handed. `TraceRecorder` is the sink that keeps everything: the newest
/// chunks in memory up to a budget, older ones in an unlinked temporary file, up to a limit at which the search pauses
/// and asks
/// (`onFull`). A finished recording is an immutable `Trace`, read by any number of `Cursor`s; a recording still growing
/// can be read up to `Trace::size()` while one engine thread appends (single writer, many readers).
/// Deterministic: same problem, same engine, same bytes.
#include "base/progress.h"
#include "solve/problem/problem.h"
#include "solve/trace/events.h"

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

/// Versioned binary file: magic, version, graph and problem (so that it opens alone), tables, events. Bounded on read.
/// Saving is all or nothing; a trace that still grows is saved as far as it is when the call begins.
Result<void> saveTrace(const Trace& trace, const std::filesystem::path& file, const Progress& progress = {});
Result<std::shared_ptr<const Trace>> openTrace(const std::filesystem::path& file, const Progress& progress = {});

}  // namespace cleave::solve
