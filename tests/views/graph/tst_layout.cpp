// Layouts: both engines, the protocol between window and helper, and a helper that dies.
#include <signal.h>
#include <QRandomGenerator>
#include <QSignalSpy>

#include "tests/support/seeds.h"
#include "tests/views/graph/canvas_support.h"
#include "views/graph/layout/layout_protocol.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::test;

namespace {

LayoutRequest randomRequest(std::uint64_t seed) {
  QRandomGenerator random(static_cast<quint32>(seed));
  LayoutRequest request;
  const int boxes = 2 + random.bounded(30);
  for (int i = 0; i < boxes; ++i) {
    LayoutBox box{float(40 + random.bounded(200)), float(20 + random.bounded(80)), LayoutBox::Rank::Free, {}, {}};
    if (random.bounded(5) == 0) box.inPorts = {10.f, box.width - 10};
    if (random.bounded(5) == 0) box.outPorts = {box.width / 3};
    request.boxes.push_back(box);
  }
  for (int i = 1; i < boxes; ++i) {
    for (int k = 0; k <= random.bounded(3); ++k) {
      LayoutEdge edge{std::uint32_t(random.bounded(i)), std::uint32_t(i), -1, -1};
      if (random.bounded(12) == 0) std::swap(edge.from, edge.to);  // cycles happen between folded modules
      if (!request.boxes[edge.from].outPorts.empty()) edge.fromPort = 0;
      if (!request.boxes[edge.to].inPorts.empty()) edge.toPort = random.bounded(2);
      request.edges.push_back(edge);
    }
  }
  return request;
}

void checkLayout(const LayoutRequest& request, const LayoutResult& result) {
  QCOMPARE(result.positions.size(), request.boxes.size());
  QCOMPARE(result.curves.size(), request.edges.size());
  for (std::size_t i = 0; i < request.boxes.size(); ++i) {
    const QRectF a(result.positions[i], QSizeF(request.boxes[i].width, request.boxes[i].height));
    for (std::size_t k = 0; k < i; ++k) {
      const QRectF b(result.positions[k], QSizeF(request.boxes[k].width, request.boxes[k].height));
      QVERIFY2(!a.adjusted(1, 1, -1, -1).intersects(b),
               qPrintable(QStringLiteral("boxes %1 and %2 overlap").arg(i).arg(k)));
    }
  }
  for (std::size_t e = 0; e < request.edges.size(); ++e) {
    const LayoutEdge& edge = request.edges[e];
    const Curve& curve = result.curves[e];
    QVERIFY(curve.size() >= 4 && curve.size() % 3 == 1);
    QCOMPARE(curve.front().y(), result.positions[edge.from].y() + request.boxes[edge.from].height);
    QCOMPARE(curve.back().y(), result.positions[edge.to].y());
  }
}

}  // namespace

class Layouts : public QObject {
  Q_OBJECT
 private slots:
  void init() { m_helper = LayoutHelper::find(); }

  void builtInLayoutKeepsBoxesApart() {
    for (const std::uint64_t seed : cleave::test::Seeds(200)) {
      const LayoutRequest request = randomRequest(seed);
      LayoutResult result = layeredLayout(request);
      attachCurves(request, result);
      checkLayout(request, result);
      if (QTest::currentTestFailed()) QFAIL(qPrintable(QStringLiteral("seed %1").arg(seed)));
    }
  }

  void helperKeepsBoxesApart() {
    Layouter layouter(m_helper);
    int simplified = 0;
    for (quint32 seed = 1; seed <= 60; ++seed) {
      const LayoutRequest request = randomRequest(seed);
      QTRY_VERIFY_WITH_TIMEOUT(layouter.find(request), kPatience);
      checkLayout(request, *layouter.find(request));
      simplified += layouter.find(request)->isSimplified;
      if (QTest::currentTestFailed()) QFAIL(qPrintable(QStringLiteral("seed %1").arg(seed)));
    }
    QCOMPARE(simplified, 0);
  }

  /// A lone port moves to the middle of its side, and its edges still do not cross boxes.
  void linesFromAPortGoAroundBoxes() {
    Layouter layouter(m_helper);
    for (const float wide : {60.f, 160.f, 300.f}) {
      for (const bool atBottom : {false, true}) {
        LayoutRequest request;
        const auto end = atBottom ? LayoutBox::Rank::Bottom : LayoutBox::Rank::Top;
        request.boxes = {{10, 4, end, {}, {}},
                         {wide, 40, LayoutBox::Rank::Free, {}, {}},
                         {240, 60, LayoutBox::Rank::Free, {}, {}},
                         {90, 30, LayoutBox::Rank::Free, {}, {}}};
        request.edges = {{0, 1, -1, -1}, {1, 2, -1, -1}, {2, 3, -1, -1}, {0, 3, -1, -1}};
        if (atBottom)
          for (LayoutEdge& edge : request.edges) std::swap(edge.from, edge.to);
        QTRY_VERIFY_WITH_TIMEOUT(layouter.find(request), kPatience);
        const LayoutResult result = *layouter.find(request);
        checkLayout(request, result);
        const Curve& curve = result.curves[3];
        for (std::size_t i = 0; i + 3 < curve.size(); i += 3) {
          for (double t = 0; t <= 1; t += 0.02) {
            const double u = 1 - t;
            const QPointF p = u * u * u * curve[i] + 3 * u * u * t * curve[i + 1] + 3 * u * t * t * curve[i + 2] +
                              t * t * t * curve[i + 3];
            for (const std::size_t box : {1, 2}) {
              const QRectF rect(result.positions[box], QSizeF(request.boxes[box].width, request.boxes[box].height));
              QVERIFY2(!rect.contains(p), qPrintable(QStringLiteral("box %1, %2 wide").arg(box).arg(wide)));
            }
          }
        }
      }
    }
  }

  void messagesSurviveTheWay() {
    for (quint32 seed = 1; seed <= 50; ++seed) {
      const LayoutRequest request = randomRequest(seed);
      std::uint64_t id = 0;
      const auto back = decodeRequest(encodeRequest(seed, request), id);
      QVERIFY(back && id == seed);
      QVERIFY(*back == request);
      LayoutResult result = layeredLayout(request);
      const auto answer = decodeAnswer(encodeAnswer({seed, result, {}}));
      QVERIFY(answer && answer->result && answer->result->curves.size() == result.curves.size());
    }
  }

  void brokenMessagesAreRefused_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("other word") << QByteArray("hello 1 2 3\nend\n");
    QTest::newRow("too few boxes") << QByteArray("layout 1 2 0\nbox 10 10 0 0 0\nend\n");
    QTest::newRow("edge to nowhere") << QByteArray("layout 1 1 1\nbox 10 10 0 0 0\nedge 0 1 -1 -1\nend\n");
    QTest::newRow("port that is not there")
        << QByteArray("layout 1 2 1\nbox 10 10 0 0 0\nbox 10 10 0 0 0\nedge 0 1 0 -1\nend\n");
    QTest::newRow("not a number") << QByteArray("layout 1 1 0\nbox ten 10 0 0 0\nend\n");
    QTest::newRow("huge count") << QByteArray("layout 1 99999999999 0\nend\n");
    QTest::newRow("nan") << QByteArray("layout 1 1 0\nbox nan 10 0 0 0\nend\n");
  }
  void brokenMessagesAreRefused() {
    QFETCH(QByteArray, text);
    std::uint64_t id = 0;
    QVERIFY(!decodeRequest({text.constData(), std::size_t(text.size())}, id));
    QVERIFY(!decodeAnswer({text.constData(), std::size_t(text.size())}));
  }

  void killedHelperIsReplacedByTheBuiltInLayout() {
    Layouter layouter(m_helper);
    QSignalSpy failed(&layouter, &Layouter::helperFailed);
    QTRY_VERIFY_WITH_TIMEOUT(layouter.helperProcessId() > 0, kPatience);
    LayoutRequest slow = randomRequest(7);
    for (int i = 0; i < 400; ++i)
      slow.edges.push_back({std::uint32_t(i % 5), std::uint32_t(5 + i % 20 % (slow.boxes.size() - 5)), -1, -1});
    for (LayoutEdge& e : slow.edges) e.fromPort = e.toPort = -1;
    const bool isKnown = layouter.find(slow) != nullptr;
    QVERIFY(!isKnown);
    ::kill(static_cast<pid_t>(layouter.helperProcessId()), SIGKILL);
    QTRY_VERIFY_WITH_TIMEOUT(layouter.find(slow), kPatience);
    QVERIFY(failed.count() == 0 || layouter.find(slow)->isSimplified);
    const LayoutRequest next = randomRequest(9);  // the app continues with a new helper
    QTRY_VERIFY_WITH_TIMEOUT(layouter.find(next), kPatience);
    QVERIFY(!layouter.find(next)->isSimplified);
  }

  void hangingHelperIsGivenUpAfterItsTime() {
    Layouter layouter({QStringLiteral("/bin/sleep"), {QStringLiteral("600")}});
    layouter.setTimeout(100);
    QSignalSpy failed(&layouter, &Layouter::helperFailed);
    const LayoutRequest request = randomRequest(3);
    layouter.setStartupTimeout(150);
    QTRY_VERIFY_WITH_TIMEOUT(layouter.find(request), kPatience);
    QVERIFY(layouter.find(request)->isSimplified);
    QVERIFY(failed.count() >= 1);
  }

  void missingHelperIsNoDrama() {
    Layouter layouter({QStringLiteral("/no/such/program"), {}});
    const LayoutRequest request = randomRequest(4);
    QTRY_VERIFY_WITH_TIMEOUT(layouter.find(request), kPatience);
    QVERIFY(layouter.find(request)->isSimplified);
    Layouter none(LayoutHelper{});
    QVERIFY(!none.find(request));  // in progress: the calling thread computes nothing
    QTRY_VERIFY_WITH_TIMEOUT(none.find(request), kPatience);
    QVERIFY(none.find(request)->isSimplified);
  }

  void cancelStopsWhatRuns() {
    Layouter layouter(m_helper);
    QVERIFY(!layouter.find(randomRequest(11)));
    layouter.cancel();
    QVERIFY(!layouter.isBusy());
    QTRY_VERIFY_WITH_TIMEOUT(layouter.find(randomRequest(12)), kPatience);
  }

 private:
  LayoutHelper m_helper;
};

int main(int argc, char** argv) { return canvasTestMain<Layouts>(argc, argv); }
#include "tst_layout.moc"
