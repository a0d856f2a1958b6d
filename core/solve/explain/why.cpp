#include "solve/candidates/candidates.h"
#include "solve/explain/explain.h"
#include "solve/explain/sentences.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>

namespace cleave::solve {
namespace {

std::string_view roleWord(Role role) {
  switch (role) {
    case Role::LayerInput: return "input";
    case Role::Weight: return "weight";
    case Role::Bias: return "bias";
    case Role::Target: return "labels";
    case Role::Down: return "down weight";
    case Role::Routing: return "routing";
    default: return "operand";
  }
}

/// Walks from a value back to the choice that decided it, one link per node.
class WhyChain {
 public:
  WhyChain(const Problem& problem, const Solution& solution, Engine engine)
      : m_problem(problem),
        m_graph(*problem.graph),
        m_solution(solution),
        m_isFirst(engine != Engine::Optimal),
        m_variables(problem) {}

  std::vector<WhyLink> from(ValueId value) {
    for (ValueId at = value; at.isValid();) at = explain(at);
    return std::move(m_links);
  }

 private:
  struct Asked {
    NodeId node;
    ValueId value;
    std::span<const Read> reads;
    std::vector<Placement> placements;  ///< of the reads
    Candidates candidates;
    std::size_t chosen = 0;  ///< index into candidates.open
  };

  SentenceBuilder sentence() const { return {m_graph, m_variables}; }
  bool isSplit(ValueId v) const { return m_solution.of(v).isSplit(); }
  std::string words(ValueId v) const { return inWords(m_solution.of(v), m_graph.shapeOf(v)); }
  NodeId deciderOf(ValueId v) const { return m_variables.decider(m_graph.value(v).producer); }

  void add(NodeId node, ValueId value, Sentence sentence) { m_links.push_back({node, value, std::move(sentence)}); }

  /// Adds the link of this value and returns the value to explain next; invalid at the end of the chain.
  ValueId explain(ValueId value) {
    Asked asked = ask(value);
    explainRedistribution(asked);
    if (m_variables.layer(asked.node)) return explainLayer(asked);
    if (m_graph.node(asked.node).kind != graph::NodeKind::Call) return explainSource(asked);
    return isSplitHere(value) ? explainSplit(asked) : explainReplicated(asked);
  }

  const Placement& computed(ValueId value) const {
    const auto found = m_solution.computedAs.find(value);
    return found == m_solution.computedAs.end() ? m_solution.of(value) : found->second;
  }
  bool isSplitHere(ValueId value) const { return computed(value).isSplit(); }

  Asked ask(ValueId value) const {
    Asked asked{.node = deciderOf(value), .value = value};
    asked.reads = m_variables.reads(asked.node);
    for (const Read& read : asked.reads) asked.placements.push_back(m_solution.of(read.value));
    asked.candidates = candidatesOf(m_problem, m_variables, asked.node, asked.placements);
    const auto& open = asked.candidates.open;
    const auto& strategy = m_solution.strategies[asked.node.index()];
    const auto isChosen = [&](const Choice& choice) {
      if (strategy && (!choice.strategy || choice.strategy->strategy != strategy->strategy ||
                       choice.strategy->weight != strategy->weight))
        return false;
      const auto& results = m_graph.node(asked.node).results;
      return std::equal(results.begin(), results.end(), choice.results.begin(), choice.results.end(),
                        [&](ValueId v, const Placement& p) { return m_solution.of(v) == p; });
    };
    asked.chosen = static_cast<std::size_t>(std::find_if(open.begin(), open.end(), isChosen) - open.begin());
    return asked;
  }

  std::string reasonOf(const Asked& asked) const {
    return asked.chosen < asked.candidates.open.size() ? asked.candidates.open[asked.chosen].reason : std::string();
  }

  /// Number of candidates that the search refuted with all earlier steps as they are. The search tries candidates in
  /// order and takes the first plan. `optimal` compares plans and refutes no candidate.
  std::size_t refutedOf(const Asked& asked) const {
    return m_isFirst && asked.chosen < asked.candidates.open.size() ? asked.chosen : 0;
  }

  void explainRedistribution(const Asked& asked) {
    const auto found = m_solution.computedAs.find(asked.value);
    if (found == m_solution.computedAs.end()) return;
    add(asked.node, asked.value,
        sentence()
            .value(asked.value)
            .text(fmt::format(" is computed {} and then {}, as your settings allow. Its readers get it {}.",
                              inWords(found->second, m_graph.shapeOf(asked.value)),
                              found->second.isSplit() ? "gathered" : "cut", words(asked.value)))
            .finish());
  }

  // ---- layers

  ValueId explainLayer(const Asked& asked) {
    const ValueId result = m_graph.node(asked.node).results.front();
    if (asked.value != result) explainParameter(asked);
    const auto& open = asked.candidates.open;
    const auto& chosen = m_solution.strategies[asked.node.index()];
    auto s = sentence()
                 .node(asked.node)
                 .text(fmt::format(" is {}",
                                   chosen ? strategyText(*chosen, m_problem.context.worldSize) : "without a strategy"));
    if (const std::string reason = reasonOf(asked); !reason.empty()) s.text(fmt::format(": {}", reason));
    WhyLink link{.node = asked.node, .value = result};
    link.alternatives = alternativesOf(asked);
    if (open.size() > 1) {
      s.text(fmt::format(". {} of its {} strategies fit its inputs{}.", open.size(), link.alternatives.size() + 1,
                         refutedText(asked)));
      link.isFree = true;
      link.sentence = s.finish();
      m_links.push_back(std::move(link));
      return {};
    }
    if (const auto pins = removingPins(asked); !pins.empty()) {
      s.text(fmt::format(". Your {} {} no other strategy that fits.", pins.size() == 1 ? "pin" : "pins",
                         joined(pins, "and") + (pins.size() == 1 ? " leaves" : " leave")));
      link.isFree = true;
      link.sentence = s.finish();
      m_links.push_back(std::move(link));
      return {};
    }
    link.alternatives.clear();
    const std::size_t forcing = forcingRead(asked);
    if (forcing == asked.reads.size()) {
      s.text(whyOnlyStrategy(asked));
      link.sentence = s.finish();
      m_links.push_back(std::move(link));
      return {};
    }
    const Read& read = asked.reads[forcing];
    s.text(fmt::format(". No other strategy fits, because its {} ", roleWord(read.role)))
        .value(read.value)
        .text(fmt::format(" is {}.", words(read.value)));
    link.sentence = s.finish();
    m_links.push_back(std::move(link));
    return read.value;
  }

  std::string refutedText(const Asked& asked) const {
    const std::size_t refuted = refutedOf(asked);
    if (refuted == 0) return {};
    if (refuted + 1 == asked.candidates.open.size()) return ", but only this one led to a plan";
    return fmt::format(", but {} of them led to no plan", refuted);
  }

  void explainParameter(const Asked& asked) {
    auto s = sentence();
    s.value(asked.value).text(fmt::format(" is {}, because ", words(asked.value))).node(asked.node);
    const auto& strategy = m_solution.strategies[asked.node.index()];
    s.text(fmt::format(", which is {}, needs it",
                       strategy ? strategyText(*strategy, m_problem.context.worldSize) : "replicated"));
    const auto& users = m_graph.value(asked.value).users;
    if (users.size() > 1) {
      s.text("; ");
      for (std::size_t i = 1; i < users.size() && i < 4; ++i) s.text(i > 1 ? ", " : "").node(users[i]);
      s.text(users.size() > 4   ? fmt::format(" and {} more share it and follow", users.size() - 4)
             : users.size() > 2 ? " share it and follow"
                                : " shares it and follows");
    }
    add(asked.node, asked.value, s.text(".").finish());
  }

  /// Texts of the pins that removed strategies which would have fitted.
  std::vector<std::string> removingPins(const Asked& asked) const {
    std::vector<std::string> texts;
    for (const RuledOut& out : asked.candidates.ruledOut) {
      if (!out.pin.empty() && std::find(texts.begin(), texts.end(), ticked(out.pin)) == texts.end())
        texts.push_back(ticked(out.pin));
    }
    return texts;
  }

  /// The operand whose placement rules the other strategies out: the first that another strategy needs placed
  /// differently.
  std::size_t forcingRead(const Asked& asked) const {
    if (asked.candidates.ruledOut.empty()) return asked.reads.size();
    std::size_t weight = asked.reads.size();
    for (std::size_t i = 0; i < asked.reads.size(); ++i) {
      if (asked.reads[i].role == Role::LayerInput && isSplit(asked.reads[i].value)) return i;
      if (asked.reads[i].role == Role::Weight && weight == asked.reads.size()) weight = i;
    }
    if (weight < asked.reads.size()) return weight;
    if (!layerStrategiesOf(m_problem, m_variables, asked.node).refused.empty())
      return asked.reads.size();  // the sizes left one strategy, not the replicated input
    for (std::size_t i = 0; i < asked.reads.size(); ++i) {
      if (asked.reads[i].role == Role::LayerInput) return i;
    }
    return asked.reads.size();
  }

  std::string whyOnlyStrategy(const Asked& asked) const {
    std::vector<std::string> refused;
    for (const rules::Refusal& refusal : layerStrategiesOf(m_problem, m_variables, asked.node).refused) {
      if (std::find(refused.begin(), refused.end(), refusal.reason) == refused.end()) refused.push_back(refusal.reason);
    }
    if (refused.empty())
      return m_problem.context.worldSize == 1 ? "." : ". The candidate set has no other strategy for it.";
    return fmt::format(". It has no other strategy here: {}.", joined(refused, "and"));
  }

  /// The other strategies of a layer, each with the reason why it was not chosen.
  std::vector<std::string> alternativesOf(const Asked& asked) const {
    std::vector<std::string> found;
    const auto& open = asked.candidates.open;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (i == asked.chosen) continue;
      found.push_back(fmt::format("{}: also fits its inputs, but {}", nameWithPlacement(asked, open[i]),
                                  i < refutedOf(asked) ? "led to no plan"
                                  : m_isFirst          ? "comes later in candidate order"
                                                       : "this plan uses another"));
    }
    for (const RuledOut& out : asked.candidates.ruledOut)
      found.push_back(fmt::format("{}: {}", nameWithPlacement(asked, out.choice), out.why));
    for (const rules::Refusal& refusal : layerStrategiesOf(m_problem, m_variables, asked.node).refused) {
      const std::string name(rules::toText(refusal.strategy));
      found.push_back(fmt::format("{}: impossible, {}",
                                  countNamed(asked, name) > 1 ? inEqualParts(name, m_problem.context.worldSize) : name,
                                  refusal.reason));
    }
    return found;
  }

  /// Strategies with equal names differ in the placement of the result.
  std::string nameWithPlacement(const Asked& asked, const Choice& choice) const {
    std::string name = nameOf(choice, m_problem.context.worldSize);
    if (countNamed(asked, name) < 2 || choice.results.empty()) return name;
    return fmt::format("{} as {}", name, choice.results.front().text());
  }

  /// Number of strategies with that name, possible or not.
  std::size_t countNamed(const Asked& asked, const std::string& name) const {
    const auto isNamed = [&](const Choice& choice) { return nameOf(choice, m_problem.context.worldSize) == name; };
    const auto& open = asked.candidates.open;
    auto count = static_cast<std::size_t>(std::count_if(open.begin(), open.end(), isNamed));
    for (const RuledOut& out : asked.candidates.ruledOut) count += isNamed(out.choice);
    for (const rules::Refusal& refusal : layerStrategiesOf(m_problem, m_variables, asked.node).refused)
      count += rules::toText(refusal.strategy) == name;
    return count;
  }

  // ---- everything else

  ValueId explainSource(const Asked& asked) {
    auto s = sentence().value(asked.value).text(fmt::format(" is {}", words(asked.value)));
    if (const std::string reason = reasonOf(asked); !reason.empty()) s.text(fmt::format(": {}", reason));
    add(asked.node, asked.value, s.text(".").finish());
    return {};
  }

  void addOtherClaims(const Asked& asked, SentenceBuilder& s) const {
    std::vector<std::string> others, refuted;
    for (std::size_t i = 0; i < asked.candidates.open.size(); ++i) {
      if (i != asked.chosen)
        (i < refutedOf(asked) ? refuted : others)
            .push_back(nameOf(asked.candidates.open[i], m_problem.context.worldSize));
    }
    if (!others.empty()) s.text(fmt::format(" Its operator could also give {}.", joined(others, "or")));
    if (!refuted.empty())
      s.text(fmt::format(" Its operator could also give {}, but that led to no plan.", joined(refuted, "or")));
  }

  ValueId explainSplit(const Asked& asked) {
    const ValueId next = decidingOperand(asked);
    auto s = sentence()
                 .value(asked.value)
                 .text(fmt::format(" is {}", inWords(computed(asked.value), m_graph.shapeOf(asked.value))));
    if (next.isValid()) s.text(" because ").value(next).text(fmt::format(" is {}", words(next)));
    if (const std::string reason = reasonOf(asked); !reason.empty()) s.text(fmt::format(": {}", reason));
    s.text(".");
    addOtherClaims(asked, s);
    add(asked.node, asked.value, s.finish());
    return next;
  }

  /// Every value before a replicated value is replicated too, so one link covers them, down to the nearest layer with
  /// another choice.
  ValueId explainReplicated(const Asked& asked) {
    auto s = sentence().value(asked.value).text(" is replicated");
    const bool readsSplit =
        std::any_of(asked.reads.begin(), asked.reads.end(), [&](const Read& r) { return isSplit(r.value); });
    if (readsSplit) {
      if (const std::string reason = reasonOf(asked); !reason.empty()) s.text(fmt::format(": {}", reason));
      add(asked.node, asked.value, s.text(".").finish());
      return {};
    }
    const NodeId layer = decidingLayer(asked.node);
    if (!layer.isValid()) {
      s.text(asked.reads.empty() ? ": every rank creates it itself."
                                 : ": it is computed only from inputs and constants, which are replicated.");
      add(asked.node, asked.value, s.finish());
      return {};
    }
    const ValueId result = m_graph.node(layer).results.front();
    s.text(" because all its inputs are replicated. The nearest layer before it is ").node(layer).text(".");
    add(asked.node, asked.value, s.finish());
    return result;
  }

  /// The latest layer with another choice from which a replicated value follows, else the latest layer. The walk stops
  /// at layers.
  NodeId decidingLayer(NodeId node) const {
    std::priority_queue<std::uint32_t> queue;
    std::set<std::uint32_t> seen;
    const auto pushReads = [&](NodeId n) {
      for (const Read& read : m_variables.reads(n)) {
        const NodeId before = deciderOf(read.value);
        if (seen.insert(before.raw()).second) queue.push(before.raw());
      }
    };
    pushReads(node);
    NodeId latest;
    while (!queue.empty()) {
      const NodeId n(queue.top());
      queue.pop();
      if (!m_variables.layer(n)) {
        pushReads(n);
        continue;
      }
      if (ask(m_graph.node(n).results.front()).candidates.open.size() > 1) return n;
      if (!latest.isValid()) latest = n;
    }
    return latest;
  }

  /// The split operand that is fewest steps from a layer; the first of several.
  ValueId decidingOperand(const Asked& asked) {
    if (m_hops.empty()) countHops();
    ValueId best;
    for (const Read& read : asked.reads) {
      if (isSplit(read.value) && (!best.isValid() || hopsOf(read.value) < hopsOf(best))) best = read.value;
    }
    return best;
  }

  std::uint32_t hopsOf(ValueId v) const { return m_hops[deciderOf(v).index()]; }

  void countHops() {
    constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max() / 2;
    m_hops.assign(m_graph.nodes.size(), kNever);
    for (NodeId n : m_variables.deciders()) {
      if (m_variables.layer(n)) {
        m_hops[n.index()] = 0;
        continue;
      }
      for (const Read& read : m_variables.reads(n)) {
        if (isSplit(read.value)) m_hops[n.index()] = std::min(m_hops[n.index()], hopsOf(read.value) + 1);
      }
    }
  }

  const Problem& m_problem;
  const Graph& m_graph;
  const Solution& m_solution;
  const bool m_isFirst;  ///< the plan is the first that the search found in candidate order
  const Variables m_variables;
  std::vector<WhyLink> m_links;
  std::vector<std::uint32_t> m_hops;  ///< by NodeId of steps: number of nodes back to the nearest layer along split
                                      ///< operands
};

}  // namespace

std::vector<WhyLink> why(const Problem& problem, const Solution& solution, Engine engine, ValueId value) {
  const Graph& graph = *problem.graph;
  const bool isKnown = value.index() < graph.values.size() && solution.placements.size() == graph.values.size() &&
                       solution.strategies.size() == graph.nodes.size();
  return isKnown ? WhyChain(problem, solution, engine).from(value) : std::vector<WhyLink>();
}

}  // namespace cleave::solve
