#include "graph/freezing.h"

#include "base/wildcard.h"

#include <algorithm>

namespace cleave::graph {
namespace {

bool covers(const std::string& pattern, const Graph& graph, const std::string& parameter) {
  if (matchesWildcard(pattern, parameter)) return true;
  const auto tied = graph.tiedNames.find(parameter);
  return tied != graph.tiedNames.end() &&
         std::ranges::any_of(tied->second, [&](const std::string& other) { return matchesWildcard(pattern, other); });
}

std::vector<std::string> parametersOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.kind == NodeKind::Parameter) names.push_back(graph.value(node.results[0]).name);
  }
  return names;
}

Result<void> checkPatterns(const Graph& graph, const std::vector<std::string>& parameters, const char* flag,
                           const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const auto isCovered = [&](const std::string& name) { return covers(pattern, graph, name); };
    if (std::ranges::any_of(parameters, isCovered)) continue;
    return fail(ErrorCode::BadUsage, "{} \"{}\" does not match any parameter of the model. Its first parameter is {}.",
                flag, pattern, parameters.empty() ? "missing" : parameters.front());
  }
  return {};
}

}  // namespace

Result<void> freezeParameters(Graph& graph, const Freezing& asked) {
  if (!asked.isAsked()) return {};
  const std::vector<std::string> parameters = parametersOf(graph);
  CLEAVE_TRY_VOID(checkPatterns(graph, parameters, "--freeze", asked.freeze));
  CLEAVE_TRY_VOID(checkPatterns(graph, parameters, "--train-only", asked.trainOnly));
  const auto isCoveredBy = [&](const std::vector<std::string>& patterns, const std::string& name) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) { return covers(pattern, graph, name); });
  };
  bool isAnyLeft = false;
  for (const std::string& name : parameters) {
    const bool isLeftOut = !asked.trainOnly.empty() && !isCoveredBy(asked.trainOnly, name);
    if (isLeftOut || isCoveredBy(asked.freeze, name)) graph.frozen.insert(name);
    isAnyLeft = isAnyLeft || !graph.frozen.contains(name);
  }
  if (isAnyLeft) return {};
  return fail(ErrorCode::BadUsage, "No parameter is left to train. Relax --freeze or --train-only.");
}

}  // namespace cleave::graph
