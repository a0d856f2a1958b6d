#pragma once
/// Layered layout of one module's content, top to bottom. Input: sizes and edges. Output: positions and curves.
///
/// A request is a value, and equal requests have equal answers, so equal layers are laid out once. Boxes may have
/// ports: an open child module's edges attach at the positions its content prefers. Units are pixels at 100 %.
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

/// A smooth line of 3k+1 points: cubic Bézier pieces that share end points, from the bottom of one box to the top of
/// another.
using Curve = std::vector<QPointF>;

struct LayoutResult {
  QSizeF size;
  std::vector<QPointF> positions;  ///< top left corners, by box
  std::vector<Curve> curves;       ///< by edge
  bool isSimplified = false;       ///< made by the built-in layout because Graphviz did not answer
};

inline constexpr float kRankGap = 28;  ///< between rows
inline constexpr float kBoxGap = 20;   ///< between neighbours in a row

/// The built-in layout: longest path, barycentres, curves through gaps between boxes. Never fails; O(boxes + edges)
/// sweeps. After `cancelled` becomes true it ends soon and its positions are meaningless.
LayoutResult layeredLayout(const LayoutRequest& request, const std::atomic_bool* cancelled = nullptr);

/// True if the only sensible picture is a column of boxes. Such a request needs no engine.
bool isColumn(const LayoutRequest& request);

/// Moves boxes to whole pixels, a single port to the middle of its side, and curve ends to the ports. Spreads edges
/// that meet at one side of a box, and replaces a line by one plain curve if nothing blocks it. Applied to every
/// engine's answer.
void attachCurves(const LayoutRequest& request, LayoutResult& result);

}  // namespace cleave::views
