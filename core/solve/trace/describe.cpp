#include "solve/problem/redistribution.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/variables.h"
#include "solve/problem/wording.h"
#include "solve/trace/cursor.h"

namespace cleave::solve {
namespace {

/// Names of the nodes of an event. Events of a damaged file may have unknown nodes.
struct Names {
  const Trace& trace;
  const Graph& graph;

  explicit Names(const Trace& t) : trace(t), graph(*t.problem()->graph) {}
  bool knows(std::uint32_t node) const { return node < graph.nodes.size(); }
  bool isLayer(std::uint32_t node) const { return trace.variables().layer(NodeId(node)).has_value(); }
  std::string of(std::uint32_t node) const {
    return knows(node) ? nameOf(graph, NodeId(node), isLayer(node)) : fmt::format("node {}", node);
  }
  std::string strategy(const rules::LayerStrategy& option) const {
    return strategyText(option, trace.problem()->context.worldSize);
  }
  /// The result's name, for texts.
  std::string result(std::uint32_t node) const {
    return knows(node) ? nameOf(graph, NodeId(node), false) : fmt::format("node {}", node);
  }
};

std::string resultTexts(const Choice& choice) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < choice.results.size(); ++i) texts.push_back(placementText(choice, i));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string withReason(std::string sentence, const std::string& reason) {
  return reason.empty() ? sentence + "." : fmt::format("{}: {}.", sentence, reason);
}

std::string describeTry(const Names& names, const Event& event) {
  if (event.detail >= names.trace.choiceCount())
    return fmt::format("{} has an unknown choice.", ticked(names.of(event.node)));
  const Choice& choice = names.trace.choice(ChoiceId(event.detail));
  const std::string name = ticked(names.of(event.node));
  if (choice.strategy) {
    return withReason(fmt::format("{} chooses {}", name, names.strategy(*choice.strategy)), choice.reason);
  }
  if (choice.results.empty()) return withReason(fmt::format("{} has no result to place", name), choice.reason);
  const auto& node = names.graph.node(NodeId(event.node));
  return withReason(
      fmt::format("{} is {}", name, inWords(choice.results.front(), names.graph.shapeOf(node.results.front()))),
      choice.reason);
}

/// A rule names only the operator ("`add` needs ..."), so the node's name goes first.
std::string describeConflict(const Names& names, const Event& event) {
  const std::string& reason = names.trace.conflict(ConflictId(event.detail)).reason;
  const std::string name = ticked(names.of(event.node));
  return reason.starts_with(name) ? reason : fmt::format("{}: {}", name, reason);
}

std::string describeVisit(const Names& names, const Event& event) {
  const std::string name = ticked(names.of(event.node));
  if (event.detail == 0) return fmt::format("The search arrives at {}. No candidate fits.", name);
  if (event.detail == 1) return fmt::format("The search arrives at {}. 1 candidate fits.", name);
  return fmt::format("The search arrives at {}. {} candidates fit.", name, event.detail);
}

}  // namespace

std::string describe(const Trace& trace, const Event& event) {
  const Names names(trace);
  switch (event.type) {
    case EventType::Visit: return describeVisit(names, event);
    case EventType::Try: return describeTry(names, event);
    case EventType::Conflict:
      if (event.detail >= trace.conflictCount()) return fmt::format("{} fails.", ticked(names.of(event.node)));
      return describeConflict(names, event);
    case EventType::Backtrack:
      return fmt::format("The search goes back to {} and undoes {} assignment{}.", ticked(names.of(event.target)),
                         withThousands(event.detail), event.detail == 1 ? "" : "s");
    case EventType::Solution: return "Every node has a placement. This is the solution.";
    case EventType::Exhausted: return "No candidate is left at any node. There is no solution.";
    case EventType::Stopped: return "The search was stopped here.";
    case EventType::Ended: return "No solution found. The search stopped at its limit, so one may still exist.";
  }
  return {};
}

std::string toText(const Trace& trace, StepId step, const Event& event) {
  const Names names(trace);
  std::string line = fmt::format("{} {}", step, toText(event.type));
  switch (event.type) {
    case EventType::Visit: return line + fmt::format(" {} candidates={}", names.result(event.node), event.detail);
    case EventType::Try: {
      line += fmt::format(" {} #{}", names.result(event.node), event.ordinal + 1);
      if (event.detail >= trace.choiceCount()) return line;
      const Choice& choice = trace.choice(ChoiceId(event.detail));
      if (choice.strategy) line += fmt::format(" {}", names.strategy(*choice.strategy));
      return line + fmt::format(" -> {}", resultTexts(choice));
    }
    case EventType::Conflict: {
      line += fmt::format(" {}", names.result(event.node));
      if (event.detail >= trace.conflictCount()) return line;
      const ConflictRecord& conflict = trace.conflict(ConflictId(event.detail));
      std::vector<std::string> culprits;
      for (ValueId v : conflict.culprits) culprits.push_back(names.graph.value(v).name);
      line += fmt::format(" by [{}]", fmt::join(culprits, ", "));
      if (!conflict.pins.empty()) line += fmt::format(" pins [{}]", fmt::join(conflict.pins, ", "));
      return line + ": " + conflict.reason;
    }
    case EventType::Backtrack:
      return line +
             fmt::format(" {} -> {} undone={}", names.result(event.node), names.result(event.target), event.detail);
    default: return line;
  }
}

}  // namespace cleave::solve
