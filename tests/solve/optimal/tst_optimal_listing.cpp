// Compares the plan and the next best plans with all plans of small problems: the fastest of each signature is listed.
#include "tests/support/brute_force.h"
#include "tests/support/optimal_support.h"
#include "tests/support/random_plans.h"
#include "tests/support/seeds.h"

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

constexpr std::size_t kMostPlans = 20'000;

/// The effective strategies of layers, and the redistributed values.
template <class AnyPlan>
std::string signatureOf(const Problem& problem, const AnyPlan& plan) {
  std::string text;
  for (const rules::ChosenStrategy& taken : plan.strategies) {
    if (taken) text += rules::toText(effectiveStrategy(*taken, problem.context.worldSize));
    text += ';';
  }
  for (const auto& [value, computed] : plan.computedAs)
    text += fmt::format("{}:{}>{};", value.raw(), computed.text(), plan.placements[value.index()].text());
  return text;
}

/// One random problem and its listing. The result is the first error, or empty.
class Comparison {
 public:
  explicit Comparison(std::uint64_t seed) : m_seed(seed), m_random(seed) {}
  bool isSkipped = false, isUnproved = false, isBinding = false, isShort = false;

  std::string run() {
    m_problem = m_random.build();
    if (m_random.chance(3)) m_problem->redistributable = {m_problem->graph->values.back().name};
    if (!m_problem->checkPins()) m_problem->redistributable.clear();
    BruteForce brute(*m_problem);
    isSkipped = !brute.run(kMostPlans) || brute.plans().empty();
    if (isSkipped) return {};
    if (!m_random.chance(4)) {
      const BrutePlan& some = brute.plans()[m_random.number() % brute.plans().size()];
      m_problem->cost.memoryBudget = some.bytes;
    }
    m_problem->cost.slackPercent = m_random.chance(2) ? 0 : 10;
    const std::string difference = compare(brute);
    if (difference.empty()) return {};
    return fmt::format("seed {}: {}\n{} ranks, budget {}, slack {} %\n{}", m_seed, difference,
                       m_problem->context.worldSize, m_problem->cost.memoryBudget.value_or(-1),
                       m_problem->cost.slackPercent, graph::toText(*m_problem->graph));
  }

 private:
  std::string compare(const BruteForce& brute) {
    const SolveResult result = solved(*m_problem);
    isUnproved = !result.isProved;
    if (!result.solution) return result.isProved ? "no plan" : "";
    const std::size_t k = 1 + m_random.number() % 12;
    Optimum::Listing listing;
    const auto plans = listed(*result.optimum, k, &listing);
    if (plans.empty() || !sameSolution(plans[0], *result.solution)) return "the list does not begin with the plan";
    std::map<std::string, Femtoseconds> fastest;
    for (const BrutePlan& plan : brute.plans()) {
      if (plan.bytes > m_problem->cost.budgetBytes()) {
        isBinding = true;
        continue;
      }
      const auto [known, isNew] = fastest.try_emplace(signatureOf(*m_problem, plan), plan.femtoseconds);
      if (!isNew) known->second = std::min(known->second, plan.femtoseconds);
    }
    std::vector<Femtoseconds> expected;
    const std::string first = signatureOf(*m_problem, plans[0]);
    for (const auto& [signature, femtoseconds] : fastest) {
      if (signature != first) expected.push_back(femtoseconds);
    }
    std::sort(expected.begin(), expected.end());
    isShort = expected.size() + 1 < k;
    if (auto difference = compareOthers(plans); !difference.empty()) return difference;
    if (plans.size() != std::min(k, expected.size() + 1))
      return fmt::format("{} plans instead of {}", plans.size(), std::min(k, expected.size() + 1));
    isUnproved = isUnproved || !listing.isProved;
    for (std::size_t i = 1; i < plans.size() && listing.isProved; ++i) {
      const Femtoseconds own = solve::costOf(*m_problem, plans[i]).femtoseconds();
      if (own != fastest.at(signatureOf(*m_problem, plans[i])))
        return fmt::format("plan {} is not the fastest of its kind", i);
      if (own != expected[i - 1]) return fmt::format("plan {} takes {} instead of {}", i, own, expected[i - 1]);
    }
    return {};
  }

  std::string compareOthers(const std::vector<Solution>& plans) const {
    std::set<std::string> signatures;
    for (const Solution& plan : plans) {
      if (!signatures.insert(signatureOf(*m_problem, plan)).second) return "two plans have one signature";
      if (solve::costOf(*m_problem, plan).bytes() > m_problem->cost.budgetBytes()) return "a plan exceeds the budget";
      if (!check(*m_problem, plan).empty()) return "the checker rejects a plan";
    }
    return {};
  }

  std::uint64_t m_seed;
  RandomProblem m_random;
  std::shared_ptr<Problem> m_problem;
};

}  // namespace

class TestOptimalListing : public QObject {
  Q_OBJECT

 private slots:
  void equalsBruteForce() {
    const Seeds seeds(3'000);
    std::uint64_t skipped = 0, unproved = 0, binding = 0, shorter = 0;
    for (const std::uint64_t seed : seeds) {
      Comparison comparison(seed);
      const std::string difference = comparison.run();
      QVERIFY2(difference.empty(), difference.c_str());
      skipped += comparison.isSkipped;
      unproved += comparison.isUnproved;
      binding += comparison.isBinding;
      shorter += comparison.isShort;
    }
    qInfo("%llu with plans over the budget, %llu with fewer than asked for, %llu not proved, %llu left out",
          static_cast<unsigned long long>(binding), static_cast<unsigned long long>(shorter),
          static_cast<unsigned long long>(unproved), static_cast<unsigned long long>(skipped));
    QVERIFY(unproved * 100 <= seeds.count());
    QVERIFY(!seeds.isFull() || (binding * 3 > seeds.count() && shorter * 10 > seeds.count()));
  }
};

QTEST_GUILESS_MAIN(TestOptimalListing)
#include "tst_optimal_listing.moc"
