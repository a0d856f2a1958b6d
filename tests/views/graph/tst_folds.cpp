// Open and closed modules of the canvas. No window and no layout.
#include <QtTest>

#include "tests/support/llama_graph.h"
#include "views/graph/model/graph_model_builder.h"
#include "views/graph/view/folds.h"

using namespace cleave;
using namespace cleave::views;

class TestFolds : public QObject {
  Q_OBJECT
 private slots:
  void init() {
    m_graph = cleave::test::llamaGraph({.layers = 4});
    m_model = std::make_unique<GraphModel>(makeGraphModel(std::make_shared<const ModuleTree>(m_graph)));
    m_folds = {};
  }

  void expandOpensTheModulesAround() {
    m_folds.expand(*m_model, scope("model.layers.1.self_attn"));
    QVERIFY(m_folds.isExpanded(*m_model, scope("model.layers.1.self_attn")));
    QVERIFY(m_folds.isExpanded(*m_model, scope("model.layers.1")));
    QVERIFY(!m_folds.isExpanded(*m_model, scope("model.layers.0")));
    QCOMPARE(m_folds.expandedScopes(*m_model).size(), std::size_t(2));
    m_folds.collapse(*m_model, scope("model.layers.1"));
    QVERIFY(!m_folds.isExpanded(*m_model, scope("model.layers.1")));
  }

  void aDissolvedListUnstacksItsMembers() {
    m_folds.expand(*m_model, scope("model.layers"));
    QVERIFY(m_folds.state().open.empty());
    for (const char* path : {"model.layers.0", "model.layers.3"})
      QVERIFY(m_folds.state().loose.contains(m_model->moduleOf(scope(path))));
    m_folds.collapse(*m_model, scope("model.layers"));
    QVERIFY(m_folds.state() == FoldState());
  }

  void toggleOpensAndCloses() {
    SceneItem stack;
    stack.kind = ItemKind::Stack;
    stack.module = m_model->moduleOf(scope("model.layers.0"));
    stack.lastModule = m_model->moduleOf(scope("model.layers.3"));
    m_folds.toggle(*m_model, stack, false);
    QVERIFY(m_folds.state().isOpen(stack.module) && m_folds.state().loose.size() == 1);
    m_folds.toggle(*m_model, stack, false);
    QVERIFY(m_folds.state() == FoldState());
    m_folds.toggle(*m_model, stack, true);
    QVERIFY(m_folds.state().open.empty() && m_folds.state().loose.size() == 4);
  }

  void expandedScopesCanBeOpenedAgain() {
    m_folds.expand(*m_model, scope("model.layers.1.mlp"));
    m_folds.expand(*m_model, scope("model.layers.2"));
    const std::vector<ScopeId> scopes = m_folds.expandedScopes(*m_model);
    QVERIFY(std::is_sorted(scopes.begin(), scopes.end()));
    const GraphModel other =
        makeGraphModel(std::make_shared<const ModuleTree>(m_graph), {.foldNoise = false});  // other module ids
    Folds again;
    again.open(other, scopes);
    QCOMPARE(again.expandedScopes(other), scopes);
  }

  void allCanBeExpandedAndCollapsed() {
    m_folds.expandAll(*m_model);
    for (const auto id : idRange<ModuleId>(m_model->moduleCount()))
      QCOMPARE(m_folds.state().isOpen(id), id != m_model->root() && m_model->module(id).kind == ModuleKind::Scope);
    m_folds.collapseAll();
    QVERIFY(m_folds.state() == FoldState());
  }

  void followClosesWhatItOpened() {
    const NodeId first = nodeIn("model.layers.0.self_attn."), second = nodeIn("model.layers.2.self_attn.");
    QVERIFY(m_folds.follow(*m_model, first));
    QVERIFY(!m_folds.follow(*m_model, first));  // nothing new
    QVERIFY(m_folds.isExpanded(*m_model, scope("model.layers.0.self_attn")));
    QVERIFY(m_folds.follow(*m_model, second));
    QVERIFY(!m_folds.isExpanded(*m_model, scope("model.layers.0")));
    QVERIFY(m_folds.isExpanded(*m_model, scope("model.layers.2.self_attn")));
  }

  void followKeepsWhatTheUserOpened() {
    const NodeId first = nodeIn("model.layers.0.self_attn."), second = nodeIn("model.layers.2.self_attn.");
    m_folds.expand(*m_model, scope("model.layers.0"));
    m_folds.follow(*m_model, first);
    m_folds.follow(*m_model, second);
    QVERIFY(m_folds.isExpanded(*m_model, scope("model.layers.0")));
    QVERIFY(!m_folds.isExpanded(*m_model, scope("model.layers.0.self_attn")));
    m_folds.expand(*m_model, scope("model.layers.3"));  // from here on, all open modules are the user's
    m_folds.follow(*m_model, first);
    QVERIFY(m_folds.isExpanded(*m_model, scope("model.layers.2.self_attn")));
  }

  void revealOpensForTheUser() {
    const NodeId first = nodeIn("model.layers.0.self_attn."), second = nodeIn("model.layers.2.self_attn.");
    QVERIFY(m_folds.reveal(*m_model, first));
    QVERIFY(!m_folds.reveal(*m_model, first));
    m_folds.follow(*m_model, second);
    QVERIFY(m_folds.isExpanded(*m_model, scope("model.layers.0.self_attn")));
    const ModuleId mlp = m_model->moduleOf(scope("model.layers.1.mlp"));
    QVERIFY(m_folds.reveal(*m_model, mlp));
    QVERIFY(m_folds.isExpanded(*m_model, scope("model.layers.1")));
    QVERIFY(!m_folds.state().isOpen(mlp));
  }

 private:
  ScopeId scope(const char* path) const { return m_graph->findScope(path); }
  /// A drawn operator in a scope that starts with this path.
  NodeId nodeIn(std::string_view prefix) const {
    for (const auto id : idRange<NodeId>(m_graph->nodes.size()))
      if (m_graph->node(id).kind == graph::NodeKind::Call && m_model->shownNode(id) == id &&
          m_graph->scope(m_graph->node(id).scope).path.starts_with(prefix))
        return id;
    return {};
  }

  std::shared_ptr<const graph::Graph> m_graph;
  std::unique_ptr<GraphModel> m_model;
  Folds m_folds;
};

QTEST_GUILESS_MAIN(TestFolds)
#include "tst_folds.moc"
