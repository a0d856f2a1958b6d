#pragma once
/// Layered layout of one module's content: sizes and edges in, positions and curves out. Top to bottom.
///
/// A request is a value: equal requests have equal answers, which is how equal layers are laid out once. Boxes may have
/// ports: an open child module is entered and left where its own content wants it. Units are pixels at 100 %.
#include <QPointF>
#include <QSizeF>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace cleave::views {

struct LayoutBox {
  enum class Rank : std::uint8_t { Free, Top, Bottom };
  float width = 0, height = 0;
  Rank rank = Rank::Free;      ///< Top and Bottom: ports of the module itself
  std::vector<float> inPorts;  ///< distance from the left edge; empty: edges arrive at the middle
  std::vector<float> outPorts;
  bool operator==(const LayoutBox&) const = default;
};

struct LayoutEdge {
  std::uint32_t from = 0, to = 0;
  std::int32_t fromPort = -1, toPort = -1;  ///< index into outPorts / inPorts; -1: the middle
  bool operator==(const LayoutEdge&) const = default;
};

struct LayoutRequest {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutEdge> edges;
  bool operator==(const LayoutRequest&) const = default;
  std::size_t hash() const;
};

/// A smooth line: 3k+1 points, cubic Bézier pieces sharing end points, from the bottom of one box to the top of
/// another.
using Curve = std::vector<QPointF>;

struct LayoutResult {
  QSizeF size;
  std::vector<QPointF> positions;  ///< top left corners, by box
  std::vector<Curve> curves;       ///< by edge
  bool isSimplified = false;       ///< by the built-in layout because Graphviz did not answer
};

inline constexpr float kRankGap = 28;  ///< between rows
inline constexpr float kBoxGap = 20;   ///< between neighbours in a row

/// The built-in layout: longest path, barycentres, curves through gaps between boxes. Never fails; O(boxes + edges)
/// sweeps. Once `cancelled` is true it ends soon, with positions of no use.
LayoutResult layeredLayout(const LayoutRequest& request, const std::atomic_bool* cancelled = nullptr);

/// Requests whose one sensible picture is a column of boxes: no need to ask anybody.
bool isColumn(const LayoutRequest& request);

/// Puts boxes on whole pixels, a lone port in the middle of its side, curve ends where the ports are; spreads edges
/// that meet at one side of a box, and makes a line one plain curve where nothing is in its way. Done for every
/// engine's answer.
void attachCurves(const LayoutRequest& request, LayoutResult& result);

}  // namespace cleave::views
