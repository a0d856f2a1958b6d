#include "views/graph/scene/scene.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cleave::views {

// ---- Grid

void Grid::build(const QRectF& bounds, std::span<const QRectF> rects) {
  m_bounds = bounds;
  m_count = static_cast<std::uint32_t>(rects.size());
  m_cell = std::max({256.0, bounds.width() / 512, bounds.height() / 2048});
  m_columns = std::max(1, static_cast<int>(bounds.width() / m_cell) + 1);
  m_rows = std::max(1, static_cast<int>(bounds.height() / m_cell) + 1);
  m_start.assign(static_cast<std::size_t>(m_columns) * m_rows + 1, 0);
  const auto forCells = [&](const QRectF& rect, auto&& visit) {
    const QPoint a = cellOf(rect.topLeft()), b = cellOf(rect.bottomRight());
    for (int y = a.y(); y <= b.y(); ++y)
      for (int x = a.x(); x <= b.x(); ++x) visit(static_cast<std::size_t>(y) * m_columns + x);
  };
  for (const QRectF& rect : rects) forCells(rect, [&](std::size_t cell) { ++m_start[cell + 1]; });
  for (std::size_t i = 1; i < m_start.size(); ++i) m_start[i] += m_start[i - 1];
  m_items.resize(m_start.back());
  std::vector<std::uint32_t> next(m_start.begin(), m_start.end() - 1);
  for (std::uint32_t i = 0; i < rects.size(); ++i)
    forCells(rects[i], [&](std::size_t cell) { m_items[next[cell]++] = i; });
  m_stamp.assign(rects.size(), 0);
  m_round = 0;
}

QPoint Grid::cellOf(const QPointF& p) const {
  const auto cell = [&](double at, int count) {
    return static_cast<int>(std::clamp(std::floor(at / m_cell), 0.0, count - 1.0));
  };
  return {cell(p.x() - m_bounds.left(), m_columns), cell(p.y() - m_bounds.top(), m_rows)};
}

void Grid::query(const QRectF& area, std::vector<std::uint32_t>& out) const {
  out.clear();
  if (m_count == 0 || !area.intersects(m_bounds.adjusted(-1, -1, 1, 1))) return;
  const QPoint a = cellOf(area.topLeft()), b = cellOf(area.bottomRight());
  if ((b.x() - a.x() + 1.0) * (b.y() - a.y() + 1.0) > 0.5 * m_columns * m_rows) {
    out.resize(m_count);
    for (std::uint32_t i = 0; i < m_count; ++i) out[i] = i;
    return;
  }
  ++m_round;
  for (int y = a.y(); y <= b.y(); ++y) {
    for (int x = a.x(); x <= b.x(); ++x) {
      const std::size_t cell = static_cast<std::size_t>(y) * m_columns + x;
      for (std::uint32_t i = m_start[cell]; i < m_start[cell + 1]; ++i) {
        if (m_stamp[m_items[i]] == m_round) continue;
        m_stamp[m_items[i]] = m_round;
        out.push_back(m_items[i]);
      }
    }
  }
  std::sort(out.begin(), out.end());
}

// ---- Scene

std::uint32_t Scene::itemAt(const QPointF& p) const {
  std::vector<std::uint32_t> near;
  m_itemGrid.query(QRectF(p, QSizeF(0.1, 0.1)), near);
  for (auto it = near.rbegin(); it != near.rend(); ++it)
    if (m_items[*it].rect.contains(p)) return *it;
  return SceneItem::kNone;
}

std::uint32_t Scene::itemOf(const GraphModel& model, NodeId node) const {
  const NodeId shown = model.shownNode(node);
  if (!shown.isValid()) return SceneItem::kNone;
  if (const auto item = m_nodeItem.find(shown.raw()); item != m_nodeItem.end()) return item->second;
  return itemOf(model, model.moduleOf(shown));
}

std::uint32_t Scene::itemOf(const GraphModel& model, ModuleId module) const {
  for (; module.isValid() && module != model.root(); module = model.module(module).parent)
    if (const auto item = m_moduleItem.find(module.raw()); item != m_moduleItem.end()) return item->second;
  return SceneItem::kNone;
}

std::uint32_t Scene::outputItem(int output) const {
  const auto item = m_outputItem.find(output);
  return item == m_outputItem.end() ? SceneItem::kNone : item->second;
}

// ---- SceneMaker

namespace {

constexpr double kFramePad = 14;  // between a frame and its content
constexpr double kSceneMargin = 24;

/// A child in the picture: a member, a run of equal members, or a port.
struct Entry {
  ItemKind kind = ItemKind::Operator;
  Member member;
  ModuleId last;
  int content = -1;  ///< Frame: index into SceneMaker's contents
};

/// One open module: its entries, their layout, and the places where values cross its border.
struct Content {
  ModuleId module;
  std::vector<Entry> entries;
  std::vector<ValueId> ins, outs;  ///< one port each
  LayoutRequest request;           ///< boxes: entries, ins, outs
  std::vector<std::vector<ValueId>> edgeValues;
  std::shared_ptr<const LayoutResult> layout;
  double left = 0, top = 0;  ///< position of the layout inside the frame
  QSizeF size;               ///< of the frame
};

}  // namespace

class SceneMaker {
 public:
  SceneMaker(const GraphModel& model, const FoldState& folds, Labels& labels, const LayoutSource& layouts)
      : m_model(model), m_folds(folds), m_labels(labels), m_layouts(layouts), m_scene(std::make_shared<Scene>()) {}

  std::shared_ptr<const Scene> make() {
    const int root = arrange(m_model.root());
    if (root < 0) return nullptr;
    const Content& content = m_contents[root];
    place(content, QPointF(kSceneMargin, kSceneMargin), SceneItem::kNone, 0);
    m_scene->m_bounds = QRectF(QPointF(0, 0), content.layout->size + QSizeF(2 * kSceneMargin, 2 * kSceneMargin));
    std::vector<QRectF> rects;
    for (const SceneItem& item : m_scene->m_items) rects.push_back(item.rect);
    m_scene->m_itemGrid.build(m_scene->m_bounds, rects);
    rects.clear();
    for (const SceneEdge& edge : m_scene->m_edges) rects.push_back(edge.bounds);
    m_scene->m_edgeGrid.build(m_scene->m_bounds, rects);
    return m_scene;
  }

 private:
  bool canStack(ModuleId id) const {
    const Module& module = m_model.module(id);
    return module.listIndex >= 0 && !m_folds.isOpen(id) && !m_folds.loose.contains(id);
  }

  /// Content of an open module with all open modules inside. -1 while a layout is missing: all children are visited
  /// first, so that all missing layouts are requested at once.
  int arrange(ModuleId id) {
    Content content;
    content.module = id;
    const Module& module = m_model.module(id);
    std::vector<std::uint32_t> entryOf(module.members.size());
    bool isMissing = false;
    for (std::size_t i = 0; i < module.members.size(); ++i) {
      const Member& member = module.members[i];
      Entry entry{ItemKind::Operator, member, member.module, -1};
      if (member.module.isValid()) {
        if (m_folds.isOpen(member.module)) {
          entry.kind = ItemKind::Frame;
          entry.content = arrange(member.module);
          isMissing |= entry.content < 0;
        } else if (joinsStack(content.entries, member.module)) {
          content.entries.back().kind = ItemKind::Stack;
          content.entries.back().last = member.module;
          entryOf[i] = static_cast<std::uint32_t>(content.entries.size() - 1);
          continue;
        } else {
          entry.kind = ItemKind::Folded;
        }
      } else if (member.output >= 0) {
        entry.kind = ItemKind::Output;
      } else if (m_model.graph().node(member.node).kind == graph::NodeKind::Input) {
        entry.kind = ItemKind::Input;
      }
      entryOf[i] = static_cast<std::uint32_t>(content.entries.size());
      content.entries.push_back(entry);
    }
    if (isMissing) return -1;
    addBoxes(content);
    addEdges(content, module, entryOf);
    content.layout = m_layouts(content.request);
    if (!content.layout) return -1;
    frame(content);
    m_contents.push_back(std::move(content));
    return static_cast<int>(m_contents.size() - 1);
  }

  bool joinsStack(const std::vector<Entry>& entries, ModuleId id) const {
    if (entries.empty() || !canStack(id)) return false;
    const Entry& before = entries.back();
    if ((before.kind != ItemKind::Folded && before.kind != ItemKind::Stack) || !canStack(before.last)) return false;
    return m_model.continuesStack(before.last, id);
  }

  void addBoxes(Content& content) {
    for (const Entry& entry : content.entries) {
      LayoutBox box;
      QSizeF size;
      switch (entry.kind) {
        case ItemKind::Operator:
        case ItemKind::Input: size = m_labels.nodeSize(entry.member.node); break;
        case ItemKind::Output: size = m_labels.outputSize(entry.member.output); break;
        case ItemKind::Folded:
        case ItemKind::Stack: size = m_labels.moduleSize(entry.member.module, entry.last); break;
        case ItemKind::Frame: {
          const Content& inner = m_contents[entry.content];
          size = inner.size;
          box.inPorts = portsOf(inner, inner.entries.size(), inner.ins.size());
          box.outPorts = portsOf(inner, inner.entries.size() + inner.ins.size(), inner.outs.size());
          break;
        }
      }
      box.width = static_cast<float>(size.width());
      box.height = static_cast<float>(size.height());
      content.request.boxes.push_back(std::move(box));
    }
  }

  std::vector<float> portsOf(const Content& inner, std::size_t first, std::size_t count) const {
    std::vector<float> ports;
    for (std::size_t i = first; i < first + count; ++i)
      ports.push_back(
          static_cast<float>(inner.left + inner.layout->positions[i].x() + inner.request.boxes[i].width / 2));
    return ports;
  }

  void addEdges(Content& content, const Module& module, const std::vector<std::uint32_t>& entryOf) {
    std::map<std::tuple<std::uint32_t, std::uint32_t, int, int>, std::vector<ValueId>> merged;
    const auto port = [](std::vector<ValueId>& values, ValueId v) {
      const auto at = std::find(values.begin(), values.end(), v);
      if (at != values.end()) return static_cast<std::uint32_t>(at - values.begin());
      values.push_back(v);
      return static_cast<std::uint32_t>(values.size() - 1);
    };
    for (const MemberEdge& e : module.edges) {  // ports first, so that boxes have their final indices
      if (e.from == MemberEdge::kOutside) port(content.ins, e.value);
      if (e.to == MemberEdge::kOutside) port(content.outs, e.value);
    }
    const auto base = static_cast<std::uint32_t>(content.entries.size());
    const auto innerPort = [&](std::uint32_t entry, ValueId v, bool isIn) {
      if (content.entries[entry].kind != ItemKind::Frame) return -1;
      const Content& inner = m_contents[content.entries[entry].content];
      const auto& values = isIn ? inner.ins : inner.outs;
      const auto at = std::find(values.begin(), values.end(), v);
      return at == values.end() ? -1 : static_cast<int>(at - values.begin());
    };
    for (const MemberEdge& e : module.edges) {
      const bool enters = e.from == MemberEdge::kOutside, leaves = e.to == MemberEdge::kOutside;
      const std::uint32_t from = enters ? base + port(content.ins, e.value) : entryOf[e.from];
      const std::uint32_t to =
          leaves ? base + static_cast<std::uint32_t>(content.ins.size()) + port(content.outs, e.value) : entryOf[e.to];
      if (from == to) continue;  // inside a stack
      merged[{from, to, enters ? -1 : innerPort(from, e.value, false), leaves ? -1 : innerPort(to, e.value, true)}]
          .push_back(e.value);
    }
    for (std::size_t i = 0; i < content.ins.size() + content.outs.size(); ++i)
      content.request.boxes.push_back(
          {8, 1, i < content.ins.size() ? LayoutBox::Rank::Top : LayoutBox::Rank::Bottom, {}, {}});
    for (auto& [key, values] : merged) {
      const auto [from, to, fromPort, toPort] = key;
      content.request.edges.push_back({from, to, fromPort, toPort});
      content.edgeValues.push_back(std::move(values));
    }
  }

  void frame(Content& content) const {
    const Metrics& metrics = m_labels.metrics();
    const QSizeF inner = content.layout->size;
    const double width = std::max(std::ceil(inner.width()) + 2 * kFramePad, m_labels.frameWidth(content.module));
    content.left = std::round((width - inner.width()) / 2);
    content.top = metrics.header + (content.ins.empty() ? kFramePad : 0);
    content.size = QSizeF(width, content.top + std::ceil(inner.height()) + (content.outs.empty() ? kFramePad : 0));
  }

  void place(const Content& content, QPointF origin, std::uint32_t parent, std::uint16_t depth) {
    Scene& scene = *m_scene;
    std::vector<std::uint32_t> itemOf(content.request.boxes.size(), SceneItem::kNone);
    for (std::size_t i = 0; i < content.entries.size(); ++i) {
      const Entry& entry = content.entries[i];
      const LayoutBox& box = content.request.boxes[i];
      const auto index = static_cast<std::uint32_t>(scene.m_items.size());
      itemOf[i] = index;
      SceneItem item;
      item.kind = entry.kind;
      item.depth = depth;
      item.rect = QRectF(origin + content.layout->positions[i], QSizeF(box.width, box.height));
      item.parent = parent;
      item.node = entry.member.node;
      item.output = entry.member.output;
      item.module = entry.member.module;
      item.lastModule = entry.last;
      scene.m_items.push_back(item);
      remember(index);
      if (entry.kind == ItemKind::Frame) {
        const Content& inner = m_contents[entry.content];
        scene.m_items[index].isSimplified = inner.layout->isSimplified;
        place(inner, item.rect.topLeft() + QPointF(inner.left, inner.top), index, depth + 1);
      }
      scene.m_items[index].subtreeEnd = static_cast<std::uint32_t>(scene.m_items.size());
    }
    scene.m_isSimplified |= content.layout->isSimplified;
    for (std::size_t e = 0; e < content.request.edges.size(); ++e) {
      const LayoutEdge& edge = content.request.edges[e];
      const Curve& curve = content.layout->curves[e];
      SceneEdge out{static_cast<std::uint32_t>(scene.m_points.size()),
                    static_cast<std::uint32_t>(curve.size()),
                    static_cast<std::uint32_t>(scene.m_values.size()),
                    static_cast<std::uint32_t>(content.edgeValues[e].size()),
                    itemOf[edge.from],
                    itemOf[edge.to],
                    parent,
                    {}};
      double left = 1e300, top = 1e300, right = -1e300, bottom = -1e300;
      for (const QPointF& p : curve) {
        const QPointF at = origin + p;
        scene.m_points.push_back(at);
        left = std::min(left, at.x()), right = std::max(right, at.x());
        top = std::min(top, at.y()), bottom = std::max(bottom, at.y());
      }
      out.bounds = QRectF(QPointF(left, top), QPointF(right, bottom)).adjusted(-6, -2, 6, 2);
      scene.m_values.insert(scene.m_values.end(), content.edgeValues[e].begin(), content.edgeValues[e].end());
      scene.m_edges.push_back(out);
    }
  }

  void remember(std::uint32_t index) {
    const SceneItem& item = m_scene->m_items[index];
    if (item.node.isValid()) m_scene->m_nodeItem[item.node.raw()] = index;
    if (item.output >= 0) m_scene->m_outputItem[item.output] = index;
    if (!item.module.isValid()) return;
    if (item.kind != ItemKind::Stack) {
      m_scene->m_moduleItem[item.module.raw()] = index;
      return;
    }
    bool isInside = false;
    for (const Member& member : m_model.module(m_model.module(item.module).parent).members) {
      isInside |= member.module == item.module;
      if (isInside && member.module.isValid()) m_scene->m_moduleItem[member.module.raw()] = index;
      if (member.module == item.lastModule) break;
    }
  }

  const GraphModel& m_model;
  const FoldState& m_folds;
  Labels& m_labels;
  const LayoutSource& m_layouts;
  std::shared_ptr<Scene> m_scene;
  std::vector<Content> m_contents;
};

std::shared_ptr<const Scene> makeScene(const GraphModel& model, const FoldState& folds, Labels& labels,
                                       const LayoutSource& layouts) {
  return SceneMaker(model, folds, labels, layouts).make();
}

}  // namespace cleave::views
