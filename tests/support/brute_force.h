#pragma once
/// Lists every plan of a small problem by brute force: for each node all possible placements of its results, filtered
/// by the checker, and for each layer all its strategies. Shares no code with the engines. Costs come from the cost
/// model.
#include "solve/checker.h"
#include "solve/cost/cost_model.h"
#include "solve/problem/strategy_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace cleave::test {

struct BrutePlan {
  Femtoseconds femtoseconds;
  std::int64_t additiveBytes = 0;
  std::int64_t bytes = 0;                    ///< with the transient peak
  std::vector<rules::Placement> placements;  ///< by ValueId
  std::vector<rules::ChosenStrategy> strategies;
  std::map<graph::ValueId, rules::Placement> computedAs;
};

class BruteForce {
 public:
  explicit BruteForce(const solve::Problem& problem)
      : m_problem(problem),
        m_graph(*problem.graph),
        m_variables(problem),
        m_model(problem, m_variables),
        m_ranks(problem.context.worldSize) {
    for (const auto& value : m_graph.values) m_sizes.insert(value.type.shape.begin(), value.type.shape.end());
    collectBlocks();
    orderNodes();
    m_solution.placements.resize(m_graph.values.size());
    m_solution.strategies.resize(m_graph.nodes.size());
    m_taken.resize(m_graph.nodes.size());
    m_paid.assign(m_graph.values.size(), solve::kSharesNothing);
    m_memo.resize(m_graph.nodes.size());
    for (const solve::Pin& pin : problem.pins) m_targets.push_back(solve::targetsOf(pin, m_graph));
  }

  /// Returns false if there are more than `mostPlans` plans.
  bool run(std::size_t mostPlans) {
    m_mostPlans = mostPlans;
    return assign(0);
  }
  const std::vector<BrutePlan>& plans() const { return m_plans; }
  solve::Solution solutionOf(const BrutePlan& plan) const {
    return {plan.placements, plan.strategies, plan.computedAs};
  }

 private:
  using Placement = rules::Placement;
  struct Option {
    std::vector<Placement> results;
    rules::ChosenStrategy strategy;
    std::map<graph::ValueId, Placement> computedAs;
    solve::StepCost cost;
    std::vector<std::pair<graph::ValueId, solve::Shares>> asks, pays;
  };

  void collectBlocks() {
    for (graph::NodeId n : idRange<graph::NodeId>(m_graph.nodes.size())) {
      const auto layer = graph::layerShape(m_graph, n);
      if (!layer) continue;
      for (const auto& option : rules::layerStrategies(m_graph, n, *layer, m_problem.context).offered) {
        for (const Placement& placement : {option.input, option.weight, option.bias, option.result}) {
          if (placement.padding() > 0) m_paddings.insert(placement.padding());
          const auto& blocks = placement.blocks();
          for (std::size_t first = 0; first < blocks.size(); ++first) {
            for (std::size_t last = first + 1; last <= blocks.size(); ++last) {
              std::vector<rules::Block> part(blocks.begin() + static_cast<std::ptrdiff_t>(first),
                                             blocks.begin() + static_cast<std::ptrdiff_t>(last));
              if (std::find(m_blocks.begin(), m_blocks.end(), part) == m_blocks.end())
                m_blocks.push_back(std::move(part));
            }
          }
        }
      }
    }
  }

  /// Topological order; a parameter comes directly before its first reader.
  void orderNodes() {
    std::vector<bool> isDone(m_graph.nodes.size(), false);
    const auto add = [&](graph::NodeId n) {
      if (!isDone[n.index()]) m_order.push_back(n);
      isDone[n.index()] = true;
    };
    for (graph::NodeId n : idRange<graph::NodeId>(m_graph.nodes.size())) {
      if (m_graph.node(n).kind == graph::NodeKind::Parameter) continue;
      for (graph::ValueId v : graph::operandsOf(m_graph.node(n))) add(m_graph.value(v).producer);
      add(n);
    }
    for (graph::NodeId n : idRange<graph::NodeId>(m_graph.nodes.size())) add(n);
  }

  /// All placements that a tensor of this shape can have.
  const std::vector<Placement>& universe(const graph::Shape& shape) {
    auto& all = m_universes[shape];
    if (!all.empty()) return all;
    const auto add = [&](const Placement& placement) {
      if (!placement.isReplicated() && !placement.localShape(shape, m_ranks)) return;
      if (std::find(all.begin(), all.end(), placement) == all.end()) all.push_back(placement);
    };
    add({});
    const int rank = static_cast<int>(shape.size());
    for (int d = 0; d < rank; ++d) {
      for (int e = d; e < rank; ++e) {
        const Placement split = Placement::joint(d, e);
        add(split);
        for (int k = 2; k <= m_ranks; ++k) {
          if (m_ranks % k == 0) add(split.withReplicas(k));
        }
      }
      for (const std::int64_t padding : m_paddings) add(Placement::split(d).withPadding(padding));
      for (const auto& blocks : m_blocks) add(Placement::split(d).withBlocks(blocks));
      // A value split along an inner dimension gets equal blocks if a view merges that dimension with the outer one.
      const std::int64_t size = shape[static_cast<std::size_t>(d)];
      for (const std::int64_t count : m_sizes) {
        if (count < 2 || size % count != 0 || m_problem.redistributable.empty()) continue;
        add(Placement::split(d).withBlocks(
            std::vector<rules::Block>(static_cast<std::size_t>(count), {size / count, 1})));
      }
    }
    return all;
  }

  std::vector<Placement> operandsOf(graph::NodeId n) const {
    std::vector<Placement> placements;
    for (graph::ValueId v : graph::operandsOf(m_graph.node(n))) placements.push_back(m_solution.of(v));
    return placements;
  }

  bool holds(graph::NodeId n) const { return solve::checkNode(m_problem, m_solution, n).empty(); }

  void addOption(graph::NodeId n, std::vector<Option>& options) {
    Option option;
    for (graph::ValueId v : m_graph.node(n).results) option.results.push_back(m_solution.of(v));
    option.strategy = m_solution.strategies[n.index()];
    option.computedAs = m_solution.computedAs;
    if (m_variables.isStep(n)) {
      solve::Choice choice{option.results, option.strategy, {}, {}};
      if (!option.computedAs.empty()) {
        for (graph::ValueId v : m_graph.node(n).results) choice.computedAs.push_back(m_solution.computed(v));
      }
      std::vector<Placement> reads;
      const auto values = m_variables.reads(n);
      for (const solve::Read& read : values) reads.push_back(m_solution.of(read.value));
      option.cost = m_model.step(n, choice, reads);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (const auto parts = m_model.needsShared(n, choice, reads, i))
          option.asks.emplace_back(values[i].value, parts);
      }
      const auto writes = m_variables.writes(n);
      for (std::size_t i = 0; i < writes.size(); ++i) {
        if (const auto parts = m_model.paysShared(n, choice, i)) option.pays.emplace_back(writes[i], parts);
      }
    }
    options.push_back(std::move(option));
  }

  const std::vector<Option>& layerStrategiesOf(graph::NodeId n) {
    const auto [found, isNew] = m_memo[n.index()].try_emplace(keyOf(operandsOf(n)));
    std::vector<Option>& options = found->second;
    if (!isNew) return options;
    const auto others = std::exchange(m_solution.computedAs, {});
    if (const auto layer = graph::layerShape(m_graph, n)) {
      auto strategies = rules::layerStrategies(m_graph, n, *layer, m_problem.context).offered;
      const bool hasWhole = std::any_of(strategies.begin(), strategies.end(), [](const auto& option) {
        return option.strategy == rules::Strategy::Replicated;
      });
      if (!hasWhole) strategies.emplace_back();
      for (const auto& strategy : strategies) {
        m_solution.strategies[n.index()] = strategy;
        placeLayer(n, strategy.result, options);
      }
    } else {
      placeResults(n, 0, options);
    }
    m_solution.computedAs = others;
    return options;
  }

  /// The placement that a strategy produces, directly or redistributed.
  void placeLayer(graph::NodeId n, const Placement& made, std::vector<Option>& options) {
    const graph::ValueId v = m_graph.node(n).results[0];
    m_solution.placements[v.index()] = made;
    if (holds(n)) addOption(n, options);
    if (!m_variables.isRedistributable(v)) return;
    m_solution.computedAs[v] = made;
    for (const Placement& placement : universe(m_graph.shapeOf(v))) {
      m_solution.placements[v.index()] = placement;
      if (placement != made && holds(n)) addOption(n, options);
    }
    m_solution.computedAs.erase(v);
  }

  /// Tries every placement of every result, computed directly or redistributed. Redistribution is only between
  /// replicated and split values.
  void placeResults(graph::NodeId n, std::size_t index, std::vector<Option>& options) {
    const auto& results = m_graph.node(n).results;
    if (index == results.size()) {
      if (holds(n)) addOption(n, options);
      return;
    }
    const graph::ValueId v = results[index];
    const auto all = universe(m_graph.shapeOf(v));
    for (const Placement& placement : all) {
      m_solution.placements[v.index()] = placement;
      placeResults(n, index + 1, options);
      if (!m_variables.isRedistributable(v)) continue;
      for (const Placement& computed : all) {
        if (computed.isReplicated() == placement.isReplicated()) continue;
        m_solution.computedAs[v] = computed;
        placeResults(n, index + 1, options);
      }
      m_solution.computedAs.erase(v);
    }
  }

  std::string keyOf(const std::vector<Placement>& placements) const {
    std::string key;
    for (const Placement& p : placements) key += p.text() + ';';
    return key;
  }

  bool meetsPins() const {
    for (std::size_t i = 0; i < m_problem.pins.size(); ++i) {
      const solve::Pin& pin = m_problem.pins[i];
      for (graph::NodeId n : m_targets[i].layers) {
        const auto& chosen = m_solution.strategies[n.index()];
        const bool has =
            chosen && std::find(pin.strategies.begin(), pin.strategies.end(),
                                solve::effectiveStrategy(*chosen, m_problem.context.worldSize)) != pin.strategies.end();
        if (has == pin.forbids) return false;
      }
      for (graph::ValueId v : m_targets[i].values) {
        if (!pin.admits(m_solution.of(v), m_ranks)) return false;
      }
    }
    return true;
  }

  bool assign(std::size_t at) {
    if (at == m_order.size()) return !meetsPins() || addPlan();
    const graph::NodeId n = m_order[at];
    const auto& results = m_graph.node(n).results;
    const std::vector<Option>& options = layerStrategiesOf(n);
    for (const Option& option : options) {
      for (std::size_t i = 0; i < results.size(); ++i) m_solution.placements[results[i].index()] = option.results[i];
      m_solution.strategies[n.index()] = option.strategy;
      m_taken[n.index()] = &option;
      for (const auto& [v, computed] : option.computedAs) m_solution.computedAs[v] = computed;
      const bool goesOn = assign(at + 1);
      for (const auto& [v, computed] : option.computedAs) m_solution.computedAs.erase(v);
      if (!goesOn) return false;
    }
    return true;
  }

  bool addPlan() {
    if (m_plans.size() == m_mostPlans) return false;
    solve::PlanCost cost;
    std::fill(m_paid.begin(), m_paid.end(), solve::kSharesNothing);
    for (const Option* option : m_taken) {
      if (!option) continue;
      cost.sum += option->cost;
      for (const auto& [v, parts] : option->pays) m_paid[v.index()] |= parts;
    }
    for (const Option* option : m_taken) {
      if (!option) continue;
      for (const auto& [v, parts] : option->asks) {
        const auto unpaid = static_cast<solve::Shares>(parts & ~m_paid[v.index()]);
        if (unpaid != solve::kSharesNothing) cost.sum += m_model.shared(v, m_solution.of(v), unpaid);
        m_paid[v.index()] |= parts;
      }
    }
    if (cost.sum.summedGradients > 0) cost.sum += m_model.bucketStart();
    cost.fixedBytes = m_model.fixedBytes();
    cost.transientPeak = m_model.transientPeak(m_solution, cost.sum);
    m_plans.push_back({cost.femtoseconds(), cost.additiveBytes(), cost.bytes(), m_solution.placements,
                       m_solution.strategies, m_solution.computedAs});
    return true;
  }

  const solve::Problem& m_problem;
  const graph::Graph& m_graph;
  const solve::Variables m_variables;
  const solve::CostModel m_model;
  const int m_ranks;
  std::set<std::int64_t> m_sizes, m_paddings;
  std::vector<std::vector<rules::Block>> m_blocks;
  std::map<graph::Shape, std::vector<Placement>> m_universes;
  std::vector<graph::NodeId> m_order;
  std::vector<std::map<std::string, std::vector<Option>>> m_memo;  ///< by node, then operands; entries do not move
  std::vector<solve::PinTargets> m_targets;
  solve::Solution m_solution;
  std::vector<const Option*> m_taken;  ///< by node
  std::vector<solve::Shares> m_paid;   ///< by value: its shares that are already charged
  std::vector<BrutePlan> m_plans;
  std::size_t m_mostPlans = 0;
};

}  // namespace cleave::test
