#include "spec/plan/plan_spec.h"

namespace cleave::spec {
namespace {

constexpr std::string_view kRuleOff = "rule off: ", kRedistribute = "redistribute: ";

PlanSpec settled(PlanSpec spec) {
  spec.candidateSet = spec.candidates();
  spec.dropout = spec.dropsOut();
  return spec;
}

}  // namespace

rules::CandidateSet defaultCandidateSet(solve::Engine engine) {
  return engine == solve::Engine::Reference ? rules::CandidateSet::Optimum : rules::CandidateSet::Full;
}

rules::CandidateSet PlanSpec::candidates() const { return candidateSet.value_or(defaultCandidateSet(engine)); }

bool isSameProblem(const PlanSpec& a, const PlanSpec& b) { return settled(a) == settled(b); }

solve::Problem problemOf(std::shared_ptr<const graph::Graph> graph, const PlanSpec& spec) {
  solve::Problem problem;
  problem.graph = std::move(graph);
  problem.context = {spec.ranks, spec.candidates(), spec.sequenceParallel};
  problem.pins = spec.pins;
  problem.rulesOff = spec.rulesOff;
  problem.redistributable = spec.redistributable;
  problem.cost = spec.cost;
  return problem;
}

PlanSpec specOf(const solve::Problem& problem) {
  PlanSpec spec;
  spec.ranks = problem.context.worldSize;
  spec.candidateSet = problem.context.candidateSet;
  spec.sequenceParallel = problem.context.sequenceParallel;
  spec.pins = problem.pins;
  spec.rulesOff = problem.rulesOff;
  spec.redistributable = problem.redistributable;
  spec.cost = problem.cost;
  return spec;
}

std::vector<std::string> demandTexts(const PlanSpec& spec) {
  std::vector<std::string> texts;
  for (const solve::Pin& pin : spec.pins) texts.push_back(pin.text);
  for (const std::string& pattern : spec.rulesOff) texts.push_back(std::string(kRuleOff) + pattern);
  for (const std::string& pattern : spec.redistributable) texts.push_back(std::string(kRedistribute) + pattern);
  return texts;
}

Result<void> addDemands(const std::vector<std::string>& texts, PlanSpec& spec) {
  for (const std::string& text : texts) {
    if (text.starts_with(kRuleOff)) {
      spec.rulesOff.push_back(text.substr(kRuleOff.size()));
    } else if (text.starts_with(kRedistribute)) {
      spec.redistributable.push_back(text.substr(kRedistribute.size()));
    } else if (auto pin = solve::Pin::parse(text)) {
      spec.pins.push_back(*std::move(pin));
    } else {
      return fail(ErrorCode::BadInput, "plan.demands: {}", pin.error().message);
    }
  }
  return {};
}

}  // namespace cleave::spec
