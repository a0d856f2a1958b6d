#include "solve/explain/remedy.h"

#include "base/quantities.h"
#include "solve/checker.h"
#include "solve/explain/core_finder.h"
#include "solve/wording.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

namespace cleave::solve {
namespace {

constexpr int kMostRanks = 1024;
constexpr int kMostRanksTried = 64;
/// All solves together; a remedy that takes longer to find is none.
constexpr std::int64_t kTotalMs = 2000;
/// Of each kind of change that names something.
constexpr std::size_t kMostOfAKind = 8;

std::optional<int> parseRanks(std::string_view text) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc() || end != text.data() + text.size() || ranks < 1 || ranks > kMostRanks) return std::nullopt;
  return ranks;
}

Result<void> lift(Problem& problem, const std::string& text) {
  const auto at = std::find_if(problem.pins.begin(), problem.pins.end(), [&](const Pin& pin) { return pin.text == text; });
  if (at == problem.pins.end()) return fail(ErrorCode::BadUsage, "There is no pin `{}` to lift.", text);
  problem.pins.erase(at);
  return {};
}

Result<void> switchOn(Problem& problem, const std::string& rule) {
  const auto at = std::find(problem.rulesOff.begin(), problem.rulesOff.end(), rule);
  if (at == problem.rulesOff.end()) return fail(ErrorCode::BadUsage, "The rule of `{}` is not switched off.", rule);
  problem.rulesOff.erase(at);
  return {};
}

Result<void> change(Problem& problem, const Change& change) {
  switch (change.kind) {
    case ChangeKind::AddPin: {
      CLEAVE_TRY(Pin pin, Pin::parse(change.argument));
      problem.pins.push_back(std::move(pin));
      return {};
    }
    case ChangeKind::LiftPin: return lift(problem, change.argument);
    case ChangeKind::RuleOn: return switchOn(problem, change.argument);
    case ChangeKind::Redistribute: problem.redistributable.push_back(change.argument); return {};
    case ChangeKind::FullMenu: problem.context.menu = rules::Menu::Full; return {};
    case ChangeKind::SequenceParallel: {
      const auto mode = rules::parseSequenceParallel(change.argument);
      if (!mode) return fail(ErrorCode::BadUsage, "Sequence parallelism is `off`, `on` or `auto`, not `{}`.", change.argument);
      problem.context.sequenceParallel = *mode;
      return {};
    }
    case ChangeKind::Ranks: {
      const auto ranks = parseRanks(change.argument);
      if (!ranks) return fail(ErrorCode::BadUsage, "`{}` is no number of ranks from 1 to {}.", change.argument, kMostRanks);
      problem.context.worldSize = *ranks;
      return {};
    }
  }
  return {};
}


class Remedies {
 public:
  Remedies(const Problem& problem, const SolveResult& result, Engine engine, const ConflictCard* card, const Progress& progress)
      : m_problem(problem),
        m_graph(*problem.graph),
        m_result(result),
        m_card(card),
        // The same answer as the reference's, in fewer tries.
        m_engine(engine == Engine::Reference ? kExplaining : engine),
        m_deadline(kTotalMs, progress),
        m_before(figuresOf(problem, solutionBefore())) {}

  Result<std::vector<Remedy>> run(std::size_t most) {
    if (m_before.hasPlan && m_before.splitLayers == m_before.layers && !m_card) return std::vector<Remedy>();
    collect();
    for (const Change& candidate : m_candidates) {
      if (m_deadline.progress().cancelled()) return m_deadline.progress().cancelledError("looking for remedies");
      CLEAVE_TRY_VOID(tryOut(candidate));
    }
    CLEAVE_TRY_VOID(tryRanks());
    std::stable_sort(m_found.begin(), m_found.end(), isBetter);
    if (m_found.size() > most) m_found.resize(most);
    return std::move(m_found);
  }

 private:
  const Solution* solutionBefore() const { return m_result.solution ? &*m_result.solution : nullptr; }

  static bool isBetter(const Remedy& a, const Remedy& b) {
    const auto key = [](const Remedy& r) {
      // Other ranks are another question: at equal splits they come last.
      return std::tuple(-static_cast<std::int64_t>(r.after.splitLayers), r.change.kind == ChangeKind::Ranks, r.after.rankBytes, r.after.femtoseconds);
    };
    return key(a) < key(b);
  }

  // ---- what may help

  void add(ChangeKind kind, std::string argument = {}) {
    const auto ofKind = std::count_if(m_candidates.begin(), m_candidates.end(), [&](const Change& c) { return c.kind == kind; });
    Change change{kind, std::move(argument)};
    const bool isNew = std::find(m_candidates.begin(), m_candidates.end(), change) == m_candidates.end();
    if (isNew && static_cast<std::size_t>(ofKind) < kMostOfAKind) m_candidates.push_back(std::move(change));
  }

  void collect() {
    addLifts();
    for (const std::string& rule : m_problem.rulesOff) add(ChangeKind::RuleOn, rule);
    if (m_problem.context.menu != rules::Menu::Full) add(ChangeKind::FullMenu);
    for (const std::string_view word : rules::kSequenceParallelWords) {
      if (word != rules::toText(m_problem.context.sequenceParallel)) add(ChangeKind::SequenceParallel, std::string(word));
    }
    addRedistributions();
    addOtherForms();
  }

  /// Pins that the search ran into first, then the others.
  void addLifts() {
    const auto addPin = [&](const std::string& text) {
      const auto isIt = [&](const Pin& pin) { return pin.text == text; };
      if (std::any_of(m_problem.pins.begin(), m_problem.pins.end(), isIt)) add(ChangeKind::LiftPin, text);
    };
    if (m_card) std::for_each(m_card->pinsToLift.begin(), m_card->pinsToLift.end(), addPin);
    for (const Constraint& constraint : m_result.core.constraints) {
      if (constraint.lift) addPin(*constraint.lift);
    }
    for (const ConflictRecord& cause : m_result.causes) std::for_each(cause.pins.begin(), cause.pins.end(), addPin);
    for (const Pin& pin : m_problem.pins) add(ChangeKind::LiftPin, pin.text);
  }

  /// How a pattern of redistributable values names this one: a layer's result by its layer, in every block.
  std::string nameOfValue(ValueId value) const {
    const NodeId producer = m_graph.value(value).producer;
    return graph::layerShape(m_graph, producer) ? withoutIndices(graph::layerName(m_graph, producer)) : m_graph.value(value).name;
  }

  void addRedistributions() {
    const auto addCulprits = [&](const ConflictRecord& conflict) {
      for (ValueId v : conflict.culprits) {
        if (m_graph.node(m_graph.value(v).producer).kind == graph::NodeKind::Call) add(ChangeKind::Redistribute, nameOfValue(v));
      }
    };
    if (m_card) addCulprits(m_card->conflict);
    std::for_each(m_result.causes.begin(), m_result.causes.end(), addCulprits);
    if (!m_result.solution) return;
    for (NodeId n : idRange<NodeId>(m_graph.nodes.size())) {
      const auto& chosen = m_result.solution->strategies[n.index()];
      if (chosen && !rules::isSplit(*chosen, m_problem.context.worldSize) && hasParameter(n)) add(ChangeKind::Redistribute, nameOfValue(m_graph.node(n).results.front()));
    }
  }

  bool hasParameter(NodeId layer) const { return graph::layerShape(m_graph, layer)->weight.isValid(); }

  /// Other forms of the layers behind the conflict, here and in every block like theirs.
  void addOtherForms() {
    if (!m_card) return;
    for (const std::string& pin : m_card->pinsToTry) add(ChangeKind::AddPin, pin);
    for (const CulpritLine& line : m_card->culprits) {
      if (!line.chooser.isValid()) continue;
      const auto layer = graph::layerShape(m_graph, line.chooser);
      if (!layer) continue;
      const std::string pattern = withoutIndices(graph::layerName(m_graph, line.chooser));
      for (const auto& option : rules::layerOptions(m_graph, line.chooser, *layer, m_problem.context).offered) {
        add(ChangeKind::AddPin, fmt::format("{}={}", pattern, rules::toText(option.strategy)));
      }
    }
  }

  // ---- trying

  /// Under a card, a search that gets as far without any conflict helps as well.
  bool helps(const Figures& after, std::uint64_t conflicts) const {
    if (!m_before.hasPlan || after.splitLayers > m_before.splitLayers) return true;
    return m_card && conflicts == 0 && after.splitLayers == m_before.splitLayers;
  }

  Result<bool> tryOut(const Change& change) {
    if (m_deadline.isOver()) return false;
    auto changed = applied(m_problem, change);
    if (!changed) return false;  // this change does not fit this graph
    CLEAVE_TRY(const Attempt tried, attempt(*changed, m_deadline, m_engine));
    if (!tried.solution || !check(*changed, *tried.solution).empty()) return false;
    const Figures after = figuresOf(*changed, &*tried.solution);
    if (!helps(after, tried.conflicts)) return false;
    m_found.push_back({change, textOf(change, after), m_before, after});
    return true;
  }

  /// The nearest numbers of ranks below and above on which more splits.
  Result<void> tryRanks() {
    const int now = m_problem.context.worldSize;
    for (const int step : {-1, 1}) {
      for (int ranks = now + step; ranks > 1 && ranks <= kMostRanksTried; ranks += step) {
        if (m_deadline.isOver()) return {};
        CLEAVE_TRY(const bool helped, tryOut({ChangeKind::Ranks, std::to_string(ranks)}));
        if (helped) break;
      }
    }
    return {};
  }

  std::string textOf(const Change& change, const Figures& after) const {
    std::string what = toText(change);
    what.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(what.front())));
    if (!m_before.hasPlan) {
      return fmt::format("{}: then there is a plan, which splits {} of {} layers; each rank holds {} and a step takes {}.", what, after.splitLayers, after.layers,
                         bytesText(after.rankBytes), timeText(after.femtoseconds));
    }
    const std::string layers = after.splitLayers > m_before.splitLayers
                                   ? fmt::format("{} of {} layers are split instead of {}", after.splitLayers, after.layers, m_before.splitLayers)
                                   : fmt::format("as many layers are split ({} of {}), and the search meets no conflict", after.splitLayers, after.layers);
    return fmt::format("{}: {}; each rank holds {} (now {}) and a step takes {} (now {}).", what, layers, bytesText(after.rankBytes), bytesText(m_before.rankBytes),
                       timeText(after.femtoseconds), timeText(m_before.femtoseconds));
  }

  const Problem& m_problem;
  const Graph& m_graph;
  const SolveResult& m_result;
  const ConflictCard* m_card;
  const Engine m_engine;
  const Deadline m_deadline;
  const Figures m_before;
  std::vector<Change> m_candidates;
  std::vector<Remedy> m_found;
};

}  // namespace

std::string toText(const Change& change) {
  switch (change.kind) {
    case ChangeKind::AddPin: return fmt::format("pin {}", change.argument);
    case ChangeKind::LiftPin: return fmt::format("lift the pin {}", change.argument);
    case ChangeKind::RuleOn: return fmt::format("switch the rule of {} on again", change.argument);
    case ChangeKind::Redistribute: return fmt::format("allow {} to be gathered or cut after it is computed", change.argument);
    case ChangeKind::FullMenu: return "use the full menu";
    case ChangeKind::SequenceParallel:
      return change.argument == "auto" ? "let the solver decide on sequence parallelism" : fmt::format("turn sequence parallelism {}", change.argument);
    case ChangeKind::Ranks: return fmt::format("use {} rank{}", change.argument, change.argument == "1" ? "" : "s");
  }
  return {};
}

Result<Problem> applied(const Problem& problem, const Change& what) {
  Problem changed = problem;
  CLEAVE_TRY_VOID(change(changed, what));
  CLEAVE_TRY_VOID(changed.checkPins());
  return changed;
}

Figures figuresOf(const Problem& problem, const Solution* solution) {
  const Graph& graph = *problem.graph;
  Figures figures;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    const auto layer = graph::layerShape(graph, n);
    if (!layer || !layer->weight.isValid()) continue;
    ++figures.layers;
    if (solution && solution->strategies[n.index()]) figures.splitLayers += rules::isSplit(*solution->strategies[n.index()], problem.context.worldSize);
  }
  if (!solution) return figures;
  const PlanCost cost = costOf(problem, *solution);
  figures.hasPlan = true;
  figures.rankBytes = cost.bytes();
  figures.femtoseconds = cost.femtoseconds();
  return figures;
}

Result<std::vector<Remedy>> remediesFor(const Problem& problem, const SolveResult& result, Engine engine, const ConflictCard* card, const Progress& progress,
                                        std::size_t most) {
  return Remedies(problem, result, engine, card, progress).run(most);
}

}  // namespace cleave::solve
