#pragma once
/// What the ranks of a run did when, in the step that they recorded: a lane a rank, of computing, waiting for others,
/// and collectives.
///
/// A rank waits in a collective until the last of those that take part has come; from then on they communicate. Ranks
/// of one host share its clock; those of other hosts are laid side by side where all of them had met, so that what is
/// told of waiting between hosts is as good as that meeting was simultaneous (tens of microseconds on one switch).
///
///     TimelineCollector collector(plan.ranks);
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

/// A piece of a lane. Those of a lane are in order and do not overlap; between them a rank does nothing that it tells
/// of.
struct Stretch {
  Doing doing = Doing::Compute;
  protocol::SpanKind kind = protocol::SpanKind::Forward;  ///< what it computes, or which collective
  std::int32_t node = -1;                                 ///< of the rank program; -1: none
  std::int32_t collective = -1;                           ///< its number in the step
  std::int64_t bytes = 0;                                 ///< of a collective's whole tensor
  std::int32_t ranks = 0, stride = 1;                     ///< of a collective: see protocol::Span
  std::int64_t beginNs = 0, endNs = 0;                    ///< since the first rank began
  std::int64_t length() const { return endNs - beginNs; }
};

/// Nanoseconds of a rank's step.
struct LaneSum {
  std::int64_t compute = 0, collective = 0, waiting = 0;
  std::int64_t total = 0;           ///< from its own begin to its end
  std::int64_t madeOthersWait = 0;  ///< of the other ranks' waiting: where this one was the last to come
};

/// What the nodes of one operator of the ATen graph took, forward and backward, on the rank where that was longest.
struct OperatorTime {
  graph::NodeId node;  ///< of the ATen graph
  std::int64_t computeNs = 0;
};

struct Timeline {
  std::vector<std::vector<Stretch>> lanes;  ///< by rank
  std::vector<LaneSum> sums;                ///< by rank
  std::int64_t totalNs = 0;                 ///< until the last rank was through
  std::int64_t skewNs = 0;                  ///< the most by which two ranks came to one collective apart
  std::int32_t skewNode = -1;               ///< of the rank program: whose collective that was
  bool isOneClock = true;
  bool isEmpty() const { return lanes.empty(); }
  /// The rank that the others waited for longest; nullopt: nobody waited.
  std::optional<int> slowest() const;
  /// Longest first.
  std::vector<OperatorTime> operators(const plan::Plan& plan) const;
};

class TimelineCollector {
 public:
  explicit TimelineCollector(int ranks) : m_ranks(static_cast<std::size_t>(ranks)) {}
  void observe(const launch::RankEvent& event);
  /// Empty when no rank recorded anything. RankFailed where a rank's parts do not fit into each other, the program or
  /// those of the other ranks.
  Result<Timeline> timeline(const graph::Graph& program) const;

 private:
  struct Rank {
    protocol::StepTimes times;
    bool isBroken = false;  ///< its lines do not follow each other
  };
  std::vector<Rank> m_ranks;
};

/// "linear", "linear backward", "all_reduce", "waiting for all_reduce".
std::string titleOf(const Stretch& stretch, const plan::Plan& plan);
/// What the plan predicts of its device: of a collective by the link's formula (solve/cost/link.h), of a node what it
/// computes in the whole step, forward and backward. nullopt: it predicts nothing of this.
std::optional<double> predictedSeconds(const Stretch& stretch, const plan::Plan& plan,
                                       const std::vector<solve::StepCost>& costByNode);
/// The node of the ATen graph that a stretch is of; invalid: none.
graph::NodeId originOf(const Stretch& stretch, const plan::Plan& plan);

/// In Google's Trace Event Format: a process a rank, with a thread of what it computes and one of its collectives, and
/// in the arguments of each event the name, bytes and predicted time.
std::string toChromeTrace(const Timeline& timeline, const plan::Plan& plan);

/// Who was waited for and how far apart ranks came to one collective, in sentences; empty: nobody waited.
std::string waitedText(const Timeline& timeline, const plan::Plan& plan);

/// Where the time went, a line a rank, who was waited for, the longest operators, and what was predicted.
std::string timesText(const Timeline& timeline, const plan::Plan& plan);

}  // namespace cleave::pipeline
