#pragma once
/// The live domain of a value at one moment of a search: the placements that some choice still open can give it, and
/// beside each placement that is gone what removed it: the sizes or rules, a demand, or a step of the search.
///
/// The domain of a value (candidates/domains.h) is narrowed by what is assigned at the moment, followed forward through
/// the steps that are not (candidates/reach.h). Nothing that the search can still reach from there is left out, and
/// what removed a placement is the first assignment after which it is out of reach.
///
///     LiveDomains domains(trace);                          // once per trace: asks the rules
///     const LiveDomain domain = domains.at(cursor, value);
///     for (const GonePlacement& gone : domain.gone) fmt::print("{}: {}\n", gone.placement.text(),
///     plainText(gone.why));
#include "solve/explain/decision.h"

namespace cleave::solve {

enum class RemovedBy : std::uint8_t {
  Nature,    ///< no strategy and no rule gives it here, whatever is demanded
  Demand,    ///< pins, forbids, rules switched off
  Step,      ///< an assignment of the search
  Conflict,  ///< the value's own step tried it and failed
};

struct GonePlacement {
  Placement placement;
  RemovedBy by = RemovedBy::Nature;
  NodeId node;               ///< Step, Conflict: whose assignment it was
  std::optional<StepId> at;  ///< Step, Conflict: position just after its Try
  Sentence why;              ///< one sentence, which stands alone
};

struct LiveDomain {
  ValueId value;
  std::vector<Placement> open;  ///< one: it is assigned, or nothing else is left; none: a dead end
  std::vector<GonePlacement> gone;
  bool isAssigned = false;
  /// False: the work ended before; what is listed is right, and there may be more.
  bool isComplete = true;
};

/// Live domains of one trace. The trace may still grow. One thread.
class LiveDomains {
 public:
  explicit LiveDomains(std::shared_ptr<const Trace> trace);
  ~LiveDomains();

  /// `cursor` is on the same trace. On 12,000 nodes the first call takes some hundred milliseconds, later ones some.
  LiveDomain at(const Cursor& cursor, ValueId value, const Progress& progress = {});

 private:
  struct Tables;
  std::shared_ptr<const Trace> m_trace;
  std::unique_ptr<Tables> m_tables;
};

}  // namespace cleave::solve
