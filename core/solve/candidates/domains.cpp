#include "solve/candidates/domains.h"

#include <algorithm>

namespace cleave::solve {
namespace {

/// Combinations of operands of one node; more are not tried.
constexpr std::uint64_t kMostCombinations = 200'000;
constexpr std::uint64_t kCombinationsBetweenPolls = 1 << 8;

Problem withoutDemands(Problem problem) {
  problem.pins.clear();
  problem.rulesOff.clear();
  return problem;
}

template <class T>
void addOnce(std::vector<T>& list, const T& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

}  // namespace

Domains::Domains(const Problem& problem, Work& work)
    : m_problem(withoutDemands(problem)),
      m_work(work),
      m_variables(m_problem),
      m_answers(m_problem, m_variables),
      m_reachable(problem.graph->values.size(), {Placement()}),
      m_isComplete(problem.graph->values.size(), true) {
  for (NodeId n : m_variables.steps()) reach(n);
}

Domains::Operands Domains::operandsOf(NodeId node) const {
  Operands operands;
  for (const Read& read : m_variables.reads(node)) {
    const auto known = std::find(operands.values.begin(), operands.values.end(), read.value);
    operands.places.push_back(static_cast<std::size_t>(known - operands.values.begin()));
    if (known == operands.values.end()) operands.values.push_back(read.value);
  }
  return operands;
}

template <class Use>
bool Domains::forEachAnswer(NodeId node, const Operands& operands, const std::vector<PlacementIds>& choices,
                            const Use& use) {
  std::vector<std::size_t> digits(choices.size(), 0);
  for (std::uint64_t tried = 1;; ++tried) {
    if (tried % kCombinationsBetweenPolls == 0) {
      m_work.spend(kCombinationsBetweenPolls);
      if (m_work.isOver() || tried > kMostCombinations) return false;
    }
    std::u16string reads;
    for (const std::size_t place : operands.places) reads += static_cast<char16_t>(choices[place][digits[place]]);
    const auto& answered = m_answers.of(node, reads);
    for (const PlacementIds& written : answered.writes) {
      if (!use(written)) return false;
    }
    // Later operands change nothing about a conflict that earlier ones cause.
    std::size_t digit = digits.size();
    if (answered.writes.empty() && !operands.places.empty()) {
      digit = 1 + *std::max_element(operands.places.begin(),
                                    operands.places.begin() + static_cast<std::ptrdiff_t>(answered.lastCulprit) + 1);
      std::fill(digits.begin() + static_cast<std::ptrdiff_t>(digit), digits.end(), 0);
    }
    while (digit > 0 && ++digits[digit - 1] == choices[digit - 1].size()) digits[--digit] = 0;
    if (digit == 0) return true;
  }
}

void Domains::reach(NodeId node) {
  const auto writes = m_variables.writes(node);
  const Operands operands = operandsOf(node);
  bool isComplete = !m_work.isOver();
  std::vector<PlacementIds> choices;
  std::u16string key{static_cast<char16_t>(m_answers.classOf(node) & 0xffff),
                     static_cast<char16_t>(m_answers.classOf(node) >> 16)};
  for (const std::size_t place : operands.places) key += static_cast<char16_t>(place);
  for (ValueId v : operands.values) {
    isComplete = isComplete && m_isComplete[v.index()];
    PlacementIds& ids = choices.emplace_back();
    for (const Placement& placement : m_reachable[v.index()]) ids.push_back(m_answers.intern(placement));
    key += static_cast<char16_t>(ids.size());
    key.append(ids.begin(), ids.end());
  }
  if (isComplete && !m_written.contains(key)) {
    std::vector<PlacementIds> all(writes.size());
    isComplete = forEachAnswer(node, operands, choices, [&](const PlacementIds& written) {
      for (std::size_t i = 0; i < writes.size(); ++i) addOnce(all[i], written[i]);
      return true;
    });
    if (isComplete) m_written.emplace(key, std::move(all));
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!writes[i].isValid()) continue;
    m_isComplete[writes[i].index()] = isComplete;
    if (!isComplete) continue;
    for (const PlacementId id : m_written.at(key)[i]) addOnce(m_reachable[writes[i].index()], m_answers.placement(id));
  }
}

bool Domains::isSource(ValueId value) const {
  const NodeId producer = m_problem.graph->value(value).producer;
  return m_problem.graph->node(producer).kind != graph::NodeKind::Call && m_variables.isStep(producer);
}

bool Domains::fits(ValueId value, const Placement& placement) const {
  return placement.localShape(m_problem.graph->shapeOf(value), m_problem.context.worldSize).has_value();
}

const std::vector<Placement>& Domains::of(ValueId value) {
  const auto [found, isNew] = m_domains.try_emplace(value.raw());
  if (!isNew) return found->second;
  std::vector<Placement>& domain = found->second;
  domain = {Placement()};
  if (isSource(value)) return domain;
  const Graph& graph = *m_problem.graph;
  const auto add = [&](const Placement& placement) {
    if (fits(value, placement)) addOnce(domain, placement);
  };
  for (int dim = 0; dim < static_cast<int>(graph.shapeOf(value).size()); ++dim) add(Placement::split(dim));
  const auto addKnownTo = [&](NodeId n) {
    const auto& layer = m_variables.layer(n);
    if (!layer) return;
    for (const auto& option : rules::layerOptions(graph, n, *layer, m_problem.context).offered) {
      if (layer->input == value) add(option.input);
      if (layer->weight == value) add(option.weight);
      if (layer->bias == value) add(option.bias);
      if (layer->down == value && option.down) add(*option.down);
      if (graph.node(n).results.front() == value) add(option.result);
    }
  };
  addKnownTo(graph.value(value).producer);
  for (NodeId user : graph.value(value).users) addKnownTo(user);
  for (const Placement& placement : m_reachable[value.index()]) add(placement);
  return domain;
}

Answer Domains::gives(ValueId value, const Placement& placement) {
  const NodeId node = m_variables.decider(m_problem.graph->value(value).producer);
  const auto writes = m_variables.writes(node);
  const auto at = static_cast<std::size_t>(std::find(writes.begin(), writes.end(), value) - writes.begin());
  const PlacementId wanted = m_answers.intern(placement);
  const Operands operands = operandsOf(node);
  std::vector<PlacementIds> choices;
  bool isComplete = true;
  for (ValueId v : operands.values) {
    isComplete = isComplete && m_isComplete[v.index()];
    PlacementIds& ids = choices.emplace_back();
    for (const Placement& p : of(v)) ids.push_back(m_answers.intern(p));
  }
  bool isFound = false;
  const bool isAll = forEachAnswer(node, operands, choices, [&](const PlacementIds& written) {
    isFound = written[at] == wanted;
    return !isFound;
  });
  if (isFound) return Answer::Holds;
  return isAll && isComplete ? Answer::Fails : Answer::Unknown;
}

}  // namespace cleave::solve
