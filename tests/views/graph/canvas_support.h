#pragma once
/// Shared by the canvas tests: a Llama-like graph, the placements of a tensor-parallel solution, and a main() whose
/// program is its own layout helper.
#include <QApplication>
#include <QFileInfo>
#include <QMouseEvent>
#include <QTest>

#include "tests/support/llama_graph.h"
#include "tests/support/patience.h"
#include "views/graph/layout/layout_worker.h"
#include "views/graph/view/graph_view.h"

namespace cleave::views::test {

using cleave::test::kPatience;

/// Splits like a tensor-parallel plan: q, k, v, gate, up column; o, down row. It goes by names and shapes, which is
/// enough for pictures.
inline PlacementSource tensorParallel(const graph::Graph& graph) {
  auto all = std::make_shared<std::vector<MaybePlacement>>(graph.values.size(), rules::Placement::replicated());
  const auto ends = [](const std::string& name, std::initializer_list<const char*> list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const char* part) { return name.find(part) != std::string::npos; });
  };
  for (const auto v : idRange<graph::ValueId>(graph.values.size())) {
    const graph::Value& value = graph.value(v);
    const graph::Node& node = graph.node(value.producer);
    const std::string& path = graph.scope(node.scope).path;
    auto& placement = (*all)[v.index()];
    if (node.kind == graph::NodeKind::Parameter) {
      if (ends(value.name, {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "lm_head", "embed_tokens"}))
        placement = rules::Placement::split(0);
      if (ends(value.name, {"o_proj", "down_proj"})) placement = rules::Placement::split(1);
      continue;
    }
    if (node.kind != graph::NodeKind::Call || ends(path, {"o_proj", "down_proj"})) continue;
    const auto rank = static_cast<int>(value.type.shape.size());
    if (ends(path, {"q_proj", "k_proj", "v_proj", "mlp", "lm_head"}))
      placement = rules::Placement::split(rank - 1);
    else if (ends(path, {"self_attn"}))
      placement = rules::Placement::split(rank == 4 ? 1 : rank - 1);
  }
  return [all](graph::ValueId v) { return (*all)[v.index()]; };
}

/// The strategies for `tensorParallel`: column, row and vocab as in Megatron-LM.
inline StrategySource megatron(const graph::Graph& graph) {
  return [&graph](graph::NodeId node) -> std::optional<rules::Strategy> {
    const auto layer = graph::layerShape(graph, node);
    if (!layer) return std::nullopt;
    if (layer->kind != graph::LayerKind::Linear) return rules::Strategy::Vocab;
    const std::string name = graph::layerName(graph, node);
    return name.ends_with("o_proj") || name.ends_with("down_proj") ? rules::Strategy::Row : rules::Strategy::Column;
  };
}

/// The tree of a graph, for models without a session.
inline std::shared_ptr<const ModuleTree> treeOf(std::shared_ptr<const graph::Graph> graph) {
  return std::make_shared<const ModuleTree>(std::move(graph));
}

/// The first operator that reads a hub.
inline graph::NodeId readerOfAHub(const GraphModel& model) {
  for (const auto node : idRange<graph::NodeId>(model.graph().nodes.size()))
    if (!model.trimmings(node).hubs.empty()) return node;
  return {};
}

/// A point on a visible operator where the pointer becomes a hand: over a hub's chip.
inline std::optional<QPoint> chipOn(const GraphView& view, graph::NodeId reader) {
  for (const SceneItem& item : view.scene()->items()) {
    if (item.node != reader) continue;
    const QPointF corner = (item.rect.topLeft() - view.visibleArea().topLeft()) * view.zoom();
    const QRect at = QRectF(corner, item.rect.size() * view.zoom()).toRect();
    for (int y = at.top(); y < at.bottom(); y += 3) {
      for (int x = at.left(); x < at.right(); x += 5) {
        QMouseEvent move(QEvent::MouseMove, QPointF(x, y), view.viewport()->mapToGlobal(QPointF(x, y)), Qt::NoButton,
                         Qt::NoButton, Qt::NoModifier);
        QApplication::sendEvent(view.viewport(), &move);
        if (view.viewport()->cursor().shape() == Qt::PointingHandCursor) return QPoint(x, y);
      }
    }
  }
  return std::nullopt;
}

/// A graph in a view with its split: the counterpart of a session's opened model.
class ShownGraph {
 public:
  ShownGraph(GraphView& view, std::shared_ptr<const graph::Graph> graph)
      : m_view(view), m_counts(std::make_shared<SplitCounts>(treeOf(std::move(graph)))) {
    m_view.setSplits(m_counts);
  }
  void place(SplitSource source) {
    m_counts->reset(std::move(source));
    m_view.showSplits();
  }
  void follow(std::span<const graph::NodeId> nodes) { m_view.showSplits(m_counts->update(nodes)); }

 private:
  GraphView& m_view;
  std::shared_ptr<SplitCounts> m_counts;
};

/// The whole drawing with its legend, at 100 %.
inline QImage pictureOf(GraphView& view) {
  QImage image(view.pictureSize().toSize(), QImage::Format_RGB32);
  QPainter painter(&image);
  view.paintPicture(painter, QRectF({}, view.pictureSize()), 1);
  return image;
}

inline std::unordered_map<std::string, graph::ScopeId> scopesByPath(const graph::Graph& graph) {
  std::unordered_map<std::string, graph::ScopeId> byPath;
  for (const auto s : idRange<graph::ScopeId>(graph.scopes.size())) byPath[graph.scope(s).path] = s;
  return byPath;
}

/// main() of a canvas test. With --layout-worker it is the helper, else it runs the tests with itself as helper.
template <class Test>
int canvasTestMain(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--layout-worker") return layoutWorkerMain();
  QApplication app(argc, argv);
  qputenv("CLEAVE_LAYOUT_WORKER", QFileInfo(argv[0]).absoluteFilePath().toLocal8Bit());
  Test test;
  return QTest::qExec(&test, argc, argv);
}

}  // namespace cleave::views::test
