/// Timelines from the recorded times of ranks: waiting, inconsistent times, and sums of lanes. No rank runs.
#include "pipeline/report/timeline.h"
#include "tests/support/need.h"
#include "tests/support/seeds.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <random>

using namespace cleave;
using namespace cleave::pipeline;
using protocol::Span;
using protocol::SpanKind;
using protocol::StepTimes;

namespace {

graph::Graph tenNodes() {
  std::string text;
  for (int i = 0; i < 10; ++i) text += fmt::format("x{}: f32[1] = input\n", i);
  return test::need(graph::parseGraph(text + "return y=x0\n"));
}

Span node(int number, std::int64_t begin, std::int64_t end) {
  return {.kind = SpanKind::Forward, .node = number, .beginNs = begin, .endNs = end};
}
Span sum(int number, std::int64_t begin, std::int64_t end, int ranks = 2, std::int64_t bytes = 64, int stride = 1) {
  return {.kind = SpanKind::AllReduce,
          .node = number,
          .bytes = bytes,
          .beginNs = begin,
          .endNs = end,
          .ranks = ranks,
          .stride = stride};
}

struct RankTimes {
  std::vector<Span> spans;
  std::int64_t startNs = 1'000'000, meetingNs = 0;
  std::string clock = "one host";
};

Result<Timeline> timelineOf(const std::vector<RankTimes>& ranks, std::size_t spansInLine = 3) {
  TimelineCollector collector(static_cast<int>(ranks.size()));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    StepTimes times{
        ranks[rank].clock, ranks[rank].meetingNs, ranks[rank].startNs, 0, std::ssize(ranks[rank].spans), {}};
    for (std::size_t first = 0; first < ranks[rank].spans.size(); first += spansInLine) {
      const auto from = ranks[rank].spans.begin() + static_cast<std::ptrdiff_t>(first);
      const auto count = std::min(spansInLine, ranks[rank].spans.size() - first);
      times.first = static_cast<std::int64_t>(first);
      times.spans.assign(from, from + static_cast<std::ptrdiff_t>(count));
      collector.observe({static_cast<int>(rank), times, {}});
    }
  }
  return collector.timeline(tenNodes());
}

Timeline made(const std::vector<RankTimes>& ranks) {
  auto timeline = timelineOf(ranks);
  if (!timeline) qFatal("%s", timeline.error().message.c_str());
  return *std::move(timeline);
}

std::string refusal(const std::vector<RankTimes>& ranks) {
  const auto timeline = timelineOf(ranks);
  return timeline ? "none" : timeline.error().message;
}

/// "compute 0-100, waiting 100-150"
std::string laneText(const Timeline& timeline, std::size_t rank) {
  std::string text;
  for (const Stretch& stretch : timeline.lanes[rank])
    text += fmt::format("{}{} {}-{}", text.empty() ? "" : ", ", toText(stretch.doing), stretch.beginNs, stretch.endNs);
  return text;
}

}  // namespace

class TestTimeline : public QObject {
  Q_OBJECT
 private slots:
  void aRankWaitsUntilTheLastHasCome() {
    const Timeline timeline = made({{{node(1, 0, 100), node(2, 100, 400), sum(2, 110, 390)}},
                                    {{node(1, 0, 250), node(2, 250, 410), sum(2, 260, 400)}}});
    QCOMPARE(laneText(timeline, 0),
             "compute 0-100, compute 100-110, waiting 110-260, collective 260-390, compute 390-400");
    QCOMPARE(laneText(timeline, 1), "compute 0-250, compute 250-260, collective 260-400, compute 400-410");
    QCOMPARE(timeline.sums[0].waiting, 150);
    QCOMPARE(timeline.sums[1].madeOthersWait, 150);
    QCOMPARE(timeline.slowest().value_or(-1), 1);
    QCOMPARE(timeline.skewNs, 150);
    QCOMPARE(timeline.skewNode, 2);
    QCOMPARE(timeline.totalNs, 410);
  }

  void oneRankWaitsForNobody() {
    const Timeline timeline = made({{{node(1, 0, 100), sum(1, 20, 30, 1)}}});
    QVERIFY(!timeline.slowest());
    QCOMPARE(timeline.sums[0].waiting, 0);
    QCOMPARE(timeline.sums[0].compute, 90);
  }

  void groupsWaitForTheirOwn() {
    // 0 and 1, 2 and 3 by neighbours; 0 and 2, 1 and 3 with a stride.
    const Timeline near = made({{{sum(1, 10, 50)}}, {{sum(1, 20, 50)}}, {{sum(1, 100, 150)}}, {{sum(1, 120, 150)}}});
    QCOMPARE(near.sums[0].waiting, 10);
    QCOMPARE(near.sums[2].waiting, 20);
    const Timeline far = made({{{sum(1, 10, 150, 2, 64, 2)}},
                               {{sum(1, 20, 160, 2, 64, 2)}},
                               {{sum(1, 100, 150, 2, 64, 2)}},
                               {{sum(1, 120, 160, 2, 64, 2)}}});
    QCOMPARE(far.sums[0].waiting, 90);
    QCOMPARE(far.sums[1].waiting, 100);
  }

  void clocksOfHostsAreAlignedAtTheBarrier() {
    const Timeline timeline =
        made({{{sum(1, 0, 100)}, 5'000, 4'000, "here"}, {{sum(1, 0, 60)}, 90'040, 89'000, "there"}});
    QVERIFY(!timeline.isOneClock);
    QCOMPARE(timeline.lanes[1].front().beginNs, 40);
    QCOMPARE(timeline.sums[0].waiting, 40);
    // Ranks of one host share a clock, so their times at the barrier do not count.
    QCOMPARE(made({{{sum(1, 0, 100)}, 5'000, 4'000}, {{sum(1, 0, 60)}, 5'030, 3'000}}).sums[0].waiting, 30);
  }

  void noSpansMakeNoTimeline() { QVERIFY(made({{}, {}}).isEmpty()); }

  void inconsistentTimesAreRefused() {
    QVERIFY(refusal({{{node(1, 0, 100), node(2, 50, 120)}}}).find("The times of rank 0 are inconsistent") !=
            std::string::npos);
    QVERIFY(refusal({{{node(77, 0, 100)}}}).find("the program lacks a node") != std::string::npos);
    QVERIFY(refusal({{{sum(1, 0, 10)}}, {{sum(1, 0, 10, 2, 128)}}}).find("differs from that of other ranks") !=
            std::string::npos);
    QVERIFY(refusal({{{sum(1, 0, 10)}}, {}}).find("differs from that of other ranks") != std::string::npos);
    TimelineCollector collector(1);
    collector.observe({0, StepTimes{"here", 0, 0, 0, 2, {node(1, 0, 1)}}, {}});
    QVERIFY(!collector.timeline(tenNodes()));  // half of the spans are missing
  }

  /// In random steps, the stretches of a lane are in order, their sums are right, and all waiting has a cause.
  void lanesAddUp() {
    for (const std::uint64_t seed : test::Seeds(300)) {
      std::mt19937_64 random(seed);
      const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
      };
      const int ranks = 1 + static_cast<int>(below(4));
      const auto steps = static_cast<int>(below(12));
      std::vector<RankTimes> recorded(static_cast<std::size_t>(ranks));
      std::vector<std::int64_t> at(recorded.size());
      for (int step = 0; step < steps; ++step) {
        const bool hasSum = below(2) == 0;
        std::int64_t last = 0;
        std::vector<std::int64_t> begin(recorded.size());
        for (std::size_t rank = 0; rank < recorded.size(); ++rank) {
          begin[rank] = at[rank] + below(20);
          at[rank] = begin[rank] + below(50);
          last = std::max(last, at[rank]);
        }
        for (std::size_t rank = 0; rank < recorded.size(); ++rank) {
          const std::int64_t come = at[rank];
          if (hasSum) at[rank] = last + below(30);
          const std::int64_t left = at[rank];
          at[rank] += below(5);
          recorded[rank].spans.push_back(node(step % 10, begin[rank], at[rank]));
          if (hasSum) recorded[rank].spans.push_back(sum(step % 10, come, left, ranks));
        }
      }
      const Timeline timeline = made(recorded);
      for (std::size_t rank = 0; rank < timeline.lanes.size(); ++rank) {
        std::int64_t before = 0, compute = 0, waiting = 0, collective = 0;
        for (const Stretch& stretch : timeline.lanes[rank]) {
          QVERIFY(stretch.beginNs >= before && stretch.endNs >= stretch.beginNs);
          before = stretch.endNs;
          (stretch.doing == Doing::Compute   ? compute
           : stretch.doing == Doing::Waiting ? waiting
                                             : collective) += stretch.length();
        }
        const LaneSum& sums = timeline.sums[rank];
        QCOMPARE(sums.compute, compute);
        QCOMPARE(sums.waiting, waiting);
        QCOMPARE(sums.collective, collective);
        QVERIFY(compute + waiting + collective <= sums.total);
      }
      std::int64_t waited = 0, made = 0;
      for (const LaneSum& sums : timeline.sums) waited += sums.waiting, made += sums.madeOthersWait;
      QCOMPARE(waited, made);
    }
  }
};

QTEST_APPLESS_MAIN(TestTimeline)
#include "tst_timeline.moc"
