#include "solve/cost/peak.h"

#include "base/quantities.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

constexpr std::size_t kMostPartsNamed = 3;

/// "the output `logits`", "the result of `lm_head`", "`view_9`".
std::string tensorName(const Graph& graph, ValueId value) {
  const auto output = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                   [&](const graph::Output& o) { return o.value == value; });
  if (output != graph.outputs.end()) return "the output " + ticked(output->name);
  const NodeId producer = graph.value(value).producer;
  if (graph::layerShape(graph, producer)) return "the result of " + ticked(graph::layerName(graph, producer));
  return ticked(graph.value(value).name);
}

std::string toText(const Graph& graph, const PeakPart& part) {
  const std::string name =
      fmt::format("{} {}", tensorName(graph, part.value), graph::toText(graph.value(part.value).type));
  const std::string bytes = bytesText(part.bytes);
  switch (part.kind) {
    case PeakPart::Kind::Value: return fmt::format("{} takes {}", name, bytes);
    case PeakPart::Kind::Gathered: return fmt::format("{}, gathered, takes {}", name, bytes);
    case PeakPart::Kind::Gradient: return fmt::format("the gradient of {} takes {}", name, bytes);
    case PeakPart::Kind::Buffers: break;
  }
  return fmt::format("buffers for {} take {}", name, bytes);
}

std::string whenText(const Graph& graph, const TransientPeak& peak) {
  const std::string at = peak.at.isValid() ? " at " + ticked(graph.value(peak.at).name) : "";
  switch (peak.phase) {
    case TransientPeak::Phase::Forward: return "in the forward pass" + at;
    case TransientPeak::Phase::Outputs:
      return peak.at.isValid() ? fmt::format("while {} is gathered", tensorName(graph, peak.at))
                               : "at the end of the forward pass";
    case TransientPeak::Phase::Backward: return "in the backward pass" + at;
    case TransientPeak::Phase::GradientSum: return "while gradients are summed over the ranks";
    case TransientPeak::Phase::Optimizer: break;
  }
  return "in the optimizer step";
}

}  // namespace

std::string toText(const Graph& graph, const TransientPeak& peak) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(peak.parts.size(), kMostPartsNamed); ++i)
    parts.push_back(toText(graph, peak.parts[i]));
  return whenText(graph, peak) + (parts.empty() ? "" : ", where " + joined(parts, "and"));
}

}  // namespace cleave::solve
