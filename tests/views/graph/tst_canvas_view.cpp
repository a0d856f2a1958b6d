#include <QRandomGenerator>
// The canvas under a user's clicks, wheel and keys, with folding and speed.
#include <signal.h>
#include <QSignalSpy>
#include <QWheelEvent>

#include <QBuffer>
#include <QFile>
#include <QImageReader>
#include <random>

#include "graph/graph_builder.h"
#include "tests/support/images.h"
#include "tests/support/seeds.h"
#include "tests/views/graph/canvas_support.h"
#include "views/graph/scene/scene_painter.h"
#include "views/graph/view/legend.h"
#include "views/graph/view/minimap.h"
#include "views/graph/view/picture.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::test;

namespace {

/// Rejects all data, like a full disk.
class FullDisk : public QIODevice {
 protected:
  qint64 readData(char*, qint64) override { return -1; }
  qint64 writeData(const char*, qint64) override {
    setErrorString(QStringLiteral("No space left on device"));
    return -1;
  }
};

}  // namespace

class CanvasView : public QObject {
  Q_OBJECT
 private slots:
  void init() {
    m_view = std::make_unique<GraphView>();
    m_view->resize(1000, 700);
    m_view->show();
    m_graph = cleave::test::llamaGraph({.layers = 4});
    m_shown = std::make_unique<ShownGraph>(*m_view, m_graph);
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    m_scopes = scopesByPath(*m_graph);
  }
  void cleanup() { m_shown.reset(), m_view.reset(); }

  void firstPictureIsTheModel() {
    const QString text = m_view->visibleText();
    QVERIFY2(text.contains("layers 0–3") && text.contains("linear (lm_head)") && text.contains("→ logits"),
             qPrintable(text));
    QVERIFY(m_view->visibleArea().contains(m_view->scene()->bounds()));
  }

  void plusOpensOneLayerUnderTheCursor() {
    const SceneItem stack = itemTitled(ItemKind::Stack);
    const QPoint button = center(ScenePainter::foldButton(stack, m_view->metrics()));
    const QPointF before = m_view->viewRect(stack).topLeft();
    QSignalSpy changed(m_view.get(), &GraphView::expandedChanged);
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, button);
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady() && changed.count() == 1, kPatience);
    QVERIFY(m_view->isExpanded(m_scopes.at("model.layers.0")));
    QVERIFY(m_view->visibleText().contains("layers 1–3"));
    const SceneItem frame = itemTitled(ItemKind::Frame);
    const QPointF after = m_view->viewRect(frame).topLeft();
    QVERIFY((after - before).manhattanLength() <= 2);
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {},
                      center(ScenePainter::foldButton(frame, m_view->metrics())));
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady() && m_view->visibleText().contains("layers 0–3"), kPatience);
  }

  void listButtonShowsAllLayers() {
    const SceneItem stack = itemTitled(ItemKind::Stack);
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {},
                      center(ScenePainter::listButton(stack, m_view->metrics())));
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady() && m_view->visibleText().contains("layers.3"), kPatience);
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
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
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
      QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
      const auto& items = m_view->scene()->items();
      for (std::size_t i = 0; i < items.size(); ++i)
        for (std::size_t k = i + 1; k < items.size(); ++k)
          if (items[i].parent == items[k].parent)
            QVERIFY(!items[i].rect.adjusted(1, 1, -1, -1).intersects(items[k].rect));
      int inside = 0;
      for (const SceneItem& item : items) {
        if (item.parent == SceneItem::kNone) continue;
        ++inside;
        QVERIFY(items[item.parent].rect.contains(item.rect));
      }
      QVERIFY(inside > 5);
    }
  }

  void unfoldingManyTimesDoesNotGrow() {
    const auto layer = m_scopes.at("model.layers.0");
    for (int i = 0; i < 200; ++i) {
      m_view->expand(layer);
      QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
      m_view->collapse(layer);
      QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    }
    QVERIFY(m_view->visibleText().contains("layers 0–3"));
    QVERIFY(m_view->expandedScopes().empty());
  }

  void withoutHelperTheCanvasStillDraws() {
    GraphView view{LayoutHelper{}};
    view.resize(800, 600);
    const ShownGraph shown(view, m_graph);
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    QVERIFY(view.visibleText().contains("layers 0–3"));
    view.setSplits(nullptr);
    QVERIFY(view.visibleText().isEmpty());
    view.grab();
  }

  void stepsRepaintWithoutLayout() {
    m_shown->place({});
    const Scene* scene = m_view->scene();
    const auto placements = tensorParallel(*m_graph);
    m_shown->place({placements, {}, 1});
    std::vector<graph::NodeId> all;
    for (const auto n : idRange<graph::NodeId>(m_graph->nodes.size())) all.push_back(n);
    m_shown->follow(all);
    m_view->setConflictNodes({all.back()});
    m_view->setCurrentNode(all.back());
    m_view->grab();
    QCOMPARE(m_view->scene(), scene);
  }

  /// Steps, pans and zooms in any order, painted or not in between: the final picture must equal a fresh one.
  void nothingIsLeftStale() {
    m_view->expandAll();
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    const std::uint64_t seed = cleave::test::seed();
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    std::vector<MaybePlacement> placements(m_graph->values.size());
    std::vector<std::optional<rules::Strategy>> strategies(m_graph->nodes.size());
    const PlacementSource placed = [&](graph::ValueId v) { return placements[v.index()]; };
    const StrategySource chosen = [&](graph::NodeId n) { return strategies[n.index()]; };
    m_shown->place({placed, chosen, 2});
    const QPoint middle = m_view->viewport()->rect().center();
    const auto step = [&] {
      std::vector<graph::NodeId> changed;
      for (std::size_t i = 0, count = 1 + below(3); i < count; ++i) {
        const graph::NodeId node(static_cast<std::uint32_t>(below(m_graph->nodes.size())));
        const auto kind = m_graph->node(node).kind;
        if (kind == graph::NodeKind::Call && below(2) == 0)
          strategies[node.index()] = below(2) == 0 ? rules::Strategy::Column : rules::Strategy::Row;
        for (const graph::ValueId v : m_graph->node(node).results) {
          const std::size_t rank = m_graph->shapeOf(v).size(), dim = below(rank + 2);
          placements[v.index()] = dim < rank    ? MaybePlacement(rules::Placement::split(static_cast<int>(dim)))
                                  : dim == rank ? MaybePlacement(rules::Placement::replicated())
                                                : std::nullopt;
        }
        changed.push_back(node);
      }
      m_shown->follow(changed);
    };
    const auto pan = [&](QPoint by) {
      QTest::mousePress(m_view->viewport(), Qt::LeftButton, {}, middle);
      QTest::mouseMove(m_view->viewport(), middle + by);
      QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, {}, middle + by);
    };
    for (std::uint64_t round = 0, rounds = cleave::test::rounds(100); round < rounds; ++round) {
      m_view->zoomTo(0.2 + 0.1 * static_cast<double>(below(12)));
      m_view->reveal(graph::NodeId(static_cast<std::uint32_t>(below(m_graph->nodes.size()))));
      m_view->grab();
      for (int i = 0; i < 12; ++i) {
        const QPoint by(static_cast<int>(below(600)) - 300, static_cast<int>(below(600)) - 300);
        const double zoom = m_view->zoom();
        switch (below(4)) {
          case 0: pan(by), step(), pan(-by); break;
          case 1: pan(by), step(); break;
          case 2: m_view->zoomTo(2 * zoom), step(), m_view->zoomTo(zoom); break;
          default: step(); break;
        }
        if (below(4) == 0) m_view->grab();
      }
      const QImage stepped = m_view->viewport()->grab().toImage();
      m_shown->place({placed, chosen, 2});
      QVERIFY2(cleave::test::looksTheSame(stepped, m_view->viewport()->grab().toImage()),
               qPrintable(QStringLiteral("seed %1, round %2").arg(seed).arg(round)));
    }
  }

  void legendCountsLayersAndFiltersWhenClicked() {
    m_shown->place({tensorParallel(*m_graph), megatron(*m_graph), 2});
    auto* legend = m_view->findChild<Legend*>();
    QVERIFY(legend);
    const QString texts = legend->entryTexts().join("|");
    for (const char* entry : {"column  21", "row  8", "vocab  1", "S1 heads"})
      QVERIFY2(texts.contains(entry), qPrintable(texts));
    const QImage all = pictureOf(*m_view);
    QSignalSpy filtered(legend, &Legend::filterChanged);
    QTest::mouseClick(legend, Qt::LeftButton, {}, legend->entryRect(LayerSplit::Row).center());
    QCOMPARE(filtered.count(), 1);
    QVERIFY(legend->filter().has(LayerSplit::Row) && pictureOf(*m_view) != all);
    QTest::mouseClick(legend, Qt::LeftButton, {}, legend->entryRect(LayerSplit::Row).center());
    QTest::mouseClick(legend, Qt::LeftButton, {}, legend->entryRect(Tint::Dim1).center());
    QVERIFY(legend->filter().has(Tint::Dim1) && !legend->filter().has(LayerSplit::Row));
  }

  /// At any width, with layers and values or with amounts and what changed.
  void nothingOfTheLegendIsCut() {
    m_shown->place({tensorParallel(*m_graph), megatron(*m_graph), 2});
    LegendContent counts = m_view->findChild<Legend*>()->content();
    counts.changed = 1'234;
    LegendContent amounts;
    amounts.scale = {
        QStringLiteral("regret"), {QStringLiteral("0 s"), QStringLiteral("1.25 ms")}, QStringLiteral("folded: sum")};
    amounts.changed = 1'234;
    for (const LegendContent& content : {counts, amounts}) {
      LegendDrawing drawing(Theme::light(), m_view->font());
      drawing.setContent(content);
      for (int width = 300; width < 1400; width += 10) {
        constexpr int kReserved = 180;
        const QSize size(width, drawing.heightFor(width, kReserved));
        drawing.arrange(size, kReserved, {});
        QVERIFY(!drawing.entries().empty());
        for (const auto& entry : drawing.entries())
          QVERIFY2(
              QRect(QPoint(), size).contains(entry.rect),
              qPrintable(QStringLiteral("\"%1\" ends at %2 of %3").arg(entry.text).arg(entry.rect.right()).arg(width)));
      }
    }
  }

  /// At a width of one pixel everything is hidden.
  void unfoldingAllStaysReadable() {
    const auto tall = cleave::test::llamaGraph({.layers = 80});
    m_shown = std::make_unique<ShownGraph>(*m_view, tall);
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    m_view->expandAll();
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    QVERIFY2(m_view->zoom() >= 0.2, qPrintable(QString::number(m_view->zoom())));
    QVERIFY(m_view->visibleText().contains(QLatin1String("input_ids")));
    m_view->fit();
    QVERIFY(m_view->visibleArea().contains(m_view->scene()->bounds()));
  }

  void aGrowingLegendMovesNothing() {
    auto* legend = m_view->findChild<Legend*>();
    const auto heights = [&] {
      std::vector<int> all;
      for (int width = 300; width < 1400; width += 20) all.push_back(legend->heightForWidth(width));
      return all;
    };
    const auto open = heights();
    m_shown->place({tensorParallel(*m_graph), megatron(*m_graph), 2});
    const auto split = heights();
    int width = 0;  // the split model's legend needs one row more than the open one
    for (std::size_t i = 0; i < open.size(); ++i)
      if (split[i] > open[i]) width = 300 + 20 * static_cast<int>(i);
    QVERIFY(width > 0);
    m_shown->place({});
    m_view->resize(width, 700);
    QCoreApplication::processEvents();
    m_view->zoomTo(0.5);
    const auto where = [&] {
      const SceneItem item = operatorTitled("embed_tokens");
      return m_view->viewport()->mapToGlobal(m_view->viewRect(item).topLeft());
    };
    const QPointF before = where();
    const int height = legend->height();
    m_shown->place({tensorParallel(*m_graph), megatron(*m_graph), 2});
    QVERIFY(legend->height() > height);
    QCOMPARE(where(), before);
    m_shown->place({});
    QCOMPARE(where(), before);
    m_view->resize(1400, 700);
    QCoreApplication::processEvents();
    QCOMPARE(legend->height(), legend->heightForWidth(1400));
  }

  void headsFollowTheStep() {
    std::optional<rules::Strategy> strategy;
    const auto placements = tensorParallel(*m_graph);
    const auto embedding = operatorTitled("embed_tokens").node;
    m_shown->place({placements, [&](graph::NodeId n) { return n == embedding ? strategy : std::nullopt; }, 2});
    auto* legend = m_view->findChild<Legend*>();
    QVERIFY(legend->entryTexts().join("|").contains("open  30"));
    strategy = rules::Strategy::Vocab;  // the result's placement stays; only the layer changes
    m_shown->follow(std::vector{embedding});
    QVERIFY(legend->entryTexts().join("|").contains("vocab  1"));
  }

  void enterAndDoubleClickActivateAnOperator() {
    QSignalSpy activated(m_view.get(), &GraphView::nodeActivated);
    const SceneItem embedding = operatorTitled("embed_tokens");
    QTest::mouseDClick(m_view->viewport(), Qt::LeftButton, {}, center(embedding.rect));
    QCOMPARE(activated.count(), 1);
    m_view->selectNode(embedding.node);
    QTest::keyClick(m_view.get(), Qt::Key_Return);
    QCOMPARE(activated.count(), 2);
  }

  /// A click on a chip shows the value's source, and the second click of a double click must not select another box.
  void aDoubleClickOnAChipActivatesWhatItLedTo() {
    const graph::NodeId reader = readerOfAHub(*m_view->model());
    m_view->reveal(reader);
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    QSignalSpy activated(m_view.get(), &GraphView::nodeActivated), clicked(m_view.get(), &GraphView::nodeClicked);
    const auto chip = chipOn(*m_view, reader);
    QVERIFY(chip);
    QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, *chip);
    QCOMPARE(clicked.count(), 1);
    const auto producer = clicked.last().front().value<graph::NodeId>();
    QVERIFY(producer.isValid() && producer != reader);
    QTest::mouseDClick(m_view->viewport(), Qt::LeftButton, {}, *chip);
    QCOMPARE(activated.count(), 1);
    QVERIFY(activated.last().front().value<graph::NodeId>() == producer);
  }

  void theFontSettingScalesTheDrawing() {
    const QSizeF before = m_view->scene()->bounds().size();
    QFont larger = m_view->font();
    larger.setPixelSize(QFontInfo(larger).pixelSize() * 2);
    m_view->setFont(larger);
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    QVERIFY(m_view->scene()->bounds().width() > 1.5 * before.width());
    QVERIFY(m_view->metrics().label.pixelSize() >= 24);
  }

  void theOverviewObeysTheKeyboard() {
    auto* overview = m_view->findChild<Minimap*>();
    QVERIFY(overview && overview->focusPolicy() & Qt::TabFocus);
    m_view->zoomTo(3);
    const QRectF before = m_view->visibleArea();
    QTest::keyClick(overview, Qt::Key_End);
    QVERIFY(m_view->visibleArea().top() > before.top());
    QTest::keyClick(overview, Qt::Key_Home);
    QTest::keyClick(overview, Qt::Key_Down);
    QVERIFY(m_view->visibleArea().top() != before.top());
  }

  void picturesHaveTheLegendAndAnyHeight() {
    m_shown->place({tensorParallel(*m_graph), megatron(*m_graph), 2});
    QVERIFY(m_view->pictureSize().height() > m_view->scene()->bounds().height());
    QBuffer file;
    file.open(QIODevice::ReadWrite);
    const auto stripes = [](QPainter& painter, const QRectF& area, double) {
      for (double y = std::floor(area.top() / 100) * 100; y < area.bottom(); y += 100)
        painter.fillRect(QRectF(0, y, 60, 100), int(y / 100) % 2 == 0 ? Qt::red : Qt::blue);
    };
    const auto note = writePng(file, {60, 70'000}, stripes);
    QVERIFY(note && note->isEmpty());
    const QImage image = QImage::fromData(file.data());
    QCOMPARE(image.size(), QSize(120, 140'000));
    for (int y = 50; y < 140'000; y += 997)
      QCOMPARE(image.pixelColor(60, y), QColor((y / 200) % 2 == 0 ? Qt::red : Qt::blue));
    FullDisk full;
    QVERIFY(full.open(QIODevice::WriteOnly | QIODevice::Unbuffered));
    const auto refused = writePng(full, {10, 10}, stripes);
    QVERIFY(!refused);
    QVERIFY2(refused.error().message.find("No space left") != std::string::npos, refused.error().message.c_str());
  }

  void aPictureTooLargeIsScaledAndSaysSo() {
    QBuffer file;
    file.open(QIODevice::ReadWrite);
    const auto note = writePng(file, {1'000, 1'600'000}, [](QPainter& painter, const QRectF& area, double) {
      painter.fillRect(area, Qt::green);
    });
    QVERIFY(note);
    QCOMPARE(*note,
             QStringLiteral("Drawn at 50 % of full size: at 100 % the picture would have 1,600 million pixels."));
    file.seek(0);
    QCOMPARE(QImageReader(&file).size(), QSize(500, 800'000));
  }

  /// `cleave-bench view` measures the time.
  void manyEqualLayersAreDrawnAndUnfolded() {
    const auto graph = cleave::test::llamaGraph(
        {.layers = 126, .hidden = 16384, .heads = 128, .kvHeads = 8, .intermediate = 53248, .vocab = 128256});
    m_shown = std::make_unique<ShownGraph>(*m_view, graph);
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    m_view->grab();
    const auto folded = m_view->scene()->items().size();
    m_shown->place({tensorParallel(*graph), {}, 1});
    m_view->expandAll();
    QTRY_VERIFY_WITH_TIMEOUT(m_view->isReady(), kPatience);
    QVERIFY(!m_view->scene()->isSimplified());
    QVERIFY(m_view->scene()->items().size() > folded + 126 * 10);
    for (const double zoom : {0.02, 0.1, 0.3, 1.0}) {
      m_view->zoomTo(zoom);
      QCoreApplication::processEvents();
      QVERIFY(!m_view->viewport()->grab().isNull());
    }
  }

  /// Thousands of operators without a module, laid out by the window's own layout.
  void aFlatGraphIsDrawnWithoutAHelper() {
    graph::GraphBuilder builder("flat");
    std::vector<graph::ValueId> values{builder.addInput("x", {graph::DType::Float32, {4, 8}})};
    QRandomGenerator random(7);
    for (int i = 0; i < 6'000; ++i) {
      const auto near = values[values.size() - 1 - random.bounded(quint32(std::min<std::size_t>(6, values.size())))];
      values.push_back(
          builder.addCall("aten::add.Tensor", {values.back(), near}, {{graph::DType::Float32, {4, 8}}})[0]);
    }
    builder.addOutput("y", values.back());
    auto finished = std::move(builder).finish();
    QVERIFY(finished);
    GraphView view{LayoutHelper{}};
    view.resize(1000, 700);
    view.show();
    const ShownGraph shown(view, std::make_shared<const graph::Graph>(std::move(*finished)));
    QVERIFY(!view.isReady());  // computed on another thread
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    QVERIFY(!view.grab().isNull());
    QVERIFY(view.scene()->isSimplified());
    QVERIFY(view.scene()->items().size() > 5'000);
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
  std::unique_ptr<ShownGraph> m_shown;
  std::shared_ptr<const graph::Graph> m_graph;
  std::unordered_map<std::string, graph::ScopeId> m_scopes;
};

int main(int argc, char** argv) { return canvasTestMain<CanvasView>(argc, argv); }
#include "tst_canvas_view.moc"
