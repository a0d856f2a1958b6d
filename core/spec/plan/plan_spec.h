#pragma once
/// The request for a plan: ranks, engine, candidates, demands and costs. Plain data, comparable.
///
/// A user asks with one, a solve answers one (pipeline::Solved::spec), and a plan keeps the one that it answers
/// (plan::Plan::spec). The same spec for the same graph gives the same plan.
///
///     PlanSpec{.ranks = 4, .engine = solve::Engine::Learning, .pins = {*solve::Pin::parse("lm_head=row")}}
#include "rules/strategy_context.h"
#include "solve/problem/cost_settings.h"
#include "solve/problem/pins.h"
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::spec {

/// Above the size of every existing tensor-parallel group; predictions cover 1-64 ranks.
inline constexpr int kMaxRanks = 1024;

struct PlanSpec {
  int ranks = 2;
  solve::Engine engine = solve::Engine::Optimal;
  std::optional<rules::CandidateSet> candidateSet;  ///< nullopt: the engine's default
  rules::SequenceParallel sequenceParallel = rules::SequenceParallel::Off;
  std::vector<solve::Pin> pins;
  std::vector<std::string> rulesOff, redistributable;  ///< see solve::Problem
  solve::CostSettings cost;
  bool dropout = false;    ///< train with the dropout of the folder's config: see `dropsOut`
  std::uint64_t seed = 0;  ///< of random inputs and initial values

  /// InputSpec::dropout for a folder that is solved with this spec.
  bool dropsOut() const { return cost.isTraining && dropout; }
  /// The candidate set, chosen or the engine's.
  rules::CandidateSet candidates() const;
  bool operator==(const PlanSpec&) const = default;
};

/// `optimum` for the reference engine, `full` for the others.
rules::CandidateSet defaultCandidateSet(solve::Engine engine);
/// Both specs give the same answer: they are equal but for fields that have no effect.
bool isSameProblem(const PlanSpec& a, const PlanSpec& b);

/// The problem that a spec poses of a graph, and the spec of a problem, without engine, dropout and seed.
solve::Problem problemOf(std::shared_ptr<const graph::Graph> graph, const PlanSpec& spec);
PlanSpec specOf(const solve::Problem& problem);

/// The demands as texts: pins as the user wrote them, "rule off: PATTERN", "redistribute: PATTERN".
std::vector<std::string> demandTexts(const PlanSpec& spec);
/// Adds such texts. BadInput names a text of another form.
Result<void> addDemands(const std::vector<std::string>& texts, PlanSpec& spec);

}  // namespace cleave::spec
