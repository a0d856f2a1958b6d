// Every collective of a plan is drawn exactly once in any state of folding.
#include <QTest>

#include <map>
#include <random>

#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "tests/support/need.h"
#include "tests/support/seeds.h"
#include "views/graph/layout/layout.h"
#include "views/graph/model/graph_model_builder.h"
#include "views/graph/model/placement_board.h"
#include "views/graph/scene/scene.h"

using namespace cleave;
using namespace cleave::views;

namespace {

std::shared_ptr<const LayoutResult> builtIn(const LayoutRequest& request) {
  return std::make_shared<const LayoutResult>(layeredLayout(request));
}

std::map<ValueId, std::vector<CollectiveBadge>> badgesOf(const plan::Plan& plan, const graph::Graph& graph) {
  std::map<ValueId, std::vector<CollectiveBadge>> badges;
  for (const plan::CollectivePlan& collective : plan.collectives)
    badges[graph.findValue(collective.after)].push_back({collective.kind, collective.bytes});
  return badges;
}

/// The content of a scene's boxes: badges at operators, counts on folded modules.
std::size_t drawn(const Scene& scene, const PlacementBoard& board) {
  std::size_t count = 0;
  for (const SceneItem& item : scene.items()) {
    if (item.kind == ItemKind::Folded || item.kind == ItemKind::Stack)
      count += board.tally(item.module, item.lastModule).collectives;
    else if (const auto* badges = item.node.isValid() ? board.collectives(item.node) : nullptr)
      count += badges->size();
  }
  return count;
}

}  // namespace

class DrawnCollectives : public QObject {
  Q_OBJECT
 private slots:
  void areThoseOfThePlanHoweverItIsFolded_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<solve::Engine>("engine");
    QTest::addColumn<int>("ranks");
    for (const char* model : {"models/llama", "models/llama-tied", "models/qwen2", "decoders/ministral"}) {
      for (const int ranks : {2, 4}) {
        QTest::addRow("%s reference %d", model, ranks) << model << solve::Engine::Reference << ranks;
        QTest::addRow("%s learning %d", model, ranks) << model << solve::Engine::Learning << ranks;
      }
    }
  }
  void areThoseOfThePlanHoweverItIsFolded() {
    QFETCH(QString, model);
    QFETCH(solve::Engine, engine);
    QFETCH(int, ranks);
    const auto opened = cleave::test::need(pipeline::openModel(CLEAVE_TEST_DATA "/" + model.toStdString(), {}, {}));
    const auto solved = cleave::test::need(pipeline::solveModel(opened, {.ranks = ranks, .engine = engine}));
    const auto plan = cleave::test::need(pipeline::planModel(opened, solved));
    const auto badges = badgesOf(*plan, *opened->aten);
    QVERIFY(!plan->collectives.empty() && !badges.contains(ValueId()));
    const auto tree = std::make_shared<const ModuleTree>(opened->aten);
    const SplitCounts counts(tree);
    std::mt19937 random(cleave::test::seed());
    for (const bool foldNoise : {true, false}) {
      const GraphModel drawing = makeGraphModel(tree, {.foldNoise = foldNoise});
      PlacementBoard board(drawing, counts);
      board.setCollectives(badges);
      const Metrics metrics;
      Labels labels(drawing, metrics);
      for (int round = 0; round < 12; ++round) {  // the first all folded, the last all open
        FoldState folds;
        for (const ModuleId id : idRange<ModuleId>(drawing.moduleCount()))
          if (id != drawing.root() && static_cast<int>(random() % 11) < round) folds.open.insert(id);
        const auto scene = makeScene(drawing, folds, labels, builtIn);
        QCOMPARE(drawn(*scene, board), plan->collectives.size());
      }
    }
  }
};

QTEST_MAIN(DrawnCollectives)
#include "tst_drawn_collectives.moc"
