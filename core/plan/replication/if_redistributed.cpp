#include "plan/replication/if_redistributed.h"

#include "solve/explain/relaxed.h"

#include <algorithm>

namespace cleave::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;
using rules::Placement;
using solve::Answer;
using solve::Change;
using solve::Choice;

/// With more readers a search is cheaper.
constexpr std::size_t kMostReaders = 64;

/// The state for questions with the same changes.
constexpr std::uint64_t kMostWork = 5'000'000;

std::string textOf(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) text += solve::toText(change) + '\n';
  return text;
}

/// True if readers must agree on the value's placement: false if it is replicated in every plan.
bool isPlaced(const Graph& graph, const solve::Variables& variables, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  return graph.node(producer).kind == graph::NodeKind::Call || !variables.isStep(producer);
}

/// The node, what reads the same values, what reads the values that these read beside, and so on. Empty: too many.
std::vector<NodeId> readersAround(const Graph& graph, const solve::Variables& variables, NodeId node) {
  std::vector<NodeId> nodes{node};
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    graph::forEachOperand(graph.node(nodes[at]), [&](ValueId value) {
      if (!isPlaced(graph, variables, value)) return;
      for (const NodeId user : graph.value(value).users) {
        if (std::find(nodes.begin(), nodes.end(), user) == nodes.end()) nodes.push_back(user);
      }
    });
    if (nodes.size() > kMostReaders) return {};
  }
  return nodes;
}

/// By node and result: nothing else sees it.
std::vector<std::vector<bool>> sharedAmong(const Graph& graph, const std::vector<NodeId>& nodes) {
  const auto isAmong = [&](NodeId node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); };
  std::vector<std::vector<bool>> shared;
  for (const NodeId node : nodes) {
    auto& ofNode = shared.emplace_back();
    for (const ValueId result : graph.node(node).results) {
      const auto& users = graph.value(result).users;
      const bool isOutput = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                        [&](const graph::Output& output) { return output.value == result; });
      ofNode.push_back(!isOutput && !users.empty() && std::all_of(users.begin(), users.end(), isAmong));
    }
  }
  return shared;
}

solve::Problem redistributing(solve::Problem problem) {
  problem.redistributable = {"*"};
  return problem;
}

solve::Problem widestOf(solve::Problem problem) {
  problem.pins.clear();
  problem.rulesOff.clear();
  problem.context.candidateSet = rules::CandidateSet::Full;
  problem.context.sequenceParallel = rules::SequenceParallel::Auto;
  return redistributing(std::move(problem));
}

}  // namespace

/// Asks the readers around a node, in a problem where all values may be redistributed.
struct IfRedistributed::Readers {
  Readers(solve::Problem all, const Progress& progress)
      : problem(std::move(all)),
        variables(problem),
        work(kMostWork, progress),
        domains(problem, std::make_shared<solve::CandidateTable>(), work),
        relaxation(problem, variables, domains, work) {}

  Answer agree(const std::vector<NodeId>& nodes, const solve::Narrowing& narrowing) {
    std::vector<bool> kept(problem.graph->nodes.size(), false);
    for (const NodeId node : nodes) kept[node.index()] = true;
    return relaxation.check(kept, narrowing);
  }

  /// With any placements at all.
  Answer agreeOnAny(const std::vector<NodeId>& nodes, Part part) {
    const int ranks = problem.context.worldSize;
    return agree(nodes, {.allowsChoice =
                             [&, ranks](NodeId node, const Choice& choice) {
                               return node != nodes[0] || plan::splits(choice, part, ranks);
                             },
                         .allowsPlacement = [](const Placement&) { return true; }});
  }

  /// Can the readers agree on even splits and replicated values, if all later values are replicated?
  Answer agreeAmongWhole(const std::vector<NodeId>& nodes, Part part) {
    if (!canAllBeWhole()) return Answer::Unknown;
    const int ranks = problem.context.worldSize;
    const auto shared = sharedAmong(*problem.graph, nodes);
    const auto isWholeBehind = [&](NodeId node, const Choice& choice) {
      const auto at = std::find(nodes.begin(), nodes.end(), node) - nodes.begin();
      const auto& isShared = shared[static_cast<std::size_t>(at)];
      for (std::size_t i = 0; i < isShared.size(); ++i) {
        if (!isShared[i] && !choice.results[i].isReplicated()) return false;
      }
      return true;
    };
    return agree(nodes, {.allowsChoice =
                             [&](NodeId node, const Choice& choice) {
                               return isWholeBehind(node, choice) &&
                                      (node != nodes[0] || plan::splits(choice, part, ranks));
                             },
                         .allowsPlacement = [](const Placement& p) { return p.isReplicated() || p.isPlainSplit(); }});
  }

  /// True if every node has a choice with all operands and results replicated.
  bool canAllBeWhole() {
    if (isWhole) return *isWhole;
    const auto& steps = variables.deciders();
    return *(isWhole = std::all_of(steps.begin(), steps.end(), [&](NodeId node) {
               const auto& row = domains.table().replicatedRow({problem, variables}, node);
               return std::any_of(row->open.begin(), row->open.end(), [](const Choice& choice) {
                 return std::all_of(choice.results.begin(), choice.results.end(),
                                    [](const Placement& p) { return p.isReplicated(); });
               });
             }));
  }

  const solve::Problem problem;
  const solve::Variables variables;
  solve::Work work;
  solve::Domains domains;
  solve::Relaxation relaxation;
  std::optional<bool> isWhole;
};

IfRedistributed::IfRedistributed(const solve::Problem& problem, const solve::Variables& variables,
                                 const Progress& progress)
    : m_problem(problem),
      m_variables(variables),
      m_progress(progress),
      m_isDemanded(!problem.pins.empty() || !problem.rulesOff.empty() || !problem.redistributable.empty()) {}
IfRedistributed::~IfRedistributed() = default;

Answer IfRedistributed::splits(NodeId node, Part part, const std::vector<Change>& changes) {
  if (const Answer answer = agreed(node, part, changes); answer != Answer::Unknown) return answer;
  const auto [possible, stand] = searched(node, changes);
  if (possible->has(stand, part)) return Answer::Holds;
  return possible->isKnown ? Answer::Fails : Answer::Unknown;
}

Answer IfRedistributed::agreed(NodeId node, Part part, const std::vector<Change>& changes) {
  const auto readers = readersAround(*m_problem.graph, m_variables, node);
  if (readers.empty()) return Answer::Unknown;
  if (!isInBlocks()) return agreed(readers, part, changes);
  const auto shared = sharedAmong(*m_problem.graph, readers);
  const std::size_t own = m_blocks->standOf(node).own;
  Alike alike{{}, part, textOf(changes)};
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const RepeatedBlocks::Stand stand = m_blocks->standOf(readers[i]);
    if (stand.own != own) return agreed(readers, part, changes);
    alike.readers.emplace_back(stand.node, shared[i]);
  }
  const auto [entry, isNew] = m_agreed.try_emplace(std::move(alike));
  if (isNew) entry->second = agreed(readers, part, changes);
  return entry->second;
}

Answer IfRedistributed::agreed(const std::vector<NodeId>& readers, Part part, const std::vector<Change>& changes) {
  if (!m_widest) m_widest = std::make_unique<Readers>(widestOf(m_problem), m_progress);
  if (m_widest->agreeOnAny(readers, part) == Answer::Fails) return Answer::Fails;
  if (m_isDemanded) return Answer::Unknown;
  const auto [entry, isNew] = m_readers.try_emplace(textOf(changes));
  if (isNew) {
    if (auto problem = changed(redistributing(m_problem), changes))
      entry->second = std::make_unique<Readers>(*std::move(problem), m_progress);
  }
  const bool isFound = entry->second && entry->second->agreeAmongWhole(readers, part) == Answer::Holds;
  return isFound ? Answer::Holds : Answer::Unknown;
}

bool IfRedistributed::isInBlocks() {
  if (m_isDemanded) return false;
  if (!m_blocks) m_blocks.emplace(*m_problem.graph, m_variables);
  return m_blocks->hasMany();
}

std::pair<const Possible*, NodeId> IfRedistributed::searched(NodeId node, const std::vector<Change>& changes) {
  const bool isInBlock = isInBlocks();
  const RepeatedBlocks::Stand stand = isInBlock ? m_blocks->standOf(node) : RepeatedBlocks::Stand{node};
  const std::string which = isInBlock ? fmt::format("block {}\n", stand.block) : "all\n";
  const auto [entry, isNew] = m_searched.try_emplace(which + textOf(changes));
  if (!isNew) return {&entry->second, stand.node};
  solve::Problem problem = redistributing(m_problem);
  if (isInBlock) problem.redistributable = m_blocks->valuesOf(stand.block);
  if (auto now = changed(std::move(problem), changes)) entry->second = possibleIn(*std::move(now), m_progress);
  return {&entry->second, stand.node};
}

std::optional<solve::Problem> IfRedistributed::changed(solve::Problem problem,
                                                       const std::vector<Change>& changes) const {
  for (const Change& change : changes) {
    auto next = solve::applied(problem, change);
    if (!next) return std::nullopt;
    problem = *std::move(next);
  }
  return problem;
}

}  // namespace cleave::plan
