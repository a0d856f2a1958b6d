#include "solve/explain/explain.h"
#include "solve/explain/relaxed.h"
#include "solve/explain/remedy.h"
#include "tests/solve/explain/core_nodes.h"
#include "tests/support/brute_force.h"
#include "tests/support/random_plans.h"
#include "tests/support/seeds.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

namespace {

constexpr std::size_t kMostPlans = 20'000;
constexpr int kQuestions = 6;

/// The problem under other demands.
Problem demanding(const Problem& problem, std::vector<Pin> pins, std::vector<std::string> rulesOff) {
  Problem other = problem;
  other.pins = std::move(pins);
  other.rulesOff = std::move(rulesOff);
  return other;
}

/// Checks all claims about one random problem by applying them. The result is the first wrong claim; empty if all hold.
class Claims {
 public:
  explicit Claims(std::uint64_t seed)
      : m_random(seed),
        m_problem(m_random.build()),
        m_engine(m_random.chance(2) ? Engine::Learning : Engine::Optimal) {}

  std::string run() {
    const BruteForce& all = plansOf(*m_problem);
    if (m_engine == Engine::Optimal && !all.plans().empty() && m_random.chance(3)) {
      m_problem->cost.memoryBudget =
          all.plans()[m_random.number() % all.plans().size()].bytes - m_random.pick({0, 0, 1});
    }
    m_result = test::solvedBy(m_engine, *m_problem);
    if (m_result.outcome == Outcome::NoSolution) {
      if (!m_result.isProved) return {};
      if (std::string wrong = checkCore(); !wrong.empty()) return describe(wrong);
    } else {
      for (int i = 0; i < kQuestions; ++i) {
        if (std::string wrong = checkQuestion(); !wrong.empty()) return describe(wrong);
      }
    }
    if (m_random.chance(3)) {
      if (std::string wrong = checkRemedies(); !wrong.empty()) return describe(wrong);
    }
    return {};
  }

  std::size_t impossible = 0, forbidden = 0, obtained = 0, unknown = 0, cores = 0, remedies = 0, elsewhere = 0,
              nowhere = 0;

 private:
  using BruteForce = test::BruteForce;

  std::string describe(const std::string& wrong) const {
    std::string text =
        fmt::format("{}\n{}, {} ranks, menu {}, sequence {}", wrong, toText(m_engine), m_problem->context.worldSize,
                    rules::toText(m_problem->context.candidateSet), rules::toText(m_problem->context.sequenceParallel));
    for (const Pin& pin : m_problem->pins) text += ", pin " + pin.text;
    for (const std::string& rule : m_problem->rulesOff) text += ", off " + rule;
    for (const std::string& value : m_problem->redistributable) text += ", redistribute " + value;
    if (m_problem->cost.memoryBudget) text += fmt::format(", budget {}", *m_problem->cost.memoryBudget);
    return text + "\n" + graph::toText(*m_problem->graph);
  }

  /// A problem and all its plans, or as many as may be listed.
  struct Listed {
    explicit Listed(const Problem& asked) : problem(asked), plans(problem), isAll(plans.run(kMostPlans)) {}
    const Problem problem;
    BruteForce plans;
    const bool isAll;
  };

  /// The plans, listed once for equal demands and settings, regardless of the budget.
  const BruteForce& plansOf(const Problem& problem) {
    std::string key = fmt::format("{} {} {}", problem.context.worldSize, rules::toText(problem.context.candidateSet),
                                  rules::toText(problem.context.sequenceParallel));
    for (const Pin& pin : problem.pins) key += " pin " + pin.text;
    for (const std::string& rule : problem.rulesOff) key += " off " + rule;
    for (const std::string& value : problem.redistributable) key += " redistribute " + value;
    auto& listed = m_listed[key];
    if (!listed) listed = std::make_unique<Listed>(problem);
    m_isListed = listed->isAll;
    return listed->plans;
  }

  // ---- why not

  Placement anyPlacement(const graph::Shape& shape) {
    if (shape.empty() || m_random.chance(6)) return {};
    const int rank = static_cast<int>(shape.size());
    const int first = static_cast<int>(m_random.number() % shape.size());
    Placement placement = Placement::split(first);
    if (m_random.chance(5))
      placement = Placement::joint(
          first, first + static_cast<int>(m_random.number() % static_cast<std::uint64_t>(rank - first)));
    if (m_random.chance(5) && m_problem->context.worldSize % 2 == 0) placement = placement.withReplicas(2);
    return placement;
  }

  std::string checkQuestion() {
    const Graph& graph = *m_problem->graph;
    const ValueId value(m_random.number() % graph.values.size());
    const NodeId node = graph.value(value).producer;
    std::optional<rules::Strategy> strategy;
    if (graph::layerShape(graph, node) && m_random.chance(2))
      strategy = static_cast<rules::Strategy>(m_random.number() % 12);
    const Placement placement = anyPlacement(graph.shapeOf(value));
    const auto answer = strategy ? whyNot(*m_problem, *m_result.solution, m_engine, node, *strategy)
                                 : whyNot(*m_problem, *m_result.solution, m_engine, value, placement);
    const std::string asked = fmt::format("why is {} not {}?", graph.value(value).name,
                                          strategy ? std::string(rules::toText(*strategy)) : placement.text());
    if (!answer) return fmt::format("{} {}", asked, answer.error().message);
    const auto has = [&](const Solution& plan) {
      if (!strategy) return plan.of(value) == placement;
      const auto& taken = plan.strategies[node.index()];
      return taken && effectiveStrategy(*taken, m_problem->context.worldSize) == *strategy;
    };
    std::string text = asked;
    for (const Sentence& sentence : answer->sentences) text += "\n  " + plainText(sentence);
    const std::string wrong = checkAnswer(*answer, has);
    return wrong.empty() ? wrong : text + "\n" + wrong;
  }

  std::string checkAnswer(const WhyNot& answer, const auto& has) {
    switch (answer.answer) {
      case WhyNotAnswer::IsSo: return has(*m_result.solution) ? "" : "the plan has it otherwise";
      case WhyNotAnswer::Impossible: {
        ++impossible;
        const bool isRefuted = anyPlan(demanding(*m_problem, {}, {}), has, std::nullopt);
        return isRefuted ? "a plan without any demands has it" : checkElsewhere(answer, has);
      }
      case WhyNotAnswer::Forbidden: {
        ++forbidden;
        const auto budget = m_engine == Engine::Optimal ? std::optional(m_problem->cost.budgetBytes()) : std::nullopt;
        if (anyPlan(*m_problem, has, budget)) return "a plan has it";
        return checkOffers(answer.core, has);
      }
      case WhyNotAnswer::Costs:
      case WhyNotAnswer::Possible: ++obtained; return checkPin(answer, has);
      case WhyNotAnswer::NotKnown: ++unknown; return "";
    }
    return "no answer";
  }

  /// The named settings must have a plan with it. If the text denies any plan, no settings may have one.
  std::string checkElsewhere(const WhyNot& answer, const auto& has) {
    std::string text;
    for (const Sentence& sentence : answer.sentences) text += plainText(sentence);
    if (answer.elsewhere.empty()) {
      if (text.find("in any plan") == std::string::npos && text.find("No plan on") == std::string::npos) return {};
      ++nowhere;
      Problem wide = demanding(*m_problem, {}, {});
      wide.context.candidateSet = rules::CandidateSet::Full;
      wide.context.sequenceParallel = rules::SequenceParallel::Auto;
      if (anyPlan(wide, has, std::nullopt)) return "a plan with other settings has it";
      wide.redistributable = {"*"};
      return anyPlan(wide, has, std::nullopt) ? "a plan that redistributes has it" : "";
    }
    ++elsewhere;
    Problem changed = *m_problem;
    for (const Change& change : answer.elsewhere) {
      auto next = applied(changed, change);
      if (!next) return next.error().message;
      changed = *std::move(next);
    }
    const SolveResult result = test::solvedBy(m_engine, changed);
    if (!result.solution) return "the named settings have no plan";
    return has(*result.solution) ? "" : "the plan with the named settings does not have it";
  }

  /// Searches by brute force; also false if there are too many plans to list.
  bool anyPlan(const Problem& problem, const auto& has, std::optional<std::int64_t> budget) {
    const BruteForce& all = plansOf(problem);
    return m_isListed && std::any_of(all.plans().begin(), all.plans().end(), [&](const test::BrutePlan& plan) {
             return (!budget || plan.bytes <= *budget) && has(all.solutionOf(plan));
           });
  }

  std::string checkPin(const WhyNot& answer, const auto& has) {
    if (!answer.pin) return "no pin is offered";
    auto pin = Pin::parse(*answer.pin);
    if (!pin) return pin.error().message;
    Problem pinned = *m_problem;
    pinned.pins.push_back(*pin);
    const SolveResult result = test::solvedBy(m_engine, pinned);
    if (!result.solution) return fmt::format("with {} there is no plan", *answer.pin);
    if (!has(*result.solution)) return fmt::format("the plan with {} does not have it", *answer.pin);
    if (answer.answer == WhyNotAnswer::Possible) return {};
    const PlanCost now = costOf(*m_problem, *m_result.solution), then = costOf(pinned, *result.solution);
    if (*answer.extraFs != then.femtoseconds() - now.femtoseconds())
      return fmt::format("it takes {} fs more", then.femtoseconds() - now.femtoseconds());
    if (*answer.extraBytes != then.bytes() - now.bytes())
      return fmt::format("it needs {} B more", then.bytes() - now.bytes());
    return {};
  }

  /// A change that a constraint offers must make the placement possible: this checks that a plan with it exists.
  std::string checkOffers(const Core& core, const auto& has) {
    for (const Constraint& constraint : core.constraints) {
      if (!constraint.offer) continue;
      const auto changed = applied(*m_problem, *constraint.offer);
      if (!changed) return changed.error().message;
      const BruteForce& all = plansOf(*changed);
      const bool isThere = std::any_of(all.plans().begin(), all.plans().end(),
                                       [&](const test::BrutePlan& plan) { return has(all.solutionOf(plan)); });
      if (m_isListed && !isThere) return fmt::format("no plan has it after: {}", toText(*constraint.offer));
    }
    return {};
  }

  // ---- cores

  std::string checkCore() {
    const auto found = irreducibleCore(*m_problem, m_engine);
    if (!found) return found.error().message;
    if (found->outcome == CoreOutcome::NotKnown) return ++unknown, "";
    if (found->outcome == CoreOutcome::HasSolution) return "a core search finds a solution of an unsolvable problem";
    ++cores;
    const Core& core = found->core;
    if (core.constraints.empty()) return "an empty core";
    std::vector<Pin> pins;
    std::vector<std::string> rulesOff;
    bool hasBudget = false;
    for (const Constraint& constraint : core.constraints) {
      hasBudget |= constraint.kind == ConstraintKind::Budget;
      if (constraint.kind == ConstraintKind::RuleOff) rulesOff.push_back(*constraint.lift);
      if (constraint.kind == ConstraintKind::Pin) pins.push_back(*Pin::parse(*constraint.lift));
    }
    const Engine engine = hasBudget ? Engine::Optimal : Engine::Learning;
    const auto isSolvable = [&](const Problem& problem) {
      return test::solvedBy(engine, problem).solution.has_value();
    };
    const std::string text = core.text();
    if (isSolvable(demanding(*m_problem, pins, rulesOff))) return "these can hold together: " + text;
    if (!core.isIrreducible) return ++unknown, "";
    for (std::size_t i = 0; i < pins.size(); ++i) {
      auto fewer = pins;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (!isSolvable(demanding(*m_problem, fewer, rulesOff)))
        return fmt::format("{} is not needed: {}", pins[i].text, text);
    }
    for (std::size_t i = 0; i < rulesOff.size(); ++i) {
      auto fewer = rulesOff;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (!isSolvable(demanding(*m_problem, pins, fewer)))
        return fmt::format("{} is not needed: {}", rulesOff[i], text);
    }
    if (hasBudget && !test::solvedBy(Engine::Learning, demanding(*m_problem, pins, rulesOff)).solution)
      return "the budget is not needed: " + text;
    if (!hasBudget) {
      if (std::string wrong = test::wrongNodes(demanding(*m_problem, pins, rulesOff), core); !wrong.empty())
        return wrong + ": " + text;
    }
    return checkOffers(core, [](const Solution&) { return true; });
  }

  // ---- remedies

  /// True for "91.7 µs (now 91.7 µs)", or "5.37 ns more than now" before the same cost.
  static bool saysTheSameTwice(const std::string& text) {
    if (text.find("more than now") != std::string::npos) return true;
    for (auto at = text.find(" (now "); at != std::string::npos; at = text.find(" (now ", at + 1)) {
      const auto begin = at + 6;
      const std::string now = text.substr(begin, text.find(')', begin) - begin);
      if (std::string_view(text).substr(0, at).ends_with(" " + now)) return true;
    }
    return false;
  }

  std::string checkRemedies() {
    const auto offered = remediesFor(*m_problem, m_result, m_engine, nullptr, {}, 100);
    if (!offered) return offered.error().message;
    for (const Remedy& remedy : *offered) {
      ++remedies;
      if (saysTheSameTwice(remedy.text)) return remedy.text + "\nhas one figure twice";
      const auto changed = applied(*m_problem, remedy.change);
      if (!changed) return remedy.text + "\n" + changed.error().message;
      const SolveResult result = test::solvedBy(m_engine, *changed);
      if (!result.solution) return remedy.text + "\nthere is no plan then";
      const Figures then = figuresOf(*changed, &*result.solution);
      if (then.femtoseconds != remedy.after.femtoseconds || then.rankBytes != remedy.after.rankBytes ||
          then.splitLayers != remedy.after.splitLayers) {
        return fmt::format("{}\nit is {} layers, {} B and {} fs", remedy.text, then.splitLayers, then.rankBytes,
                           then.femtoseconds);
      }
      if (remedy.before.hasPlan && then.femtoseconds >= remedy.before.femtoseconds &&
          then.rankBytes >= remedy.before.rankBytes) {
        return remedy.text + "\nit is not better in time or memory";
      }
      for (const Remedy& other : *offered) {
        const bool isOtherRanks = other.change.kind == ChangeKind::Ranks || remedy.change.kind == ChangeKind::Ranks;
        const bool isWorse =
            remedy.after.femtoseconds >= other.after.femtoseconds && remedy.after.rankBytes >= other.after.rankBytes;
        const bool isEqual =
            remedy.after.femtoseconds == other.after.femtoseconds && remedy.after.rankBytes == other.after.rankBytes;
        if (!isOtherRanks && isWorse && !isEqual) return remedy.text + "\nis beaten by\n" + other.text;
      }
    }
    return {};
  }

  test::RandomProblem m_random;
  const std::shared_ptr<Problem> m_problem;
  const Engine m_engine;
  SolveResult m_result;
  bool m_isListed = false;                                  ///< of the last brute force
  std::map<std::string, std::unique_ptr<Listed>> m_listed;  ///< by the demands and settings
};

}  // namespace

/// Every sentence of an explanation is a claim, which is checked on random models. For the models see
/// tests/support/seeds.h.
class TestExplainClaims : public QObject {
  Q_OBJECT
 private slots:
  void holdOnRandomModels() {
    const test::Seeds seeds(500);
    std::size_t impossible = 0, forbidden = 0, obtained = 0, unknown = 0, cores = 0, remedies = 0, elsewhere = 0,
                nowhere = 0;
    for (const std::uint64_t seed : seeds) {
      Claims claims(seed);
      const std::string wrong = claims.run();
      QVERIFY2(wrong.empty(), fmt::format("seed {}: {}", seed, wrong).c_str());
      impossible += claims.impossible;
      forbidden += claims.forbidden;
      obtained += claims.obtained;
      unknown += claims.unknown;
      cores += claims.cores;
      remedies += claims.remedies;
      elsewhere += claims.elsewhere;
      nowhere += claims.nowhere;
    }
    qInfo(
        "%zu impossible, %zu forbidden, %zu obtained, %zu not known, %zu cores, %zu remedies, %zu elsewhere, %zu "
        "nowhere",
        impossible, forbidden, obtained, unknown, cores, remedies, elsewhere, nowhere);
    QVERIFY(unknown * 50 <= seeds.count());
    QVERIFY(!seeds.isFull() || (impossible > 50 && forbidden > 50 && obtained > 50 && cores > 10 && remedies > 10 &&
                                elsewhere > 10 && nowhere > 10));
  }
};

QTEST_APPLESS_MAIN(TestExplainClaims)
#include "tst_explain_claims.moc"
