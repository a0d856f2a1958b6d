#pragma once
/// The text on the canvas and its size. Layout measures the same text that the painter writes.
///
/// Sizes are in pixels at 100 %. Everything scales with the user's font size. GUI thread only (font metrics).
#include <QFont>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QSizeF>
#include <QString>
#include <unordered_map>
#include <vector>

#include "views/base/quantities.h"
#include "views/graph/model/graph_model.h"

namespace cleave::views {

/// Geometry of the parts, at 100 %.
struct Metrics {
  explicit Metrics(double scale = 1, const QFont& font = QGuiApplication::font());

  double scale;
  QFont label, strong, small, digits;  ///< operator names, titles, quiet text, shapes and sizes
  QFontMetricsF labelMetrics, strongMetrics, smallMetrics, digitsMetrics;
  double band, row, chipRow, header, pad, radius;
  double sheetOffset;  ///< visible offset of the sheets of a stack
  double button;       ///< side of a fold button
};

/// An operator's name on the canvas, such as "sdp attention".
QString abbreviated(QString op);

struct DockLabel {
  ValueId value;
  QString name;   ///< "weight"
  QString shape;  ///< "4096×4096"
};
struct HubLabel {
  ValueId value;
  QString name;
  bool isMade = false;  ///< made here and read all over the model; false: read here
};
struct NodeLabel {
  QString title;  ///< operator, or name of an input or output
  QString tail;   ///< "q_proj"
  QString shape;
  bool isLayer = false;  ///< the title is its tail; a row shows its strategy
  std::vector<DockLabel> docks;
  std::vector<HubLabel> hubs;
};
struct ModuleLabel {
  QString title;   ///< "layers.3", "layers 0–31"
  QString kind;    ///< short class name, or the kind of group
  QString counts;  ///< "3 232 ops"
  std::vector<HubLabel> hubs;
};

class Labels {
 public:
  Labels(const GraphModel& model, const Metrics& metrics) : m_model(model), m_metrics(metrics) {}

  const Metrics& metrics() const { return m_metrics; }
  const NodeLabel& node(NodeId node);
  /// `last` differs from `first` for a stack of equal modules.
  const ModuleLabel& module(ModuleId first, ModuleId last);
  QString outputTitle(int output) const;

  QSizeF nodeSize(NodeId node);
  QSizeF outputSize(int output);
  QSizeF moduleSize(ModuleId first, ModuleId last);     ///< folded; with its sheets for a stack
  bool isCompact(ModuleId first, ModuleId last) const;  ///< a folded member of a list: one row
  double frameWidth(ModuleId module);                   ///< least width of an open module's header

  /// Positions of the chips of a box, relative to the left and top of their first row.
  std::vector<QRectF> chipRects(const std::vector<HubLabel>& hubs, double width) const;
  double chipWidth(const HubLabel& hub) const;

 private:
  double chipsWidth(const std::vector<HubLabel>& hubs) const;
  std::vector<HubLabel> hubLabels(const std::vector<ValueId>& read, const std::vector<ValueId>& made) const;

  const GraphModel& m_model;
  const Metrics& m_metrics;
  std::unordered_map<std::uint32_t, NodeLabel> m_nodes;
  std::unordered_map<std::uint64_t, ModuleLabel> m_modules;
};

}  // namespace cleave::views
