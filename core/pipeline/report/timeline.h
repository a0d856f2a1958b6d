#pragma once
/// The timeline of the step that the ranks recorded: one lane per rank, with compute, waiting and collectives.
///
/// A rank waits in a collective until the last rank of the group arrives; then they communicate. Ranks of one host
/// share its clock. Clocks of different hosts are aligned at a barrier, so waiting between hosts is as exact as that
/// barrier: tens of microseconds on one switch.
///
///     TimelineCollector collector(plan.spec.ranks);
///     launch(request, [&](const launch::RankEvent& event) { collector.observe(event); });
///     CLEAVE_TRY(const Timeline timeline, collector.timeline(*plan.program));
///     writeFile("run.trace.json", toChromeTrace(timeline, plan));   // chrome://tracing, ui.perfetto.dev
#include "launch/launcher.h"
#include "plan/plan.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

enum class Doing : std::uint8_t { Compute, Waiting, Collective };
std::string_view toText(Doing doing);  ///< "compute"

/// A piece of a lane. The stretches of a lane are in order and do not overlap. Time between them is not recorded.
struct Stretch {
  Doing doing = Doing::Compute;
  protocol::SpanKind kind = protocol::SpanKind::Forward;  ///< kind of compute or collective
  std::int32_t node = -1;                                 ///< node of the rank program; -1: no node
  std::int32_t collective = -1;                           ///< number in the step; -1: not a collective
  std::int64_t bytes = 0;                                 ///< bytes of the full tensor of a collective
  std::int32_t ranks = 0, stride = 1;                     ///< group of a collective: see protocol::Span
  std::int64_t beginNs = 0, endNs = 0;                    ///< time since the first rank began
  std::int64_t length() const { return endNs - beginNs; }
};

/// Sums over a rank's step, in nanoseconds.
struct LaneSum {
  std::int64_t compute = 0, collective = 0, waiting = 0;
  std::int64_t total = 0;           ///< time from the rank's begin to its end
  std::int64_t madeOthersWait = 0;  ///< waiting time of other ranks in collectives where this rank came last
};

/// The time of one operator of the ATen graph, forward and backward, on its slowest rank.
struct OperatorTime {
  graph::NodeId node;  ///< node of the ATen graph
  std::int64_t computeNs = 0;
};

struct Timeline {
  std::vector<std::vector<Stretch>> lanes;  ///< by rank
  std::vector<LaneSum> sums;                ///< by rank
  std::int64_t totalNs = 0;                 ///< time until the last rank finished
  std::int64_t skewNs = 0;                  ///< largest time between two arrivals at one collective
  std::int32_t skewNode = -1;               ///< node of the rank program with that collective
  bool isOneClock = true;
  bool isEmpty() const { return lanes.empty(); }
  /// The rank that the others waited for longest; nullopt: no rank waited.
  std::optional<int> slowest() const;
  /// Longest first.
  std::vector<OperatorTime> operators(const plan::Plan& plan) const;
};

class TimelineCollector {
 public:
  explicit TimelineCollector(int ranks) : m_ranks(static_cast<std::size_t>(ranks)) {}
  void observe(const launch::RankEvent& event);
  /// Empty if no rank recorded its times. RankFailed if a rank's spans do not nest, or do not match the program or the
  /// other ranks.
  Result<Timeline> timeline(const graph::Graph& program) const;

 private:
  struct Rank {
    protocol::StepTimes times;
    bool isBroken = false;  ///< true: a message is missing or out of order
  };
  std::vector<Rank> m_ranks;
};

/// "linear", "linear backward", "all_reduce", "waiting for all_reduce".
std::string titleOf(const Stretch& stretch, const plan::Plan& plan);
/// The plan's prediction for its device. For a collective: the link's formula (solve/cost/link.h). For a node: its
/// compute time in the full step, forward and backward. nullopt: the plan does not predict this stretch.
std::optional<double> predictedSeconds(const Stretch& stretch, const plan::Plan& plan,
                                       const std::vector<solve::StepCost>& costByNode);
/// The ATen node of a stretch; invalid for a stretch without a node.
graph::NodeId originOf(const Stretch& stretch, const plan::Plan& plan);

/// Google's Trace Event Format. Each rank is a process with one thread for compute and one for collectives. The
/// arguments of an event are its name, bytes and predicted time.
std::string toChromeTrace(const Timeline& timeline, const plan::Plan& plan);

/// The rank that the others waited for, and the largest time between two arrivals; empty if no rank waited.
std::string waitedText(const Timeline& timeline, const plan::Plan& plan);

/// One line per rank with its times; then waitedText, and the longest operators with their predictions.
std::string timesText(const Timeline& timeline, const plan::Plan& plan);

}  // namespace cleave::pipeline
