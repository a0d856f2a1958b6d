#include "solve/explain/remedy.h"

#include "base/quantities.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <array>

namespace cleave::solve {
namespace {

/// Work limits of all tries together and of one try.
constexpr std::uint64_t kAllWork = 2 * kDefaultWork, kWorkOfATry = kDefaultWork / 2;
/// Limit of changes of each kind that has an argument.
constexpr std::size_t kMostOfAKind = 8;
/// Usual numbers of ranks: any number within one machine, then full machines.
constexpr std::array kUsualRanks{2, 3, 4, 5, 6, 7, 8, 16, 32, 64};
/// A change must lower time or memory at least to this ratio.
constexpr double kWorthwhile = 0.99;

/// What the user lacks, the most urgent first.
enum class Lack : std::uint8_t {
  Solution,
  Memory,  ///< the plan exceeds the budget, which only `optimal` respects
  Split,   ///< some layers are replicated
};

class Remedies {
 public:
  Remedies(const Problem& problem, const SolveResult& result, Engine engine, const ConflictCard* card,
           const Progress& progress)
      : m_problem(problem),
        m_graph(*problem.graph),
        m_result(result),
        m_card(card),
        m_engine(engine),
        m_work(kAllWork, progress),
        m_before(figuresOf(problem, solutionBefore())),
        m_lack(!m_before.hasPlan    ? Lack::Solution
               : isTooBig(m_before) ? Lack::Memory
                                    : Lack::Split),
        m_isNoneInBudget(m_lack == Lack::Solution &&
                         std::any_of(result.core.constraints.begin(), result.core.constraints.end(),
                                     [](const Constraint& c) { return c.kind == ConstraintKind::Budget; })) {}

  Result<std::vector<Remedy>> run(std::size_t most) {
    if (m_lack == Lack::Split && m_before.splitLayers == m_before.layers && !m_card) return std::vector<Remedy>();
    // More ranks reduce memory most reliably, so they are tried first, before the work limit is reached.
    if (m_lack == Lack::Memory) CLEAVE_TRY_VOID(tryRanks());
    collect();
    for (const Change& candidate : m_candidates) {
      if (m_work.progress().cancelled()) return m_work.progress().cancelledError("looking for remedies");
      CLEAVE_TRY_VOID(tryOut(candidate));
    }
    if (m_lack != Lack::Memory && !m_isNoneInBudget) CLEAVE_TRY_VOID(tryRanks());
    std::vector<Remedy> best;
    for (const Remedy& remedy : m_found) {
      const auto beatsIt = [&](const Remedy& other) { return beats(other, remedy); };
      if (std::none_of(m_found.begin(), m_found.end(), beatsIt)) best.push_back(remedy);
    }
    std::stable_sort(best.begin(), best.end(), [&](const Remedy& a, const Remedy& b) { return comesBefore(a, b); });
    if (best.size() > most) best.resize(most);
    return best;
  }

 private:
  const Solution* solutionBefore() const { return m_result.solution ? &*m_result.solution : nullptr; }
  bool isTooBig(const Figures& figures) const { return figures.rankBytes > m_problem.cost.budgetBytes(); }

  double timeRatio(const Figures& after) const {
    return static_cast<double>(after.femtoseconds) / std::max(1.0, static_cast<double>(m_before.femtoseconds));
  }
  double bytesRatio(const Figures& after) const {
    return static_cast<double>(after.rankBytes) / std::max(1.0, static_cast<double>(m_before.rankBytes));
  }
  /// True if it costs a greater share of time or memory than it saves of the other.
  bool isDear(const Remedy& remedy) const {
    return m_before.hasPlan && timeRatio(remedy.after) * bytesRatio(remedy.after) > 1;
  }

  /// Orders by what the user lacks. Expensive changes come after the others, and other numbers of ranks come last.
  bool comesBefore(const Remedy& a, const Remedy& b) const {
    const auto head = [&](const Remedy& r) {
      return std::tuple(isTooBig(r.after), r.change.kind == ChangeKind::Ranks, isDear(r));
    };
    if (head(a) != head(b)) return head(a) < head(b);
    if (m_lack == Lack::Memory && a.after.rankBytes != b.after.rankBytes) return a.after.rankBytes < b.after.rankBytes;
    if (a.after.femtoseconds != b.after.femtoseconds) return a.after.femtoseconds < b.after.femtoseconds;
    return a.after.rankBytes < b.after.rankBytes;
  }

  int ranksOf(const Remedy& remedy) const {
    return remedy.change.kind == ChangeKind::Ranks ? std::stoi(remedy.change.argument) : m_problem.context.worldSize;
  }

  /// True if `a` is not worse in anything and better in something.
  bool beats(const Remedy& a, const Remedy& b) const {
    const int ranksOfA = ranksOf(a), ranksOfB = ranksOf(b);
    if (a.after.femtoseconds > b.after.femtoseconds || a.after.rankBytes > b.after.rankBytes || ranksOfA > ranksOfB)
      return false;
    return a.after.femtoseconds < b.after.femtoseconds || a.after.rankBytes < b.after.rankBytes || ranksOfA < ranksOfB;
  }

  // ---- candidates

  void add(ChangeKind kind, std::string argument = {}) {
    const auto ofKind =
        std::count_if(m_candidates.begin(), m_candidates.end(), [&](const Change& c) { return c.kind == kind; });
    Change change{kind, std::move(argument)};
    const bool isNew = std::find(m_candidates.begin(), m_candidates.end(), change) == m_candidates.end();
    if (isNew && static_cast<std::size_t>(ofKind) < kMostOfAKind) m_candidates.push_back(std::move(change));
  }

  void collect() {
    addLifts();
    if (m_problem.cost.memoryBudget && m_lack == Lack::Solution && !m_isNoneInBudget) add(ChangeKind::LiftBudget);
    for (const std::string& rule : m_problem.rulesOff) add(ChangeKind::RuleOn, rule);
    if (m_problem.context.candidateSet != rules::CandidateSet::Full) add(ChangeKind::FullCandidateSet);
    for (const std::string_view word : rules::kSequenceParallelWords) {
      if (m_isNoneInBudget) break;
      if (word != rules::toText(m_problem.context.sequenceParallel))
        add(ChangeKind::SequenceParallel, std::string(word));
    }
    addRedistributions();
    addOtherStrategies();
  }

  /// Adds the pins of the conflicts first, then the others.
  void addLifts() {
    const auto addPin = [&](const std::string& text) {
      const auto isIt = [&](const Pin& pin) { return pin.text == text; };
      if (std::any_of(m_problem.pins.begin(), m_problem.pins.end(), isIt)) add(ChangeKind::LiftPin, text);
    };
    if (m_card) std::for_each(m_card->conflict.pins.begin(), m_card->conflict.pins.end(), addPin);
    for (const Constraint& constraint : m_result.core.constraints) {
      if (constraint.lift) addPin(*constraint.lift);
    }
    for (const ConflictRecord& cause : m_result.causes) std::for_each(cause.pins.begin(), cause.pins.end(), addPin);
    for (const Pin& pin : m_problem.pins) add(ChangeKind::LiftPin, pin.text);
  }

  /// The pattern that makes this value redistributable. For a layer's result it is the layer's name in every block.
  std::string nameOfValue(ValueId value) const {
    const NodeId producer = m_graph.value(value).producer;
    return graph::layerShape(m_graph, producer) ? withoutIndices(graph::layerName(m_graph, producer))
                                                : m_graph.value(value).name;
  }

  void addRedistributions() {
    const auto addCulprits = [&](const ConflictRecord& conflict) {
      for (ValueId v : conflict.culprits) {
        if (m_graph.node(m_graph.value(v).producer).kind == graph::NodeKind::Call)
          add(ChangeKind::Redistribute, nameOfValue(v));
      }
    };
    if (m_card) addCulprits(m_card->conflict);
    std::for_each(m_result.causes.begin(), m_result.causes.end(), addCulprits);
    if (!m_result.solution) return;
    for (NodeId n : idRange<NodeId>(m_graph.nodes.size())) {
      const auto& chosen = m_result.solution->strategies[n.index()];
      if (chosen && !rules::isSplit(*chosen, m_problem.context.worldSize) && hasParameter(n))
        add(ChangeKind::Redistribute, nameOfValue(m_graph.node(n).results.front()));
    }
  }

  bool hasParameter(NodeId layer) const { return graph::layerShape(m_graph, layer)->weight.isValid(); }

  /// Adds other strategies of the layers that caused the conflict, in every equal block.
  void addOtherStrategies() {
    if (!m_card) return;
    for (const std::string& pin : m_card->pinsToTry) add(ChangeKind::AddPin, pin);
    for (const CulpritLine& line : m_card->culprits) {
      if (!line.chooser.isValid()) continue;
      const auto layer = graph::layerShape(m_graph, line.chooser);
      if (!layer) continue;
      const std::string pattern = withoutIndices(graph::layerName(m_graph, line.chooser));
      for (const auto& option : rules::layerStrategies(m_graph, line.chooser, *layer, m_problem.context).offered) {
        add(ChangeKind::AddPin, demandFor(pattern, option.strategy));
      }
    }
  }

  // ---- trying

  /// True if the change improves what the user lacks without costing both time and memory. With a card, a search
  /// without conflicts helps too.
  bool helps(const Change& change, const Figures& after, std::uint64_t conflicts) const {
    if (m_lack == Lack::Solution) return true;
    const bool isFaster = timeRatio(after) < kWorthwhile, isSmaller = bytesRatio(after) < kWorthwhile;
    if (m_lack == Lack::Memory) return isSmaller;
    const bool isWorseInBoth = after.femtoseconds > m_before.femtoseconds && after.rankBytes > m_before.rankBytes;
    if (after.splitLayers < m_before.splitLayers || isWorseInBoth) return false;
    if (m_card && conflicts == 0) return true;
    const bool splitsMore = after.splitLayers > m_before.splitLayers;
    // More ranks are always faster. They are a remedy only if they split more layers.
    if (change.kind == ChangeKind::Ranks) return splitsMore && (isFaster || isSmaller);
    return isFaster || (splitsMore && isSmaller);
  }

  Result<bool> tryOut(const Change& change) {
    if (m_work.isOver()) return false;
    Work own(std::min(kWorkOfATry, m_work.left()), m_work.progress());
    const auto tried = tryChange(m_problem, change, m_engine, own);
    m_work.spend(own.spent());
    if (!tried) return false;  // the change does not fit this graph
    if (tried->answer != Answer::Holds || !helps(change, tried->figures, tried->conflicts)) return false;
    m_found.push_back({change, textOf(change, tried->figures, tried->conflicts), m_before, tried->figures});
    return true;
  }

  /// Tries the nearest usual numbers of ranks below and above that help: at most twice as many, or any number if memory
  /// is lacking.
  Result<void> tryRanks() {
    const int now = m_problem.context.worldSize;
    const int most = m_lack == Lack::Split ? 2 * now : kUsualRanks.back();
    for (auto ranks = kUsualRanks.rbegin(); ranks != kUsualRanks.rend(); ++ranks) {
      if (*ranks >= now || m_lack == Lack::Memory) continue;
      CLEAVE_TRY(const bool helped, tryOut({ChangeKind::Ranks, std::to_string(*ranks)}));
      if (helped) break;
    }
    for (const int ranks : kUsualRanks) {
      if (ranks <= now || ranks > most) continue;
      CLEAVE_TRY(const bool helped, tryOut({ChangeKind::Ranks, std::to_string(ranks)}));
      if (helped) break;
    }
    return {};
  }

  /// A note for engines that ignore the budget.
  std::string overBudgetText(const Figures& after) const {
    if (!isTooBig(after)) return {};
    const std::int64_t budget = m_problem.cost.budgetBytes();
    return fmt::format(" That is {} more than {}. The engine {} ignores the budget; optimal keeps to it.",
                       bytesText(after.rankBytes - budget), budgetName(m_problem.cost), toText(m_engine));
  }

  /// "91.7 µs (now 110 µs)". If both have the same digits, it shows the saving instead; a separate sentence shows a
  /// cost.
  template <class Amount, class Text>
  static std::string besideNow(Amount after, Amount now, const Text& text) {
    if (after == now) return text(after) + " (as now)";
    if (text(after) != text(now)) return fmt::format("{} (now {})", text(after), text(now));
    return after < now ? fmt::format("{} ({} less than now)", text(after), text(now - after)) : text(after);
  }

  static std::string gatheredText(const Figures& figures) {
    return figures.gathered == 0 ? std::string() : fmt::format(" ({} gathered after the product)", figures.gathered);
  }

  std::string textOf(const Change& change, const Figures& after, std::uint64_t conflicts) const {
    std::string what = toText(change);
    what.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(what.front())));
    if (!m_before.hasPlan) {
      return fmt::format("{}: a plan exists that splits {} of {}{}. It needs {} per rank and takes {} per step.{}",
                         what, after.splitLayers, counted(static_cast<std::int64_t>(after.layers), "layer"),
                         gatheredText(after), bytesText(after.rankBytes), timeText(after.femtoseconds),
                         overBudgetText(after));
    }
    const std::string layers = after.splitLayers == m_before.splitLayers
                                   ? fmt::format("the plan splits {} of {} layers, as now{}", after.splitLayers,
                                                 after.layers, gatheredText(after))
                                   : fmt::format("the plan splits {} of {} instead of {}{}", after.splitLayers,
                                                 counted(static_cast<std::int64_t>(after.layers), "layer"),
                                                 m_before.splitLayers, gatheredText(after));
    std::string price;
    if (after.femtoseconds > m_before.femtoseconds)
      price = fmt::format(" It takes {} longer per step.", timeText(after.femtoseconds - m_before.femtoseconds));
    if (after.rankBytes > m_before.rankBytes)
      price += fmt::format(" It needs {} more per rank.", bytesText(after.rankBytes - m_before.rankBytes));
    return fmt::format("{}: {}{}. It needs {} per rank and takes {} per step.{}{}", what, layers,
                       m_card && conflicts == 0 ? ", and the search has no conflict" : "",
                       besideNow(after.rankBytes, m_before.rankBytes, bytesText),
                       besideNow(after.femtoseconds, m_before.femtoseconds, timeText), price, overBudgetText(after));
  }

  const Problem& m_problem;
  const Graph& m_graph;
  const SolveResult& m_result;
  const ConflictCard* m_card;
  const Engine m_engine;
  Work m_work;
  const Figures m_before;
  const Lack m_lack;
  const bool m_isNoneInBudget;  ///< pipeline/solve/what_fits.h answers this, except for demands
  std::vector<Change> m_candidates;
  std::vector<Remedy> m_found;
};

}  // namespace

Result<std::vector<Remedy>> remediesFor(const Problem& problem, const SolveResult& result, Engine engine,
                                        const ConflictCard* card, const Progress& progress, std::size_t most) {
  return Remedies(problem, result, engine, card, progress).run(most);
}

}  // namespace cleave::solve
