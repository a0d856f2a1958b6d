// Compares the text about a budget that no plan fits with all plans of small random models. The text claims that no
// plan fits, what the smallest plan needs, and which demands conflict. tests/support/seeds.h explains the models.
#include "base/quantities.h"
#include "solve/explain/explain.h"
#include "tests/support/brute_force.h"
#include "tests/support/optimal_support.h"
#include "tests/support/random_plans.h"
#include "tests/support/seeds.h"

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

constexpr std::size_t kMostPlans = 5'000;

/// The bytes of all plans, ascending; nullopt if there are too many to list.
std::optional<std::vector<std::int64_t>> bytesOfAll(const Problem& problem) {
  BruteForce all(problem);
  if (!all.run(kMostPlans)) return std::nullopt;
  std::vector<std::int64_t> bytes;
  for (const BrutePlan& plan : all.plans()) bytes.push_back(plan.bytes);
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

Problem within(const Problem& problem, std::int64_t budget) {
  Problem bound = problem;
  bound.cost.memoryBudget = budget;
  return bound;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Claims {
 public:
  explicit Claims(const Problem& problem) : m_problem(problem) {}
  std::size_t refused = 0, granted = 0, demanded = 0, unproved = 0;

  /// The first wrong claim; empty if all are right.
  std::string wrongAt(std::int64_t budget, const std::vector<std::int64_t>& all) {
    const Problem bound = within(m_problem, budget);
    const SolveResult result = solved(bound);
    const bool isFeasible = all.front() <= budget;
    if (result.solution) {
      ++granted;
      if (!isFeasible) return "a plan was found, but no plan fits";
      return result.optimum->cost().bytes() <= budget ? "" : "the plan exceeds the budget";
    }
    if (!result.isProved) return ++unproved, std::string();
    if (isFeasible) return fmt::format("a plan of {} B fits", all.front());
    ++refused;
    if (std::string wrong = wrongBytes(result, budget, all); !wrong.empty()) return wrong;
    return wrongCore(bound);
  }

 private:
  /// The named smallest plan must exist, and no plan may be smaller.
  std::string wrongBytes(const SolveResult& result, std::int64_t budget, const std::vector<std::int64_t>& all) const {
    const std::string& text = result.causes.front().reason;
    if (result.leastBytes != all.front())
      return fmt::format("the smallest plan needs {} B, not {}", all.front(), result.leastBytes);
    if (!solved(within(m_problem, result.leastBytes)).solution) return "no plan was found for the reported least bytes";
    if (solved(within(m_problem, result.leastBytes - 1)).solution)
      return "a plan was found for one byte less than the reported least bytes";
    for (const std::int64_t bytes : {budget, result.leastBytes - budget, result.leastBytes}) {
      if (!has(text, bytesText(bytes))) return fmt::format("{} is missing in: {}", bytesText(bytes), text);
    }
    return has(text, "Every plan needs more") ? "" : "\"Every plan needs more\" is missing in: " + text;
  }

  /// Demands must be named if and only if a plan fits without them.
  std::string wrongCore(const Problem& bound) {
    const auto core = irreducibleCore(bound, Engine::Optimal);
    if (!core) return core.error().message;
    if (core->outcome != CoreOutcome::HasCore) return {};
    const std::string text = core->core.text();
    Problem free = bound;
    free.pins.clear();
    free.rulesOff.clear();
    const auto all = bytesOfAll(free);
    if (!all) return {};
    const bool isDemanded = core->core.constraints.size() > 1;
    demanded += isDemanded;
    const bool fitsFree = all->front() <= *bound.cost.memoryBudget;
    if (isDemanded != fitsFree)
      return fmt::format("without demands the smallest plan needs {} B, but the text is: {}", all->front(), text);
    if (has(text, "under these demands") != isDemanded) return "the demands are wrong: " + text;
    const std::string where = fmt::format("{} per rank", bytesText(*bound.cost.memoryBudget));
    return has(text, where) ? "" : where + " is missing in: " + text;
  }

  const Problem& m_problem;
};

}  // namespace

class TestBudgetClaims : public QObject {
  Q_OBJECT
 private slots:
  void claimsHoldForRandomModels() {
    const test::Seeds seeds(300);
    std::size_t refused = 0, granted = 0, demanded = 0, unproved = 0;
    for (const std::uint64_t seed : seeds) {
      RandomProblem random(seed);
      const auto problem = random.build();
      const auto all = bytesOfAll(*problem);
      if (!all || all->empty()) continue;
      Claims claims(*problem);
      const std::int64_t least = all->front(), any = (*all)[random.number() % all->size()];
      for (const std::int64_t budget : {least, least - 1, any, any - 1, least / 2}) {
        const std::string wrong = claims.wrongAt(budget, *all);
        QVERIFY2(wrong.empty(), fmt::format("seed {}, budget {}: {}", seed, budget, wrong).c_str());
      }
      refused += claims.refused;
      granted += claims.granted;
      demanded += claims.demanded;
      unproved += claims.unproved;
    }
    qInfo("%zu budgets refused, %zu granted, %zu for demands, %zu not known", refused, granted, demanded, unproved);
    QVERIFY(unproved * 50 <= seeds.count());
    QVERIFY(!seeds.isFull() || (refused > 200 && granted > 200 && demanded > 10));
  }
};

QTEST_APPLESS_MAIN(TestBudgetClaims)
#include "tst_budget_claims.moc"
