#include "views/graph/layout/layout_worker.h"

#include <fmt/format.h>
#include <graphviz/gvc.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cmath>
#include <iostream>
#include <string>

#include "views/graph/layout/layout_protocol.h"

namespace cleave::views {
namespace {

constexpr double kPointsPerInch = 72;

char kEmpty[] = "";  // Graphviz takes char* and does not write to it

void set(void* object, const char* name, const std::string& value) {
  agsafeset(object, const_cast<char*>(name), const_cast<char*>(value.c_str()), kEmpty);
}

/// A table whose cells place ports exactly where the box has them. `dot` has no other way to set free port positions.
std::string portTable(const LayoutBox& box) {
  const auto row = [&](const std::vector<float>& ports, char side) {
    std::string cells;
    double at = 0;
    const auto cell = [&](double width, const std::string& port) {
      cells += fmt::format("<TD FIXEDSIZE=\"TRUE\" WIDTH=\"{}\" HEIGHT=\"2\"{}></TD>", std::max(1L, std::lround(width)),
                           port);
      at += std::max(1.0, std::round(width));
    };
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i] - 1 > at) cell(ports[i] - 1 - at, {});
      cell(2, fmt::format(" PORT=\"{}{}\"", side, i));
    }
    if (box.width > at) cell(box.width - at, {});
    return cells;
  };
  std::string table = fmt::format(
      "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"0\" FIXEDSIZE=\"TRUE\" WIDTH=\"{}\" "
      "HEIGHT=\"{}\">",
      std::lround(box.width), std::lround(box.height));
  const auto inner = [](const std::string& cells) {
    return "<TR><TD><TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"0\"><TR>" + cells +
           "</TR></TABLE></TD></TR>";
  };
  table += inner(row(box.inPorts, 'i'));
  table += fmt::format("<TR><TD FIXEDSIZE=\"TRUE\" WIDTH=\"4\" HEIGHT=\"{}\"></TD></TR>",
                       std::max(1L, std::lround(box.height) - 4));
  table += inner(row(box.outPorts, 'o'));
  return table + "</TABLE>";
}

/// Ports must ascend in a table row. This maps each port of the box to its table port.
std::vector<std::size_t> ascending(std::vector<float>& ports) {
  std::vector<std::size_t> order(ports.size()), rank(ports.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return ports[a] < ports[b]; });
  std::vector<float> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    sorted.push_back(ports[order[i]]);
  }
  ports = sorted;
  return rank;
}

class Drawing {
 public:
  explicit Drawing(const LayoutRequest& request) : m_request(request) {
    m_graph = agopen(const_cast<char*>("g"), Agdirected, nullptr);
    set(m_graph, "rankdir", "TB");
    set(m_graph, "ranksep", fmt::format("{}", kRankGap / kPointsPerInch));
    set(m_graph, "nodesep", fmt::format("{}", kBoxGap / kPointsPerInch));
    set(m_graph, "splines", "true");
    set(m_graph, "outputorder", "nodesfirst");
    addBoxes();
    addEdges();
  }
  ~Drawing() { agclose(m_graph); }
  Agraph_t* graph() { return m_graph; }

  LayoutResult read() const {
    LayoutResult result;
    const boxf bounds = GD_bb(m_graph);
    result.size = QSizeF(bounds.UR.x - bounds.LL.x, bounds.UR.y - bounds.LL.y);
    const auto place = [&](pointf p) { return QPointF(p.x - bounds.LL.x, bounds.UR.y - p.y); };
    for (std::size_t i = 0; i < m_nodes.size(); ++i) {
      const QPointF middle = place(ND_coord(m_nodes[i]));
      result.positions.push_back(middle - QPointF(m_request.boxes[i].width / 2, m_request.boxes[i].height / 2));
    }
    for (Agedge_t* edge : m_edges) {
      Curve curve;
      const splines* spline = ED_spl(edge);
      if (spline && spline->size > 0)
        for (int i = 0; i < spline->list[0].size; ++i) curve.push_back(place(spline->list[0].list[i]));
      // dot stores a reversed edge when it broke a cycle
      if (curve.size() > 1 && ND_coord(agtail(edge)).y < ND_coord(aghead(edge)).y &&
          curve.front().y() < curve.back().y())
        std::reverse(curve.begin(), curve.end());
      result.curves.push_back(std::move(curve));
    }
    return result;
  }

 private:
  void addBoxes() {
    for (std::size_t i = 0; i < m_request.boxes.size(); ++i) {
      LayoutBox box = m_request.boxes[i];
      Agnode_t* node = agnode(m_graph, fmt::format("n{}", i).data(), 1);
      set(node, "fixedsize", "true");
      set(node, "width", fmt::format("{}", box.width / kPointsPerInch));
      set(node, "height", fmt::format("{}", box.height / kPointsPerInch));
      m_inRank.push_back(ascending(box.inPorts));
      m_outRank.push_back(ascending(box.outPorts));
      if (box.inPorts.empty() && box.outPorts.empty()) {
        set(node, "shape", "box");
        set(node, "label", "");
      } else {
        set(node, "shape", "none");
        set(node, "margin", "0");
        const std::string table = portTable(box);
        char* label = agstrdup_html(m_graph, const_cast<char*>(table.c_str()));
        agsafeset(node, const_cast<char*>("label"), label, kEmpty);
        agstrfree(m_graph, label);
      }
      if (box.rank != LayoutBox::Rank::Free) {
        const char* name = box.rank == LayoutBox::Rank::Top ? "top" : "bottom";
        Agraph_t* row = agsubg(m_graph, const_cast<char*>(name), 1);
        set(row, "rank", box.rank == LayoutBox::Rank::Top ? "source" : "sink");
        agsubnode(row, node, 1);
      }
      m_nodes.push_back(node);
    }
  }
  void addEdges() {
    for (std::size_t i = 0; i < m_request.edges.size(); ++i) {
      const LayoutEdge& e = m_request.edges[i];
      Agedge_t* edge = agedge(m_graph, m_nodes[e.from], m_nodes[e.to], fmt::format("e{}", i).data(), 1);
      set(edge, "tailport", e.fromPort < 0 ? "s" : fmt::format("o{}:s", m_outRank[e.from][e.fromPort]));
      set(edge, "headport", e.toPort < 0 ? "n" : fmt::format("i{}:n", m_inRank[e.to][e.toPort]));
      set(edge, "dir", "none");
      m_edges.push_back(edge);
    }
  }

  const LayoutRequest& m_request;
  Agraph_t* m_graph = nullptr;
  std::vector<Agnode_t*> m_nodes;
  std::vector<Agedge_t*> m_edges;
  std::vector<std::vector<std::size_t>> m_inRank, m_outRank;
};

LayoutAnswer layOut(GVC_t* context, std::uint64_t id, const LayoutRequest& request) {
  LayoutAnswer answer{id, {}, {}};
  Drawing drawing(request);
  if (gvLayout(context, drawing.graph(), "dot") != 0) {
    answer.error = "Graphviz could not lay this module out";
    return answer;
  }
  answer.result = drawing.read();
  gvFreeLayout(context, drawing.graph());
  for (const Curve& curve : answer.result->curves) {
    if (curve.size() >= 4 && curve.size() % 3 == 1) continue;
    answer.result.reset();
    answer.error = "Graphviz drew an edge without a line";
    break;
  }
  return answer;
}

}  // namespace

int layoutWorkerMain() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // also during a layout: the helper must end with the window
  std::ios::sync_with_stdio(false);
  GVC_t* context = gvContext();
  agseterr(AGMAX);
  std::string text, line;
  while (std::getline(std::cin, line)) {
    text += line;
    text += '\n';
    if (line != "end") continue;
    std::uint64_t id = 0;
    const auto request = decodeRequest(text, id);
    if (!request) return 2;
    std::cout << encodeAnswer(layOut(context, id, *request)) << std::flush;
    text.clear();
  }
  gvFreeContext(context);
  return 0;
}

std::string graphvizVersion() {
  GVC_t* context = gvContext();
  std::string version = gvcVersion(context);
  gvFreeContext(context);
  return version;
}

}  // namespace cleave::views
