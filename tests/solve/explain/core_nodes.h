#pragma once
/// Checks the nodes that a core names.
#include "solve/explain/explain.h"
#include "solve/explain/relaxed.h"

namespace cleave::test {

/// The error if the named nodes do not fail together, or if fewer of them also fail; empty if the core is right.
inline std::string wrongNodes(const solve::Problem& problem, const solve::Core& core) {
  const Progress progress;
  solve::Work work(solve::kDefaultWork, progress);
  const solve::Variables variables(problem);
  solve::Domains domains(problem, std::make_shared<solve::CandidateTable>(), work);
  solve::Relaxation relaxation(problem, variables, domains, work);
  std::vector<bool> kept(problem.graph->nodes.size(), false);
  std::vector<graph::NodeId> named;
  for (const solve::Constraint& constraint : core.constraints) {
    const bool isDemand =
        constraint.kind == solve::ConstraintKind::Pin || constraint.kind == solve::ConstraintKind::RuleOff;
    if (isDemand || !constraint.node.isValid() || relaxation.isBackground(constraint.node)) continue;
    named.push_back(constraint.node);
    kept[constraint.node.index()] = true;
  }
  if (relaxation.check(kept) != solve::Answer::Fails) return "these nodes can hold together";
  for (const graph::NodeId n : named) {
    kept[n.index()] = false;
    if (relaxation.check(kept) == solve::Answer::Fails) {
      return fmt::format("`{}` is not needed", problem.graph->value(problem.graph->node(n).results.front()).name);
    }
    kept[n.index()] = true;
  }
  return {};
}

}  // namespace cleave::test
