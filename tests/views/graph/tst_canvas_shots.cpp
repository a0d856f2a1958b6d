// Pictures of the canvas for people: CLEAVE_SHOTS=folder tst_canvas_shots. Without the variable it does nothing.
#include "tests/views/graph/canvas_support.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::test;

class CanvasShots : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() {
    m_folder = qEnvironmentVariable("CLEAVE_SHOTS");
    if (m_folder.isEmpty()) QSKIP("set CLEAVE_SHOTS to a folder to get pictures");
  }
  void shots() {
    GraphView view;
    view.resize(1280, 800);
    view.show();
    auto graph = cleave::test::llamaGraph({.layers = 32,
                                           .hidden = 4096,
                                           .heads = 32,
                                           .kvHeads = 8,
                                           .intermediate = 14336,
                                           .vocab = 128256,
                                           .sequence = 128});
    ShownGraph shown(view, graph);
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    shot(view, "01-unsolved");
    shown.place({tensorParallel(*graph), megatron(*graph), 4});
    plan::Plan plan;
    plan.spec.ranks = 4;
    for (const auto v : idRange<graph::ValueId>(graph->values.size())) {
      const std::string& path = graph->scope(graph->node(graph->value(v).producer).scope).path;
      if (path.ends_with("o_proj") || path.ends_with("down_proj"))
        if (graph->node(graph->value(v).producer).kind == graph::NodeKind::Call)
          plan.collectives.push_back({graph->value(v).name, rules::CollectiveKind::AllReduce, 4 << 20, {}});
    }
    view.setPlan(&plan);
    shot(view, "02-folded");
    auto scopes = scopesByPath(*graph);
    view.expand(scopes.at("model.layers.0"));
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    view.fit();
    shot(view, "03-layer");
    view.expand(scopes.at("model.layers.0.self_attn"));
    view.expand(scopes.at("model.layers.0.mlp"));
    view.expand(scopes.at("model.layers.0.input_layernorm"));
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    view.fit();
    shot(view, "04-layer-open");
    for (const auto n : idRange<graph::NodeId>(graph->nodes.size()))
      if (graph->scope(graph->node(n).scope).path == "model.layers.0.self_attn.q_proj" &&
          graph->node(n).kind == graph::NodeKind::Call)
        m_q = n;
    view.reveal(m_q);
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    view.selectNode(m_q);
    view.zoomTo(1);
    shot(view, "05-attention");
    view.zoomTo(1.8);
    shot(view, "06-deep");
    view.setConflictNodes({m_q});
    view.setCurrentNode(m_q);
    view.setBreakpoints({m_q});
    view.zoomTo(1);
    view.setTheme(Theme::darkTheme());
    shot(view, "07-dark-conflict");
    view.setTheme(Theme::light());
    view.expand(scopes.at("model.layers"));
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    view.fit();
    shot(view, "08-list");
    view.expandAll();
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    view.fit();
    shot(view, "09-all");
    view.zoomTo(0.15);
    shot(view, "10-far");
    view.zoomTo(0.4);
    shot(view, "11-middle");
    view.setHelpersFolded(false);
  }

 private:
  void shot(GraphView& view, const QString& name) {
    QCoreApplication::processEvents();
    view.grab().save(m_folder + QLatin1Char('/') + name + QStringLiteral(".png"));
  }
  QString m_folder;
  graph::NodeId m_q;
};

int main(int argc, char** argv) { return canvasTestMain<CanvasShots>(argc, argv); }
#include "tst_canvas_shots.moc"
