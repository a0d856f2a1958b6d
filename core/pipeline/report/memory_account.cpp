#include "pipeline/report/memory_account.h"

#include "base/quantities.h"
#include "pipeline/memory/predicted_memory.h"
#include "pipeline/report/node_names.h"
#include "plan/build/node_costs.h"

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {

using protocol::MemoryKind;

namespace {

constexpr std::size_t kNodesNamed = 3;
constexpr double kClearDifference = 0.1;
/// Smaller differences are not printed.
constexpr std::int64_t kFew = 1 << 10;

std::int64_t mostOf(const protocol::MemoryAccount& account, MemoryKind kind) {
  return account.most[static_cast<std::size_t>(kind)];
}

/// The nodes of the ATen graph whose saved bytes differ most from the prediction.
std::vector<NodeDifference> differences(const protocol::MemoryAccount& account, const plan::Plan& plan) {
  std::vector<NodeDifference> nodes(plan.graph->nodes.size());
  const auto costs = plan::costByNode(plan);
  for (const auto id : idRange<graph::NodeId>(nodes.size())) nodes[id.index()] = {id, 0, costs[id.index()].activations};
  for (const protocol::NodeBytes& saved : account.saved) {
    if (saved.node < 0 || saved.node >= std::ssize(plan.program->nodes)) continue;
    const graph::NodeId origin = plan.program->nodes[static_cast<std::size_t>(saved.node)].origin;
    if (origin.isValid() && origin.index() < nodes.size()) nodes[origin.index()].measured += saved.bytes;
  }
  const auto distance = [](const NodeDifference& node) { return std::abs(node.measured - node.predicted); };
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](const NodeDifference& a, const NodeDifference& b) { return distance(a) > distance(b); });
  if (nodes.size() > kNodesNamed) nodes.resize(kNodesNamed);
  std::erase_if(nodes, [&](const NodeDifference& node) { return distance(node) == 0; });
  return nodes;
}

bool isOff(const MemoryLine& line) {
  const std::int64_t predicted = line.predicted.value_or(line.measured);
  return std::abs(line.measured - predicted) >
         static_cast<std::int64_t>(kClearDifference * static_cast<double>(std::max(line.measured, predicted)));
}

}  // namespace

double MemoryComparison::off() const {
  const std::int64_t predicted = peak.predicted.value_or(0);
  return predicted == 0 ? 0 : static_cast<double>(peak.measured) / static_cast<double>(predicted) - 1;
}

MemoryComparison compareMemory(const protocol::MemoryAccount& account, const plan::Plan& plan, bool isTraining,
                               std::int64_t context, int replicas) {
  const plan::MemoryPrediction& forward = plan.memory;
  const std::int64_t peak = predictedMemory(plan, {isTraining, replicas});
  const solve::StepCost& step = plan.cost.sum;
  MemoryComparison comparison;
  const auto add = [&](MemoryKind kind, std::int64_t whenTrained, std::int64_t whenNot) {
    comparison.lines.push_back({protocol::toText(kind), mostOf(account, kind), isTraining ? whenTrained : whenNot});
  };
  add(MemoryKind::Parameters, step.parameters, forward.parameters);
  add(MemoryKind::Fixed, plan.cost.fixedBytes, forward.constants + forward.inputs);
  if (isTraining) {
    add(MemoryKind::Gradients, step.gradients, 0);
    add(MemoryKind::Optimizer, step.optimizer, 0);
    add(MemoryKind::Saved, step.activations, 0);
  }
  std::int64_t kept = 0;
  for (const MemoryLine& line : comparison.lines) kept += line.measured;
  comparison.lines.push_back({protocol::toText(MemoryKind::Transient), std::max<std::int64_t>(0, account.peak - kept),
                              isTraining ? peak - plan.cost.additiveBytes() : forward.peakActivations});
  comparison.lines.push_back(
      {protocol::toText(MemoryKind::Communication), mostOf(account, MemoryKind::Communication), std::nullopt});
  if (context > 0) comparison.lines.push_back({"context", context, std::nullopt});
  comparison.peak = {"peak", account.peak, peak};
  if (isTraining) comparison.largest = differences(account, plan);
  return comparison;
}

std::string memoryText(const MemoryComparison& comparison, const plan::Plan& plan, int rank) {
  std::string text = fmt::format("rank {}'s memory (predicted):", rank);
  const char* before = " ";
  bool isSavedOff = false;
  for (const MemoryLine& line : comparison.lines) {
    if (line.measured == 0 && line.predicted.value_or(0) == 0) continue;
    text += fmt::format("{}{} {}", before, bytesText(line.measured), line.name);
    if (line.predicted) text += fmt::format(" ({})", bytesText(*line.predicted));
    isSavedOff = isSavedOff || (line.name == protocol::toText(MemoryKind::Saved) && isOff(line));
    before = ", ";
  }
  text += fmt::format("; peak {} ({}), {:+.0f} %\n", bytesText(comparison.peak.measured),
                      bytesText(comparison.peak.predicted.value_or(0)), 100 * comparison.off());
  if (!isSavedOff) return text;
  before = "saved activations that differ from the prediction: ";
  for (const NodeDifference& node : comparison.largest) {
    if (std::abs(node.measured - node.predicted) < kFew) continue;
    text += fmt::format("{}{} {} ({})", before, nodeName(*plan.graph, node.node), bytesText(node.measured),
                        bytesText(node.predicted));
    before = ", ";
  }
  return text.back() == '\n' ? text : text + "\n";
}

}  // namespace cleave::pipeline
