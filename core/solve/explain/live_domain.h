#pragma once
/// The live domain of a value at one moment of a search: the placements that a candidate still open can give it. For
/// each placement that is gone it reports the cause: sizes or rules, a demand, or a step of the search.
///
/// The current assignments narrow the domain of a value (candidates/domains.h). They are followed through the steps
/// that are not assigned yet (candidates/reach.h). The live domain has every placement that the search can still reach.
/// The cause of a removal is the first assignment after which the placement is out of reach.
///
///     LiveDomains domains(trace);                          // once per trace: asks the rules
///     const LiveDomain domain = domains.at(cursor, value);
///     for (const GonePlacement& gone : domain.gone) fmt::print("{}: {}\n", gone.placement.text(),
///     plainText(gone.why));
#include "solve/explain/sentences.h"
#include "solve/trace/cursor.h"

namespace cleave::solve {

enum class RemovedBy : std::uint8_t {
  Rules,     ///< no strategy and no rule gives it here, whatever the demands are
  Demand,    ///< a pin, a forbid or a rule switched off
  Step,      ///< an assignment of the search
  Conflict,  ///< the value's own step tried it and failed
};

struct GonePlacement {
  Placement placement;
  RemovedBy by = RemovedBy::Rules;
  NodeId node;               ///< Step, Conflict: the assigned node
  std::optional<StepId> at;  ///< Step, Conflict: position just after its Try
  Sentence why;              ///< one complete sentence
};

struct LiveDomain {
  ValueId value;
  std::vector<Placement> open;  ///< one entry: assigned, or the only one left; empty: a dead end
  std::vector<GonePlacement> gone;
  bool isAssigned = false;
  /// False if the work limit was reached. The listed placements are right, but some may be missing.
  bool isComplete = true;
};

/// Live domains of one trace, which may still grow. Use it from one thread.
class LiveDomains {
 public:
  explicit LiveDomains(std::shared_ptr<const Trace> trace);
  ~LiveDomains();

  /// `cursor` is on the same trace. With 12,000 nodes the first call takes hundreds of milliseconds, later calls a few.
  LiveDomain at(const Cursor& cursor, ValueId value, const Progress& progress = {});

 private:
  struct Tables;
  std::shared_ptr<const Trace> m_trace;
  std::unique_ptr<Tables> m_tables;
};

}  // namespace cleave::solve
