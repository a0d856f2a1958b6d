#pragma once
/// Graphs of one layer as text, and the strategies of that layer, for the tests of strategies.
#include "rules/strategies.h"

#include <QtGlobal>

#include <fmt/ranges.h>

namespace cleave::test {

using rules::CandidateSet;
using rules::LayerStrategies;
using rules::LayerStrategy;
using rules::SequenceParallel;
using rules::Strategy;
using rules::StrategyContext;

/// A graph and its last layer.
struct Asked {
  graph::Graph graph;
  graph::NodeId node;
  graph::LayerShape layer;
};

inline std::optional<Asked> ask(const std::string& text) {
  auto graph = graph::parseGraph(text);
  if (!graph) {
    qWarning("%s in\n%s", graph.error().message.c_str(), text.c_str());
    return std::nullopt;
  }
  std::optional<Asked> asked;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    if (const auto layer = graph::layerShape(*graph, graph::NodeId(i))) asked = Asked{*graph, graph::NodeId(i), *layer};
  }
  if (!asked) qWarning("no layer in\n%s", text.c_str());
  return asked;
}

inline LayerStrategies layerStrategiesOf(const Asked& asked, const StrategyContext& context) {
  return rules::layerStrategies(asked.graph, asked.node, asked.layer, context);
}

/// "row(S(2), S(1), bias R) -> R, all_reduce after"
inline std::string textOf(const LayerStrategy& option, const graph::LayerShape& layer) {
  std::string out = fmt::format("{}({}", toText(option.strategy), option.input.text());
  if (layer.kind != graph::LayerKind::CrossEntropy) out += ", " + option.weight.text();
  if (layer.bias.isValid()) out += ", bias " + option.bias.text();
  if (layer.down.isValid()) out += ", down " + option.down->text();
  out += ") -> " + option.result.text();
  if (option.before) out += fmt::format(", {} before", toText(*option.before));
  if (option.after) out += fmt::format(", {} after", toText(*option.after));
  return out;
}

/// nn.Linear stores its weight as [out, in].
inline std::string linear(const std::string& lead, int in, int out, bool hasBias) {
  return fmt::format(
      "x: f32[{0},{1}] = input\n"
      "fc.weight: f32[{2},{1}] = parameter\n"
      "{3}"
      "y: f32[{0},{2}] = aten::linear(x, fc.weight, {4})\n"
      "return y=y\n",
      lead, in, out, hasBias ? fmt::format("fc.bias: f32[{}] = parameter\n", out) : "", hasBias ? "fc.bias" : "None");
}

/// GPT-2's Conv1D stores its weight as [in, out].
inline std::string conv1d(const std::string& op, const std::string& lead, int in, int out) {
  const bool hasBias = op == "aten::addmm";
  return fmt::format(
      "x: f32[{0},{1}] = input\n"
      "c.weight: f32[{1},{2}] = parameter\n"
      "{3}"
      "y: f32[{0},{2}] = {4}({5}x, c.weight)\n"
      "return y=y\n",
      lead, in, out, hasBias ? fmt::format("c.bias: f32[{}] = parameter\n", out) : "", op, hasBias ? "c.bias, " : "");
}

inline std::string embedding(const std::string& lead, int vocabulary, int hidden) {
  return fmt::format(
      "ids: i64[{0}] = input\n"
      "wte.weight: f32[{1},{2}] = parameter\n"
      "y: f32[{0},{2}] = aten::embedding(wte.weight, ids, -1, false, false)\n"
      "return y=y\n",
      lead, vocabulary, hidden);
}

inline std::string crossEntropy(int classes) {
  return fmt::format(
      "x: f32[6,{}] = input\n"
      "labels: i64[6] = input\n"
      "y: f32[] = aten::cross_entropy_loss(x, labels, None, 1, -100, 0.0)\n"
      "return y=y\n",
      classes);
}

/// A projection whose result is sliced along its last dimension. Each piece is viewed as heads of `headSize`.
inline std::string fused(const std::vector<int>& sizes, int headSize, const std::string& split) {
  int out = 0;
  for (int size : sizes) out += size;
  std::string text = fmt::format(
      "x: f32[2,6,12] = input\nfc.weight: f32[{0},12] = parameter\nfc.bias: f32[{0}] = parameter\n"
      "y: f32[2,6,{0}] = aten::linear(x, fc.weight, fc.bias)\n",
      out);
  std::string pieces, types;
  int start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = fmt::format("p{}", i);
    if (split == "slice") {
      text += fmt::format("{}: f32[2,6,{}] = aten::slice.Tensor(y, -1, {}, {}, 1)\n", name, sizes[i], start,
                          start + sizes[i]);
    }
    pieces += (i ? ", " : "") + fmt::format("{}: f32[2,6,{}]", name, sizes[i]);
    start += sizes[i];
  }
  if (split == "sizes") text += fmt::format("{} = aten::split_with_sizes(y, [{}], 2)\n", pieces, fmt::join(sizes, ","));
  std::string outputs;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += fmt::format("h{0}: f32[2,6,{1},{2}] = aten::view(p{0}, [2,6,{1},{2}])\n", i, sizes[i] / headSize, headSize);
    outputs += (i ? ", " : "") + fmt::format("h{0}=h{0}", i);
  }
  return text + "return " + outputs + "\n";
}

inline StrategyContext on(int ranks, CandidateSet candidateSet = CandidateSet::Optimum,
                          SequenceParallel sequence = SequenceParallel::Off) {
  return {ranks, candidateSet, sequence};
}
inline constexpr auto kOptimum = CandidateSet::Optimum;
inline constexpr auto kFull = CandidateSet::Full;

}  // namespace cleave::test
