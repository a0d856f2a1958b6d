#include "views/graph/layout/layout_protocol.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace cleave::views {
namespace {

constexpr std::size_t kMaxBoxes = 2'000'000;
constexpr std::size_t kMaxPoints = 100'000;

/// Reads the words and numbers of one line in order.
class Reader {
 public:
  explicit Reader(std::string_view text) : m_text(text) {}
  std::string_view word() {
    while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\n')) ++m_at;
    const std::size_t begin = m_at;
    while (m_at < m_text.size() && m_text[m_at] != ' ' && m_text[m_at] != '\n') ++m_at;
    return m_text.substr(begin, m_at - begin);
  }
  std::string_view restOfLine() {
    const std::size_t end = std::min(m_text.find('\n', m_at), m_text.size());
    const std::string_view rest = m_text.substr(m_at, end - m_at);
    m_at = end;
    return rest;
  }
  bool expect(std::string_view word) { return m_good = m_good && this->word() == word; }
  template <class T>
  T number(T low, T high) {
    const std::string_view text = word();
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    m_good = m_good && error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
    return m_good ? value : low;
  }
  double coordinate() { return number<double>(-1e9, 1e9); }
  bool good() const { return m_good; }

 private:
  std::string_view m_text;
  std::size_t m_at = 0;
  bool m_good = true;
};

void writePorts(std::string& out, const char* name, const std::vector<float>& ports) {
  if (ports.empty()) return;
  out += name;
  for (const float port : ports) fmt::format_to(std::back_inserter(out), " {}", port);
  out += '\n';
}

}  // namespace

std::string encodeRequest(std::uint64_t id, const LayoutRequest& request) {
  std::string out = fmt::format("layout {} {} {}\n", id, request.boxes.size(), request.edges.size());
  for (const LayoutBox& box : request.boxes) {
    fmt::format_to(std::back_inserter(out), "box {} {} {} {} {}\n", box.width, box.height, static_cast<int>(box.rank),
                   box.inPorts.size(), box.outPorts.size());
    writePorts(out, "in", box.inPorts);
    writePorts(out, "out", box.outPorts);
  }
  for (const LayoutEdge& e : request.edges)
    fmt::format_to(std::back_inserter(out), "edge {} {} {} {}\n", e.from, e.to, e.fromPort, e.toPort);
  return out + "end\n";
}

std::optional<LayoutRequest> decodeRequest(std::string_view text, std::uint64_t& id) {
  Reader in(text);
  LayoutRequest request;
  in.expect("layout");
  id = in.number<std::uint64_t>(0, ~std::uint64_t(0));
  const auto boxes = in.number<std::size_t>(0, kMaxBoxes);
  const auto edges = in.number<std::size_t>(0, kMaxBoxes);
  for (std::size_t i = 0; i < boxes && in.good(); ++i) {
    LayoutBox box;
    in.expect("box");
    box.width = in.number<float>(0, 1e7f);
    box.height = in.number<float>(0, 1e7f);
    box.rank = static_cast<LayoutBox::Rank>(in.number<int>(0, 2));
    const auto ins = in.number<std::size_t>(0, kMaxPoints);
    const auto outs = in.number<std::size_t>(0, kMaxPoints);
    if (ins > 0) in.expect("in");
    for (std::size_t k = 0; k < ins && in.good(); ++k) box.inPorts.push_back(in.number<float>(-1e7f, 1e7f));
    if (outs > 0) in.expect("out");
    for (std::size_t k = 0; k < outs && in.good(); ++k) box.outPorts.push_back(in.number<float>(-1e7f, 1e7f));
    request.boxes.push_back(std::move(box));
  }
  for (std::size_t i = 0; i < edges && in.good() && boxes > 0; ++i) {
    in.expect("edge");
    LayoutEdge e;
    e.from = in.number<std::uint32_t>(0, static_cast<std::uint32_t>(boxes - 1));
    e.to = in.number<std::uint32_t>(0, static_cast<std::uint32_t>(boxes - 1));
    e.fromPort = in.number<std::int32_t>(
        -1, in.good() ? static_cast<std::int32_t>(request.boxes[e.from].outPorts.size()) - 1 : -1);
    e.toPort =
        in.number<std::int32_t>(-1, in.good() ? static_cast<std::int32_t>(request.boxes[e.to].inPorts.size()) - 1 : -1);
    request.edges.push_back(e);
  }
  in.expect("end");
  return in.good() ? std::optional(std::move(request)) : std::nullopt;
}

std::string encodeAnswer(const LayoutAnswer& answer) {
  if (!answer.result) return fmt::format("error {} {}\nend\n", answer.id, answer.error);
  const LayoutResult& r = *answer.result;
  std::string out = fmt::format("ok {} {:.3f} {:.3f} {} {}\n", answer.id, r.size.width(), r.size.height(),
                                r.positions.size(), r.curves.size());
  for (const QPointF& p : r.positions) fmt::format_to(std::back_inserter(out), "at {:.3f} {:.3f}\n", p.x(), p.y());
  for (const Curve& curve : r.curves) {
    fmt::format_to(std::back_inserter(out), "curve {}", curve.size());
    for (const QPointF& p : curve) fmt::format_to(std::back_inserter(out), " {:.3f} {:.3f}", p.x(), p.y());
    out += '\n';
  }
  return out + "end\n";
}

std::optional<LayoutAnswer> decodeAnswer(std::string_view text) {
  Reader in(text);
  LayoutAnswer answer;
  const std::string_view kind = in.word();
  answer.id = in.number<std::uint64_t>(0, ~std::uint64_t(0));
  if (kind == "error") {
    answer.error = in.restOfLine();
    return in.good() ? std::optional(std::move(answer)) : std::nullopt;
  }
  if (kind != "ok") return std::nullopt;
  LayoutResult r;
  r.size.setWidth(in.coordinate());
  r.size.setHeight(in.coordinate());
  const auto boxes = in.number<std::size_t>(0, kMaxBoxes);
  const auto edges = in.number<std::size_t>(0, kMaxBoxes);
  for (std::size_t i = 0; i < boxes && in.good(); ++i) {
    in.expect("at");
    const double x = in.coordinate();
    r.positions.emplace_back(x, in.coordinate());
  }
  for (std::size_t i = 0; i < edges && in.good(); ++i) {
    in.expect("curve");
    Curve curve(in.number<std::size_t>(4, kMaxPoints));
    for (QPointF& p : curve) {
      if (!in.good()) break;
      p.setX(in.coordinate());
      p.setY(in.coordinate());
    }
    if (curve.size() % 3 != 1) return std::nullopt;
    r.curves.push_back(std::move(curve));
  }
  in.expect("end");
  if (!in.good()) return std::nullopt;
  answer.result = std::move(r);
  return answer;
}

}  // namespace cleave::views
