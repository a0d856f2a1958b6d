#include "pipeline/report/timeline.h"

#include <algorithm>
#include <map>

namespace cleave::pipeline {

using protocol::Span;
using protocol::SpanKind;

namespace {

tl::unexpected<Error> inconsistent(std::size_t rank, std::string_view why) {
  return fail(ErrorCode::RankFailed, "The times of rank {} are inconsistent: {}.", rank, why);
}

/// Makes the stretches of one rank from its nested spans.
class LaneMaker {
 public:
  explicit LaneMaker(std::vector<Stretch>& lane) : m_lane(lane) {}

  /// Returns false if the span begins before the previous one, or ends after the enclosing one.
  bool add(const Span& span) {
    while (!m_open.empty() && m_open.back()->endNs <= span.beginNs) close();
    if (span.beginNs < m_at || (!m_open.empty() && m_open.back()->endNs < span.endNs)) return false;
    if (!m_open.empty()) fill(span.beginNs);
    m_at = span.beginNs;
    m_open.push_back(&span);
    return true;
  }
  void finish() {
    while (!m_open.empty()) close();
  }

 private:
  void close() {
    fill(m_open.back()->endNs);
    m_open.pop_back();
  }
  /// Adds a stretch of the innermost open span until `end`.
  void fill(std::int64_t end) {
    const Span& span = *m_open.back();
    const bool isCollective = protocol::isCollective(span.kind);
    if (end > m_at || (isCollective && end == span.endNs)) {
      m_lane.push_back({.doing = isCollective ? Doing::Collective : Doing::Compute,
                        .kind = span.kind,
                        .node = span.node,
                        .collective = isCollective ? m_collectives++ : -1,
                        .bytes = span.bytes,
                        .ranks = span.ranks,
                        .stride = span.stride,
                        .beginNs = m_at,
                        .endNs = end});
    }
    m_at = end;
  }

  std::vector<Stretch>& m_lane;
  std::vector<const Span*> m_open;
  std::int64_t m_at = 0;
  std::int32_t m_collectives = 0;
};

/// The arrival of a rank at a collective.
struct Arrival {
  std::size_t rank = 0;
  std::size_t stretch = 0;
};

class TimelineMaker {
 public:
  explicit TimelineMaker(Timeline& timeline) : m_timeline(timeline) {}

  Result<void> addRank(const protocol::StepTimes& times, const graph::Graph& program, std::int64_t offset) {
    const std::size_t rank = m_timeline.lanes.size();
    std::vector<Stretch>& lane = m_timeline.lanes.emplace_back();
    LaneMaker maker(lane);
    std::int64_t previousEnd = 0;
    for (const Span& span : times.spans) {
      if (span.node >= std::ssize(program.nodes)) return inconsistent(rank, "the program lacks a node");
      if (!maker.add(span)) return inconsistent(rank, "spans overlap");
      previousEnd = std::max(previousEnd, span.endNs);
    }
    maker.finish();
    for (Stretch& stretch : lane) {
      stretch.beginNs += offset;
      stretch.endNs += offset;
    }
    m_timeline.sums.push_back({.total = previousEnd});
    m_timeline.totalNs = std::max(m_timeline.totalNs, offset + previousEnd);
    noteGroups(times, rank);
    return {};
  }

  Result<void> finish() {
    for (auto& [key, arrivals] : m_arrivals) CLEAVE_TRY_VOID(meet(arrivals));
    for (std::size_t rank = 0; rank < m_timeline.lanes.size(); ++rank) splitOffWaiting(rank);
    return {};
  }

 private:
  /// The number of a collective, and the first rank and the stride of its group.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

  void noteGroups(const protocol::StepTimes& times, std::size_t rank) {
    std::vector<const Span*> collectives;
    for (const Span& span : times.spans) {
      if (protocol::isCollective(span.kind)) collectives.push_back(&span);
    }
    const std::vector<Stretch>& lane = m_timeline.lanes[rank];
    for (std::size_t i = 0; i < lane.size(); ++i) {
      if (lane[i].collective < 0) continue;
      const Span& span = *collectives[static_cast<std::size_t>(lane[i].collective)];
      const std::int32_t place = span.ranks > 0 ? static_cast<std::int32_t>(rank) / span.stride % span.ranks : 0;
      m_arrivals[{lane[i].collective, static_cast<std::int32_t>(rank) - place * span.stride, span.stride}].push_back(
          {rank, i});
    }
    m_waitUntil.emplace_back(lane.size(), 0);
  }

  /// Splits the time of one collective at the arrival of its last rank: waiting before it, communication after it.
  Result<void> meet(const std::vector<Arrival>& arrivals) {
    const auto stretchOf = [&](const Arrival& a) -> const Stretch& { return m_timeline.lanes[a.rank][a.stretch]; };
    const Stretch& one = stretchOf(arrivals.front());
    const Arrival* last = &arrivals.front();
    std::int64_t first = one.beginNs;
    for (const Arrival& arrival : arrivals) {
      const Stretch& stretch = stretchOf(arrival);
      if (stretch.kind != one.kind || stretch.bytes != one.bytes || std::ssize(arrivals) != one.ranks)
        return inconsistent(arrival.rank, "a collective differs from that of other ranks");
      if (stretch.beginNs > stretchOf(*last).beginNs) last = &arrival;
      first = std::min(first, stretch.beginNs);
    }
    const std::int64_t all = stretchOf(*last).beginNs;
    if (all - first > m_timeline.skewNs) {
      m_timeline.skewNs = all - first;
      m_timeline.skewNode = one.node;
    }
    for (const Arrival& arrival : arrivals) {
      const Stretch& stretch = stretchOf(arrival);
      // With the clocks of several hosts, a rank may appear to leave before the last one arrives.
      const std::int64_t until = std::min(all, stretch.endNs);
      m_waitUntil[arrival.rank][arrival.stretch] = until;
      m_timeline.sums[last->rank].madeOthersWait += until - stretch.beginNs;
    }
    return {};
  }

  void splitOffWaiting(std::size_t rank) {
    std::vector<Stretch> lane;
    LaneSum& sum = m_timeline.sums[rank];
    for (std::size_t i = 0; i < m_timeline.lanes[rank].size(); ++i) {
      Stretch stretch = m_timeline.lanes[rank][i];
      if (stretch.doing == Doing::Compute) {
        sum.compute += stretch.length();
        lane.push_back(stretch);
        continue;
      }
      Stretch waiting = stretch;
      waiting.doing = Doing::Waiting;
      waiting.endNs = stretch.beginNs = m_waitUntil[rank][i];
      sum.waiting += waiting.length();
      sum.collective += stretch.length();
      if (waiting.length() > 0) lane.push_back(waiting);
      lane.push_back(stretch);
    }
    m_timeline.lanes[rank] = std::move(lane);
  }

  Timeline& m_timeline;
  std::map<Key, std::vector<Arrival>> m_arrivals;
  std::vector<std::vector<std::int64_t>> m_waitUntil;  ///< by rank and stretch
};

}  // namespace

std::string_view toText(Doing doing) {
  static constexpr std::array<std::string_view, 3> kNames{"compute", "waiting", "collective"};
  return kNames[static_cast<std::size_t>(doing)];
}

std::optional<int> Timeline::slowest() const {
  const auto most = std::max_element(
      sums.begin(), sums.end(), [](const LaneSum& a, const LaneSum& b) { return a.madeOthersWait < b.madeOthersWait; });
  if (most == sums.end() || most->madeOthersWait == 0) return std::nullopt;
  return static_cast<int>(most - sums.begin());
}

std::vector<OperatorTime> Timeline::operators(const plan::Plan& plan) const {
  std::vector<std::int64_t> longest(plan.graph->nodes.size());
  for (const std::vector<Stretch>& lane : lanes) {
    std::vector<std::int64_t> ofRank(longest.size());
    for (const Stretch& stretch : lane) {
      if (stretch.doing != Doing::Compute || stretch.node < 0) continue;
      const graph::NodeId origin = originOf(stretch, plan);
      if (origin.isValid()) ofRank[origin.index()] += stretch.length();
    }
    for (std::size_t i = 0; i < longest.size(); ++i) longest[i] = std::max(longest[i], ofRank[i]);
  }
  std::vector<OperatorTime> times;
  for (const auto node : idRange<graph::NodeId>(longest.size())) {
    if (longest[node.index()] > 0) times.push_back({node, longest[node.index()]});
  }
  std::stable_sort(times.begin(), times.end(),
                   [](const OperatorTime& a, const OperatorTime& b) { return a.computeNs > b.computeNs; });
  return times;
}

void TimelineCollector::observe(const launch::RankEvent& event) {
  const auto* times = event.message ? std::get_if<protocol::StepTimes>(&*event.message) : nullptr;
  if (!times || event.rank < 0 || event.rank >= std::ssize(m_ranks)) return;
  Rank& rank = m_ranks[static_cast<std::size_t>(event.rank)];
  protocol::StepTimes& known = rank.times;
  if (times->first == 0) {
    known = *times;
    return;
  }
  const bool isNext = times->first == std::ssize(known.spans) && times->total == known.total &&
                      times->first + std::ssize(times->spans) <= protocol::kMostSpans;
  rank.isBroken = rank.isBroken || !isNext;
  if (isNext) known.spans.insert(known.spans.end(), times->spans.begin(), times->spans.end());
}

Result<Timeline> TimelineCollector::timeline(const graph::Graph& program) const {
  Timeline timeline;
  const bool isRecorded =
      std::any_of(m_ranks.begin(), m_ranks.end(), [](const Rank& rank) { return !rank.times.spans.empty(); });
  if (!isRecorded) return timeline;
  std::map<std::string, std::int64_t> meetings;  // by clock: meeting time of its first rank
  std::vector<std::int64_t> starts;
  for (std::size_t i = 0; i < m_ranks.size(); ++i) {
    const protocol::StepTimes& times = m_ranks[i].times;
    if (m_ranks[i].isBroken || std::ssize(times.spans) != times.total) return inconsistent(i, "spans are missing");
    const std::int64_t meeting = meetings.emplace(times.clock, times.meetingNs).first->second;
    starts.push_back(times.startNs - meeting);
  }
  timeline.isOneClock = meetings.size() == 1;
  const std::int64_t begin = *std::min_element(starts.begin(), starts.end());
  TimelineMaker maker(timeline);
  for (std::size_t i = 0; i < m_ranks.size(); ++i)
    CLEAVE_TRY_VOID(maker.addRank(m_ranks[i].times, program, starts[i] - begin));
  CLEAVE_TRY_VOID(maker.finish());
  return timeline;
}

}  // namespace cleave::pipeline
