#include "solve/optimal/step_table.h"

#include "solve/problem/structure.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Facts beyond structure that candidates and costs depend on.
void findFacts(const Source& source, NodeId node, Words& facts) {
  const Variables& variables = source.variables;
  facts.assign({source.model.costClass(node), variables.ruleOff(node).has_value()});
  for (const Read& read : variables.reads(node)) facts.push_back(source.model.mayShare(read.value));
  for (const ValueId value : variables.writes(node)) {
    facts.push_back(!value.isValid() ? 2u : variables.isRedistributable(value) ? 1u : 0u);
  }
}

/// The full menu shapes a layer's options by what comes behind it, which is no part of its structure.
std::vector<rules::StrategyOption> optionsOf(const Source& source, NodeId node) {
  const auto& layer = source.variables.layer(node);
  if (!layer || source.problem.context.menu != rules::Menu::Full) return {};
  return rules::layerOptions(*source.problem.graph, node, *layer, source.problem.context).offered;
}

bool sameOptions(const std::vector<rules::StrategyOption>& a, const std::vector<rules::StrategyOption>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.strategy == y.strategy && x.input == y.input && x.weight == y.weight && x.bias == y.bias &&
           x.result == y.result && x.before == y.before && x.after == y.after && x.reason == y.reason;
  });
}

}  // namespace

std::size_t WordsHash::operator()(std::span<const std::uint32_t> words) const {
  std::uint64_t seed = 0x9e3779b97f4a7c15ull + words.size();
  for (const std::uint32_t word : words) {
    seed = (seed ^ word) * 0xff51afd7ed558ccdull;
    seed ^= seed >> 32;
  }
  return static_cast<std::size_t>(seed);
}

void addNumber(Words& words, std::int64_t number) {
  words.push_back(static_cast<std::uint32_t>(number));
  words.push_back(static_cast<std::uint32_t>(number >> 32));
}

StepTable::StepTable() { intern(Placement()); }

std::uint32_t StepTable::intern(const Placement& placement) {
  const auto [found, isNew] = m_placementIds.try_emplace(placement, static_cast<std::uint32_t>(m_placements.size()));
  if (isNew) {
    m_placements.push_back(placement);
    m_texts.push_back(placement.text());
  }
  return found->second;
}

std::uint32_t StepTable::structureOf(const Source& source, NodeId node) {
  const Graph& graph = *source.problem.graph;
  if (m_structureOf.empty()) m_structureOf.assign(graph.nodes.size(), kNone);
  std::uint32_t& known = m_structureOf[node.index()];
  if (known != kNone) return known;
  findFacts(source, node, m_facts);
  auto options = optionsOf(source, node);
  auto& bucket = m_structures[structureHash(graph, source.variables, node)];
  const auto equal = std::find_if(bucket.begin(), bucket.end(), [&](const Structure& s) {
    return s.facts == m_facts && sameOptions(s.options, options) &&
           sameStructure(graph, source.variables, s.node, node);
  });
  if (equal != bucket.end()) return known = equal->index;
  bucket.push_back({node, m_facts, std::move(options), m_structureCount});
  return known = m_structureCount++;
}

void StepTable::addPins(const Source& source, NodeId node) {
  const auto writes = source.variables.writes(node);
  for (const std::uint32_t index : source.variables.pins(node)) {
    const auto id = static_cast<std::uint32_t>(m_pinIds.size());
    m_key.push_back(m_pinIds.try_emplace(source.problem.pins[index].text, id).first->second);
    const auto& targets = source.variables.pinTargets(index).values;
    for (const ValueId value : writes) {
      m_key.push_back(value.isValid() && std::binary_search(targets.begin(), targets.end(), value));
    }
  }
}

std::uint32_t StepTable::classOf(const Source& source, NodeId node) {
  m_key.clear();
  addPins(source, node);
  m_key.push_back(structureOf(source, node));
  return m_classes.try_emplace(m_key, static_cast<std::uint32_t>(m_classes.size())).first->second;
}

std::uint32_t StepTable::sharingOf(const Source& source, ValueId value) {
  if (!source.model.mayShare(value)) return 0;
  const auto& v = source.problem.graph->value(value);
  m_key.assign({source.model.costClass(v.producer), v.resultIndex});
  addType(v.type);
  const auto next = static_cast<std::uint32_t>(m_sharings.size()) + 1;
  return m_sharings.try_emplace(m_key, next).first->second;
}

std::uint32_t StepTable::holdingOf(const Source& source, ValueId value) {
  const CostModel::Holding holding = source.model.holdingOf(value);
  m_key.assign({holding.isHolder, holding.isPart, static_cast<std::uint32_t>(holding.cutAlong)});
  addNumber(m_key, holding.holderBytes);
  addType(source.problem.graph->value(value).type);
  return m_holdings.try_emplace(m_key, static_cast<std::uint32_t>(m_holdings.size())).first->second;
}

void StepTable::addType(const graph::TensorType& type) {
  m_key.push_back(static_cast<std::uint32_t>(type.dtype));
  for (const std::int64_t size : type.shape) addNumber(m_key, size);
}

std::uint32_t StepTable::identityOf(std::uint32_t classIndex, const Candidate& candidate) {
  Words key = candidate.writes;
  for (const Placement& placement : candidate.choice.computedAs) key.push_back(intern(placement));
  if (const auto& option = candidate.choice.strategy) {
    key.push_back(static_cast<std::uint32_t>(option->strategy));
    key.push_back(intern(option->input));
    key.push_back(option->before ? 1 + static_cast<std::uint32_t>(*option->before) : 0);
    key.push_back(option->after ? 1 + static_cast<std::uint32_t>(*option->after) : 0);
  }
  key.push_back(classIndex);
  return m_identities.try_emplace(std::move(key), static_cast<std::uint32_t>(m_identities.size())).first->second;
}

std::shared_ptr<const Answer> StepTable::answer(const Source& source, NodeId node, std::uint32_t classIndex,
                                                std::span<const std::uint32_t> operands) {
  Words key(operands.begin(), operands.end());
  key.push_back(classIndex);
  if (const auto known = m_answers.find(key); known != m_answers.end()) return known->second;
  std::vector<Placement> reads;
  for (const std::uint32_t id : operands) reads.push_back(m_placements[id]);
  auto answer = std::make_shared<Answer>();
  for (Choice& choice : candidatesOf(source.problem, source.variables, node, reads).open) {
    Candidate candidate;
    for (const Placement& placement : placementsOf(choice)) candidate.writes.push_back(intern(placement));
    candidate.cost = source.model.step(node, choice, reads);
    candidate.femtoseconds = candidate.cost.femtoseconds().count();
    candidate.bytes = candidate.cost.bytes();
    candidate.transient = source.model.leastTransient(node, choice, reads);
    const auto values = source.variables.reads(node);
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      if (!source.model.mayShare(values[i].value)) continue;
      if (const Shares parts = source.model.asksShared(node, choice, reads, i)) candidate.asking.emplace_back(i, parts);
    }
    for (std::size_t i = 0; i < candidate.writes.size(); ++i)
      candidate.pays.push_back(source.model.paysShared(node, choice, i));
    candidate.choice = std::move(choice);
    candidate.identity = identityOf(classIndex, candidate);
    m_memoryBytes += sizeof(Candidate) + 256;
    answer->open.push_back(std::move(candidate));
  }
  m_memoryBytes += sizeof(Answer) + key.size() * sizeof(std::uint32_t) + 64;
  m_answers.emplace(std::move(key), answer);
  return answer;
}

}  // namespace cleave::solve::optimal
