#pragma once
/// The picture as data: every visible box and line in world pixels (100 %), made from a model, its fold state, and
/// layouts.
///
/// Boxes are in preorder (a frame before its content), so painting in order is correct and `subtreeEnd` skips a frame.
/// Equal layers share one layout, so a scene costs only copies and offsets. Immutable once made.
#include <QPointF>
#include <QRectF>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "views/graph/layout/layout.h"
#include "views/graph/model/graph_model.h"
#include "views/graph/model/labels.h"

namespace cleave::views {

/// The user's unfolded modules. Equal neighbours of a list are one stack, except open or `loose` ones.
struct FoldState {
  std::set<ModuleId> open;
  std::set<ModuleId> loose;
  bool isOpen(ModuleId id) const { return open.contains(id); }
  bool operator==(const FoldState&) const = default;
};

enum class ItemKind : std::uint8_t { Operator, Input, Output, Folded, Stack, Frame };

struct SceneItem {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  ItemKind kind = ItemKind::Operator;
  std::uint16_t depth = 0;    ///< frames around it
  bool isSimplified = false;  ///< a Frame with the built-in layout
  QRectF rect;
  std::uint32_t parent = kNone;  ///< the frame around it
  std::uint32_t subtreeEnd = 0;  ///< first item after its content
  NodeId node;                   ///< Operator, Input
  int output = -1;               ///< Output
  ModuleId module, lastModule;   ///< Folded, Frame: equal; Stack: first and last
};

struct SceneEdge {
  std::uint32_t firstPoint = 0, pointCount = 0;
  std::uint32_t firstValue = 0, valueCount = 0;
  std::uint32_t from = SceneItem::kNone, to = SceneItem::kNone;  ///< kNone: a port of `frame`
  std::uint32_t frame = SceneItem::kNone;                        ///< the frame around it
  QRectF bounds;
};

/// Uniform grid over rectangles. It returns those that may touch an area.
class Grid {
 public:
  void build(const QRectF& bounds, std::span<const QRectF> rects);
  /// Ascending, without duplicates.
  void query(const QRectF& area, std::vector<std::uint32_t>& out) const;

 private:
  QPoint cellOf(const QPointF& p) const;
  QRectF m_bounds;
  double m_cell = 512;
  int m_columns = 0, m_rows = 0;
  std::uint32_t m_count = 0;
  std::vector<std::uint32_t> m_start, m_items;
  mutable std::vector<std::uint32_t> m_stamp;
  mutable std::uint32_t m_round = 0;
};

class Scene {
 public:
  const std::vector<SceneItem>& items() const { return m_items; }
  const std::vector<SceneEdge>& edges() const { return m_edges; }
  std::span<const QPointF> points(const SceneEdge& e) const { return {m_points.data() + e.firstPoint, e.pointCount}; }
  std::span<const ValueId> values(const SceneEdge& e) const { return {m_values.data() + e.firstValue, e.valueCount}; }
  const QRectF& bounds() const { return m_bounds; }
  bool isSimplified() const { return m_isSimplified; }

  void itemsIn(const QRectF& area, std::vector<std::uint32_t>& out) const { m_itemGrid.query(area, out); }
  void edgesIn(const QRectF& area, std::vector<std::uint32_t>& out) const { m_edgeGrid.query(area, out); }
  /// The innermost item at a point. kNone: the ground.
  std::uint32_t itemAt(const QPointF& p) const;

  /// The item that shows the node or module: itself, or the folded module or stack around it. kNone: not drawn.
  std::uint32_t itemOf(const GraphModel& model, NodeId node) const;
  std::uint32_t itemOf(const GraphModel& model, ModuleId module) const;
  std::uint32_t outputItem(int output) const;

 private:
  friend class SceneMaker;
  std::vector<SceneItem> m_items;
  std::vector<SceneEdge> m_edges;
  std::vector<QPointF> m_points;
  std::vector<ValueId> m_values;
  std::unordered_map<std::uint32_t, std::uint32_t> m_nodeItem, m_moduleItem;
  std::unordered_map<int, std::uint32_t> m_outputItem;
  QRectF m_bounds;
  bool m_isSimplified = false;
  Grid m_itemGrid, m_edgeGrid;
};

/// Null while the layout is not known (it has been requested).
using LayoutSource = std::function<std::shared_ptr<const LayoutResult>(const LayoutRequest&)>;

/// The scene, or null while layouts are missing. All layouts that can be requested by then have been requested.
std::shared_ptr<const Scene> makeScene(const GraphModel& model, const FoldState& folds, Labels& labels,
                                       const LayoutSource& layouts);

}  // namespace cleave::views
