// The canvas as a user meets it: clicks, wheel, keys, folding, and how fast.
#include <signal.h>
#include <QSignalSpy>
#include <QWheelEvent>

#include "canvas/scene_painter.h"
#include "canvas_support.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::test;

class CanvasView : public QObject {
  Q_OBJECT
 private slots:
  void init() {
    m_view = std::make_unique<GraphView>();
    m_view->resize(1000, 700);
    m_view->show();
    m_graph = cleave::test::llamaGraph({.layers = 4});
    m_view->setGraph(m_graph);
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), 20000);
    m_scopes = scopesByPath(*m_graph);
  }
  void cleanup() { m_view.reset(); }

  void firstPictureIsTheModel() {
    const QString text = m_view->visibleText();
    QVERIFY2(text.contains("layers 0–3") && text.contains("linear (lm_head)") && text.contains("→ logits"),
             qPrintable(text));
    QVERIFY(m_view->visibleArea().contains(m_view->scene()->bounds()));
  }

  void plusOpensOneLayerUnderTheCursor() {
    const SceneItem stack = itemTitled(ItemKind::Stack);
    const QPoint button = center(ScenePainter::foldButton(stack, m_metrics));
    const QPointF before = m_view->viewRect(stack).topLeft();
    QSignalSpy changed(m_view.get(), &GraphView::expandedChanged);
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, button);
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady() && changed.count() == 1, 10000);
    QVERIFY(m_view->isExpanded(m_scopes.at("model.layers.0")));
    QVERIFY(m_view->visibleText().contains("layers 1–3"));
    const SceneItem frame = itemTitled(ItemKind::Frame);
    const QPointF after = m_view->viewRect(frame).topLeft();
    QVERIFY((after - before).manhattanLength() <= 2);
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, center(ScenePainter::foldButton(frame, m_metrics)));
    QTRY_VERIFY(m_view->isReady() && m_view->visibleText().contains("layers 0–3"));
  }

  void listButtonShowsAllLayers() {
    const SceneItem stack = itemTitled(ItemKind::Stack);
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, center(ScenePainter::listButton(stack, m_metrics)));
    QTRY_VERIFY(m_view->isReady() && m_view->visibleText().contains("layers.3"));
    QVERIFY(!m_view->visibleText().contains("layers 0–3"));
  }

  void clickSelectsAndArrowsWalkAlongEdges() {
    QSignalSpy clicked(m_view.get(), &GraphView::nodeClicked);
    QSignalSpy scope(m_view.get(), &GraphView::scopeClicked);
    const SceneItem embedding = operatorTitled("embed_tokens");
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, center(embedding.rect));
    QCOMPARE(clicked.count(), 1);
    QCOMPARE(m_view->selectedNode(), embedding.node);
    QTest::keyClick(m_view.get(), Qt::Key_Down);
    QCOMPARE(scope.count(), 1);  // the stack of layers
    QTest::keyClick(m_view.get(), Qt::Key_Up);
    QCOMPARE(m_view->selectedNode(), embedding.node);
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, QPoint(3, m_view->viewport()->height() - 3));
    QVERIFY(!m_view->selectedNode().isValid());
  }

  void wheelZoomsAtTheCursorAndDraggingPans() {
    const QPointF at(300, 200);
    const QRectF area = m_view->visibleArea();
    const QPointF world = area.topLeft() + at / m_view->zoom();
    QWheelEvent wheel(at, m_view->viewport()->mapToGlobal(at), {}, QPoint(0, 240), Qt::NoButton, Qt::NoModifier,
                      Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(m_view->viewport(), &wheel);
    QVERIFY(m_view->zoom() > 1.2);
    const QPointF now = m_view->visibleArea().topLeft() + at / m_view->zoom();
    QVERIFY((now - world).manhattanLength() < 2);
    const QPointF before = m_view->visibleArea().topLeft();
    QTest::mousePress(m_view->viewport(), Qt::LeftButton, {}, QPoint(400, 400));
    QTest::mouseMove(m_view->viewport(), QPoint(360, 370));
    QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, {}, QPoint(360, 370));
    const QPointF moved = (m_view->visibleArea().topLeft() - before) * m_view->zoom();
    QVERIFY((moved - QPointF(40, 30)).manhattanLength() < 3);
    QTest::keyClick(m_view.get(), Qt::Key_0);
    QVERIFY(m_view->visibleArea().contains(m_view->scene()->bounds()));
  }

  void revealOpensWhatIsAround() {
    const auto q = m_graph->findValue("model.layers.2.self_attn.q_proj.weight");
    const auto reader = m_view->model()->shownNode(m_graph->value(q).producer);
    m_view->reveal(reader);
    QTRY_VERIFY(m_view->isReady());
    QVERIFY(m_view->isExpanded(m_scopes.at("model.layers.2.self_attn")));
    const auto item = m_view->scene()->itemOf(*m_view->model(), reader);
    QVERIFY(m_view->viewRect(m_view->scene()->items()[item]).intersects(m_view->viewport()->rect()));
  }

  void nothingOverlapsWhateverIsOpen() {
    for (const bool all : {false, true}) {
      if (all)
        m_view->expandAll();
      else
        m_view->expand(m_scopes.at("model.layers.1"));
      QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), 10000);
      const auto& items = m_view->scene()->items();
      for (std::size_t i = 0; i < items.size(); ++i)
        for (std::size_t k = i + 1; k < items.size(); ++k)
          if (items[i].parent == items[k].parent)
            QVERIFY(!items[i].rect.adjusted(1, 1, -1, -1).intersects(items[k].rect));
      for (const SceneItem& item : items)
        if (item.parent != SceneItem::kNone) QVERIFY(items[item.parent].rect.contains(item.rect));
    }
  }

  void unfoldingManyTimesDoesNotGrow() {
    const auto layer = m_scopes.at("model.layers.0");
    for (int i = 0; i < 200; ++i) {
      m_view->expand(layer);
      QTRY_VERIFY(m_view->isReady());
      m_view->collapse(layer);
      QTRY_VERIFY(m_view->isReady());
    }
    QVERIFY(m_view->visibleText().contains("layers 0–3"));
    QVERIFY(m_view->expandedScopes().empty());
  }

  void withoutHelperTheCanvasStillDraws() {
    GraphView view{LayoutHelper{}};
    view.resize(800, 600);
    view.setGraph(m_graph);
    QVERIFY(view.isReady());
    QVERIFY(view.visibleText().contains("layers 0–3"));
    view.setGraph(nullptr);
    QVERIFY(view.visibleText().isEmpty());
    view.grab();
  }

  void stepsRepaintWithoutLayout() {
    m_view->setPlacements({});
    const Scene* scene = m_view->scene();
    const auto placements = tensorParallel(*m_graph);
    m_view->setPlacements(placements);
    std::vector<graph::NodeId> all;
    for (const auto n : idRange<graph::NodeId>(m_graph->nodes.size())) all.push_back(n);
    m_view->updateNodes(all);
    m_view->setConflictNodes({all.back()});
    m_view->setCurrentNode(all.back());
    m_view->grab();
    QCOMPARE(m_view->scene(), scene);
  }

  void isFastWithManyLayers() {
    const auto graph = cleave::test::llamaGraph(
        {.layers = 126, .hidden = 16384, .heads = 128, .kvHeads = 8, .intermediate = 53248, .vocab = 128256});
    QElapsedTimer clock;
    clock.start();
    m_view->setGraph(graph);
    QTRY_VERIFY(m_view->isReady());
    m_view->grab();
    const auto first = clock.restart();
    m_view->setPlacements(tensorParallel(*graph));
    m_view->expandAll();
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), 20000);
    const auto expanded = clock.restart();
    for (const double zoom : {0.02, 0.1, 0.3, 1.0}) {
      m_view->zoomTo(zoom);
      QCoreApplication::processEvents();
      clock.restart();
      m_view->zoomTo(zoom * 1.01);
      m_view->viewport()->grab();
      qInfo("frame at zoom %.2f: %lld ms", zoom, clock.elapsed());
    }
    qInfo("first picture %lld ms, all unfolded %lld ms, %zu boxes", first, expanded, m_view->scene()->items().size());
    QVERIFY(first < 3000);
  }

 private:
  QPoint center(const QRectF& world) const {
    return ((world.center() - m_view->visibleArea().topLeft()) * m_view->zoom()).toPoint();
  }
  SceneItem itemTitled(ItemKind kind) const {
    for (const SceneItem& item : m_view->scene()->items())
      if (item.kind == kind) return item;
    return {};
  }
  SceneItem operatorTitled(const std::string& tail) const {
    for (const SceneItem& item : m_view->scene()->items())
      if (item.node.isValid() && m_view->model()->trimmings(item.node).tail == tail) return item;
    return {};
  }

  std::unique_ptr<GraphView> m_view;
  std::shared_ptr<const graph::Graph> m_graph;
  std::unordered_map<std::string, graph::ScopeId> m_scopes;
  Metrics m_metrics;
};

int main(int argc, char** argv) {
  return canvasTestMain<CanvasView>(argc, argv);
}
#include "tst_canvas_view.moc"
