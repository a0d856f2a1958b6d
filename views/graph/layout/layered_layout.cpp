// The built-in layout, after Sugiyama: layers by longest path, order by barycentres, positions by least squares.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "views/graph/layout/layout.h"

namespace cleave::views {
namespace {

constexpr std::size_t kMaxBends = 200'000;  // above this, long edges are straight: nobody could follow the bends
constexpr float kBendWidth = 6;

struct Cell {
  double x = 0;  ///< middle
  float width = 0;
  std::int64_t box = -1;                ///< -1: a bend of an edge that passes this row
  std::vector<std::uint32_t> up, down;  ///< cells of the neighbouring rows
};

class Layered {
 public:
  Layered(const LayoutRequest& request, const std::atomic_bool* cancelled)
      : m_request(request), m_cancelled(cancelled) {}

  LayoutResult run() {
    breakCycles();
    assignRanks();
    makeRows();
    for (int sweep = 0; sweep < 6 && !isCancelled(); ++sweep) order(sweep % 2 == 0);
    position();
    return result();
  }

 private:
  bool isCancelled() const { return m_cancelled && *m_cancelled; }

  /// Edges that close a cycle are reversed.
  void breakCycles() {
    const std::size_t n = m_request.boxes.size();
    std::vector<std::vector<std::uint32_t>> outgoing(n);
    for (std::uint32_t i = 0; i < m_request.edges.size(); ++i) outgoing[m_request.edges[i].from].push_back(i);
    m_turned.assign(m_request.edges.size(), false);
    std::vector<std::uint8_t> state(n, 0);  // 0 new, 1 on the path, 2 done
    std::vector<std::pair<std::uint32_t, std::size_t>> path;
    for (std::uint32_t start = 0; start < n; ++start) {
      if (state[start]) continue;
      path.push_back({start, 0});
      state[start] = 1;
      while (!path.empty()) {
        auto& [box, next] = path.back();
        if (next == outgoing[box].size()) {
          state[box] = 2;
          path.pop_back();
          continue;
        }
        const std::uint32_t edge = outgoing[box][next++];
        const std::uint32_t to = m_request.edges[edge].to;
        if (state[to] == 1)
          m_turned[edge] = true;
        else if (state[to] == 0)
          state[to] = 1, path.push_back({to, 0});
      }
    }
  }
  std::uint32_t tail(std::size_t e) const { return m_turned[e] ? m_request.edges[e].to : m_request.edges[e].from; }
  std::uint32_t head(std::size_t e) const { return m_turned[e] ? m_request.edges[e].from : m_request.edges[e].to; }

  void assignRanks() {
    const std::size_t n = m_request.boxes.size();
    std::vector<std::uint32_t> missing(n, 0);
    std::vector<bool> hasInput(n, false);
    std::vector<std::vector<std::uint32_t>> next(n);
    for (std::size_t e = 0; e < m_request.edges.size(); ++e) {
      hasInput[m_request.edges[e].to] = true;
      if (tail(e) == head(e)) continue;
      ++missing[head(e)];
      next[tail(e)].push_back(head(e));
    }
    const bool hasTop = std::any_of(m_request.boxes.begin(), m_request.boxes.end(),
                                    [](const LayoutBox& b) { return b.rank == LayoutBox::Rank::Top; });
    m_rank.assign(n, 0);
    for (std::size_t i = 0; i < n; ++i) m_rank[i] = hasTop && m_request.boxes[i].rank != LayoutBox::Rank::Top;
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < n; ++i)
      if (missing[i] == 0) ready.push_back(i);
    for (std::size_t at = 0; at < ready.size(); ++at) {
      for (const std::uint32_t to : next[ready[at]]) {
        m_rank[to] = std::max(m_rank[to], m_rank[ready[at]] + 1);
        if (--missing[to] == 0) ready.push_back(to);
      }
    }
    for (std::size_t at = ready.size(); at-- > 0;) {  // a box without inputs goes right above its first reader
      const std::uint32_t box = ready[at];
      if (hasInput[box] || next[box].empty() || m_request.boxes[box].rank == LayoutBox::Rank::Top) continue;
      std::uint32_t first = ~0u;
      for (const std::uint32_t to : next[box]) first = std::min(first, m_rank[to]);
      m_rank[box] = std::max(m_rank[box], first - 1);
    }
    const std::uint32_t last = n == 0 ? 0 : *std::max_element(m_rank.begin(), m_rank.end());
    for (std::size_t i = 0; i < n; ++i)
      if (m_request.boxes[i].rank == LayoutBox::Rank::Bottom) m_rank[i] = last + 1;
    m_rowCount = n == 0 ? 0 : *std::max_element(m_rank.begin(), m_rank.end()) + 1;
  }

  void makeRows() {
    m_rows.resize(m_rowCount);
    for (std::uint32_t i = 0; i < m_request.boxes.size(); ++i) {
      m_cells.push_back({0, m_request.boxes[i].width, static_cast<std::int64_t>(i), {}, {}});
      m_rows[m_rank[i]].push_back(i);
    }
    std::size_t bends = 0;
    for (std::size_t e = 0; e < m_request.edges.size(); ++e)
      bends += m_rank[head(e)] > m_rank[tail(e)] ? m_rank[head(e)] - m_rank[tail(e)] - 1 : 0;
    m_bends.resize(m_request.edges.size());
    for (std::size_t e = 0; e < m_request.edges.size(); ++e) {
      const std::uint32_t from = tail(e), to = head(e);
      if (m_rank[to] <= m_rank[from]) continue;
      std::uint32_t above = from;
      for (std::uint32_t row = m_rank[from] + 1; row < m_rank[to] && bends <= kMaxBends; ++row) {
        const auto cell = static_cast<std::uint32_t>(m_cells.size());
        m_cells.push_back({0, kBendWidth, -1, {}, {}});
        m_rows[row].push_back(cell);
        m_bends[e].push_back(cell);
        link(above, cell);
        above = cell;
      }
      if (bends <= kMaxBends || m_rank[to] == m_rank[from] + 1) link(above, to);
    }
    for (const auto& row : m_rows)
      for (std::size_t i = 0; i < row.size(); ++i) m_cells[row[i]].x = static_cast<double>(i);
  }
  void link(std::uint32_t upper, std::uint32_t lower) {
    m_cells[upper].down.push_back(lower);
    m_cells[lower].up.push_back(upper);
  }

  void order(bool downwards) {
    for (std::uint32_t i = 0; i < m_rowCount; ++i) {
      auto& row = m_rows[downwards ? i : m_rowCount - 1 - i];
      std::vector<std::pair<double, std::uint32_t>> keyed;
      for (const std::uint32_t cell : row) keyed.push_back({middleOf(m_cells[cell], downwards), cell});
      std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t k = 0; k < row.size(); ++k) {
        row[k] = keyed[k].second;
        m_cells[row[k]].x = static_cast<double>(k) / static_cast<double>(row.size());
      }
    }
  }
  double middleOf(const Cell& cell, bool fromAbove) const {
    const auto& neighbours = fromAbove ? cell.up : cell.down;
    if (neighbours.empty()) return cell.x;
    double sum = 0;
    for (const std::uint32_t n : neighbours) sum += m_cells[n].x;
    return sum / static_cast<double>(neighbours.size());
  }

  double apart(const Cell& left, const Cell& right) const {
    const bool isTight = left.box < 0 && right.box < 0;
    return (left.width + right.width) / 2 + (isTight ? kBendWidth : kBoxGap);
  }

  /// The nearest positions to the wanted ones that keep order and distance: isotonic regression by pooling.
  void settle(const std::vector<std::uint32_t>& row, const std::vector<double>& wish) {
    struct Pool {
      double sum;
      int count;
    };
    std::vector<Pool> pools;
    std::vector<double> offset(row.size(), 0);
    for (std::size_t i = 1; i < row.size(); ++i)
      offset[i] = offset[i - 1] + apart(m_cells[row[i - 1]], m_cells[row[i]]);
    for (std::size_t i = 0; i < row.size(); ++i) {
      pools.push_back({wish[i] - offset[i], 1});
      while (pools.size() > 1 &&
             pools[pools.size() - 2].sum / pools[pools.size() - 2].count > pools.back().sum / pools.back().count) {
        const Pool last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().count += last.count;
      }
    }
    std::size_t i = 0;
    for (const Pool& pool : pools)
      for (int k = 0; k < pool.count; ++k, ++i) m_cells[row[i]].x = pool.sum / pool.count + offset[i];
  }

  void position() {
    for (const auto& row : m_rows) settle(row, std::vector<double>(row.size(), 0));
    for (int pass = 0; pass < 10 && !isCancelled(); ++pass) {
      const bool downwards = pass % 2 == 0;
      for (std::uint32_t i = 0; i < m_rowCount; ++i) {
        const auto& row = m_rows[downwards ? i : m_rowCount - 1 - i];
        std::vector<double> wish;
        for (const std::uint32_t cell : row) wish.push_back(middleOf(m_cells[cell], downwards));
        settle(row, wish);
      }
    }
  }

  LayoutResult result() const {
    LayoutResult out;
    double left = 0, right = 0;
    if (!m_cells.empty()) left = 1e300, right = -1e300;
    for (const Cell& cell : m_cells) {
      left = std::min(left, cell.x - cell.width / 2);
      right = std::max(right, cell.x + cell.width / 2);
    }
    std::vector<double> top(m_rowCount, 0), bottom(m_rowCount, 0);
    double y = 0;
    for (std::uint32_t row = 0; row < m_rowCount; ++row) {
      float height = 0;
      for (const std::uint32_t cell : m_rows[row])
        if (m_cells[cell].box >= 0) height = std::max(height, m_request.boxes[m_cells[cell].box].height);
      top[row] = y;
      bottom[row] = y + height;
      y += height + kRankGap;
    }
    out.size = QSizeF(right - left, m_rowCount ? y - kRankGap : 0);
    for (std::size_t i = 0; i < m_request.boxes.size(); ++i) {
      const double middle = (top[m_rank[i]] + bottom[m_rank[i]]) / 2;
      out.positions.emplace_back(m_cells[i].x - left - m_request.boxes[i].width / 2,
                                 middle - m_request.boxes[i].height / 2);
    }
    for (std::size_t e = 0; e < m_request.edges.size(); ++e) out.curves.push_back(curveOf(e, out, left, top, bottom));
    return out;
  }

  Curve curveOf(std::size_t e, const LayoutResult& out, double left, const std::vector<double>& top,
                const std::vector<double>& bottom) const {
    const std::uint32_t from = tail(e), to = head(e);
    Curve curve{out.positions[from] + QPointF(m_request.boxes[from].width / 2, m_request.boxes[from].height)};
    const auto reach = [&](QPointF p) {
      const QPointF last = curve.back();
      const double bend = (p.y() - last.y()) / 2;
      curve.insert(curve.end(), {last + QPointF(0, bend), p - QPointF(0, bend), p});
    };
    std::uint32_t row = m_rank[from] + 1;
    for (const std::uint32_t cell : m_bends[e]) {
      reach({m_cells[cell].x - left, top[row]});
      reach({m_cells[cell].x - left, bottom[row]});
      ++row;
    }
    reach(out.positions[to] + QPointF(m_request.boxes[to].width / 2, 0));
    if (m_turned[e]) std::reverse(curve.begin(), curve.end());
    return curve;
  }

  const LayoutRequest& m_request;
  const std::atomic_bool* m_cancelled;
  std::vector<bool> m_turned;
  std::vector<std::uint32_t> m_rank;
  std::uint32_t m_rowCount = 0;
  std::vector<Cell> m_cells;  ///< boxes first, then bends
  std::vector<std::vector<std::uint32_t>> m_rows;
  std::vector<std::vector<std::uint32_t>> m_bends;  ///< by edge
};

void shiftEnd(Curve& curve, bool atStart, QPointF end) {
  const std::size_t last = curve.size() - 1;
  const QPointF by = end - (atStart ? curve.front() : curve.back());
  curve[atStart ? 0 : last] += by;
  curve[atStart ? 1 : last - 1] += by;
}

/// Centres the only entry and the only exit of a module, so that columns of modules are straight.
void centerLonePorts(const LayoutRequest& request, LayoutResult& result) {
  for (const auto side : {LayoutBox::Rank::Top, LayoutBox::Rank::Bottom}) {
    std::vector<std::size_t> ports;
    for (std::size_t i = 0; i < request.boxes.size(); ++i)
      if (request.boxes[i].rank == side) ports.push_back(i);
    if (ports.size() == 1) result.positions[ports[0]].setX((result.size.width() - request.boxes[ports[0]].width) / 2);
  }
}

QPointF pointAt(std::span<const QPointF> piece, double t) {
  const double u = 1 - t;
  return u * u * u * piece[0] + 3 * u * u * t * piece[1] + 3 * u * t * t * piece[2] + t * t * t * piece[3];
}

/// True if a curve touches no other box.
bool isClear(const LayoutRequest& request, const LayoutResult& result, const LayoutEdge& edge,
             std::span<const QPointF> curve) {
  constexpr double kMargin = 5;
  if (curve.size() > 4 && !isClear(request, result, edge, curve.subspan(3))) return false;
  for (int step = 1; step < 20; ++step) {
    const QPointF p = pointAt(curve, step / 20.0);
    for (std::uint32_t i = 0; i < request.boxes.size(); ++i) {
      if (i == edge.from || i == edge.to) continue;
      const QPointF& at = result.positions[i];
      if (p.x() > at.x() - kMargin && p.x() < at.x() + request.boxes[i].width + kMargin && p.y() > at.y() - kMargin &&
          p.y() < at.y() + request.boxes[i].height + kMargin)
        return false;
    }
  }
  return true;
}

/// Moves the start of a curve within its row: down and aside between the rows, then along its old path. `drop`: height
/// of the move, down or up.
void beginAt(Curve& curve, QPointF start, double drop) {
  double low = 0, high = 1;
  for (int i = 0; i < 20; ++i) {
    const double middle = (low + high) / 2;
    (std::abs(pointAt(curve, middle).y() - start.y()) < std::abs(drop) ? low : high) = middle;
  }
  const QPointF bc = curve[1] + (curve[2] - curve[1]) * high, cd = curve[2] + (curve[3] - curve[2]) * high;
  const QPointF joint = pointAt(curve, high);
  const Curve lead{start, {start.x(), joint.y()}, {joint.x(), start.y()}, joint, bc + (cd - bc) * high, cd};
  curve.erase(curve.begin(), curve.begin() + 3);
  curve.insert(curve.begin(), lead.begin(), lead.end());
}

/// The port was moved to the middle of its side. Curves that ended at its old position are led to the new one without
/// crossing a box.
void moveEnd(const LayoutRequest& request, const LayoutResult& result, const LayoutEdge& edge, Curve& curve,
             bool atStart, QPointF end) {
  Curve shifted = curve;
  shiftEnd(shifted, atStart, end);
  const QPointF was = atStart ? curve.front() : curve.back();
  if (std::abs(end.x() - was.x()) < 3 || isClear(request, result, edge, shifted)) return std::swap(curve, shifted);
  if (!atStart) std::reverse(curve.begin(), curve.end());
  beginAt(curve, end, (atStart ? 0.5 : -0.5) * kRankGap);
  if (!atStart) std::reverse(curve.begin(), curve.end());
}

void smooth(const LayoutRequest& request, LayoutResult& result) {
  constexpr std::size_t kMaxWork = 400'000;
  if (request.boxes.size() * request.edges.size() > kMaxWork) return;
  for (std::size_t e = 0; e < request.edges.size(); ++e) {
    const LayoutEdge& edge = request.edges[e];
    QPointF from = result.curves[e].front(), to = result.curves[e].back();
    if (to.y() <= from.y()) continue;
    if (std::abs(to.x() - from.x()) < 3) {  // nearly vertical lines look like mistakes
      const bool isFixed = edge.toPort >= 0 || request.boxes[edge.to].rank != LayoutBox::Rank::Free;
      (isFixed ? from : to).setX(isFixed ? to.x() : from.x());
    }
    const double fall = to.y() - from.y(), aside = std::abs(to.x() - from.x());
    const QPointF bend(
        0, fall * std::clamp(0.5 + aside / fall / 16, 0.5, 0.95));  // also a far curve leaves and arrives vertically
    Curve plain{from, from + bend, to - bend, to};
    if (isClear(request, result, edge, plain)) result.curves[e] = std::move(plain);
  }
}

}  // namespace

std::size_t LayoutRequest::hash() const {
  std::size_t h = boxes.size() * 31 + edges.size();
  const auto mix = [&h](auto value) {
    h = (h ^ std::hash<decltype(value)>{}(value)) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 29;
  };
  for (const LayoutBox& box : boxes) {
    mix(box.width), mix(box.height), mix(static_cast<int>(box.rank));
    for (const float port : box.inPorts) mix(port);
    for (const float port : box.outPorts) mix(-port);
  }
  for (const LayoutEdge& e : edges) mix((std::uint64_t(e.from) << 32) | e.to), mix(e.fromPort), mix(e.toPort);
  return h;
}

LayoutResult layeredLayout(const LayoutRequest& request, const std::atomic_bool* cancelled) {
  return Layered(request, cancelled).run();
}

bool isColumn(const LayoutRequest& request) {
  if (request.boxes.size() < 2) return true;
  std::vector<std::uint32_t> in(request.boxes.size(), 0), out(request.boxes.size(), 0);
  for (const LayoutEdge& e : request.edges)
    if (e.from == e.to || ++out[e.from] > 1 || ++in[e.to] > 1) return false;
  return request.edges.size() + 1 == request.boxes.size();
}

void attachCurves(const LayoutRequest& request, LayoutResult& result) {
  for (QPointF& p : result.positions) p = QPointF(std::round(p.x()), std::round(p.y()));  // sharp borders at 100 %
  result.size = QSizeF(std::ceil(result.size.width()), std::ceil(result.size.height()));
  centerLonePorts(request, result);
  std::vector<std::vector<std::uint32_t>> arriving(request.boxes.size());
  for (std::uint32_t e = 0; e < request.edges.size(); ++e) {
    const LayoutEdge& edge = request.edges[e];
    const LayoutBox& from = request.boxes[edge.from];
    const double out = edge.fromPort >= 0 ? from.outPorts[edge.fromPort] : from.width / 2;
    moveEnd(request, result, edge, result.curves[e], true, result.positions[edge.from] + QPointF(out, from.height));
    arriving[edge.to].push_back(e);
  }
  for (std::uint32_t box = 0; box < arriving.size(); ++box) {
    auto& edges = arriving[box];
    const float width = request.boxes[box].width;
    const auto cameFrom = [&](std::uint32_t e) { return result.curves[e][result.curves[e].size() - 4].x(); };
    std::stable_sort(edges.begin(), edges.end(), [&](auto a, auto b) { return cameFrom(a) < cameFrom(b); });
    const double step = std::min(16.0, (width - 16.0) / std::max<std::size_t>(1, edges.size()));
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const LayoutEdge& edge = request.edges[edges[i]];
      const double spread =
          width / 2 + (static_cast<double>(i) - (static_cast<double>(edges.size()) - 1) / 2) * std::max(0.0, step);
      const double in = edge.toPort >= 0 ? request.boxes[box].inPorts[edge.toPort] : spread;
      moveEnd(request, result, edge, result.curves[edges[i]], false, result.positions[box] + QPointF(in, 0));
    }
  }
  smooth(request, result);
}

}  // namespace cleave::views
