// Certificates of random models, with demands, training and budgets, are valid. Altered ones are refused, or still
// bound every plan.
#include "solve/cost/cost_model.h"
#include "solve/proof/certificate.h"
#include "tests/support/brute_force.h"
#include "tests/support/optimal_support.h"
#include "tests/support/random_plans.h"
#include "tests/support/seeds.h"

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

struct Case {
  std::shared_ptr<const Problem> problem;
  SolveResult result;
  Certificate certificate;
};

std::optional<Case> caseOf(std::shared_ptr<const Problem> problem) {
  Case made{std::move(problem), {}, {}};
  made.result = solved(*made.problem);
  if (!made.result.optimum) return std::nullopt;
  auto certificate = made.result.optimum->certificate();
  if (!certificate) return std::nullopt;
  made.certificate = *std::move(certificate);
  return made;
}

/// Alters one claim of a certificate and names the change; empty if the certificate has no such part.
std::string altered(Certificate& certificate, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return random() % n; };
  auto& claims = certificate.claims[below(certificate.claims.size())];
  auto& table = certificate.states[below(certificate.states.size())];
  auto& boundary = certificate.boundaries[below(certificate.boundaries.size())];
  switch (below(9)) {
    case 0: return claims[below(claims.size())] = Wide(0), "a claim is 0";
    case 1:
      if (auto& claim = claims[below(claims.size())]) return *claim += 1 + Wide(below(1'000'000)), "a claim is raised";
      return {};
    case 2: return claims[below(claims.size())].reset(), "a claim is removed";
    case 3: return boundary.base += 1 + Wide(below(1'000'000)), "a base is raised";
    case 4:
      return boundary.claims = static_cast<std::uint32_t>(below(certificate.claims.size() + 1)),
             "a boundary has another table";
    case 5:
      if (table.tokens.empty()) return {};
      return table.tokens[below(table.tokens.size())].paid ^= 1 + below(3), "a token has other paid collectives";
    case 6:
      if (table.tokens.empty()) return {};
      table.tokens[below(table.tokens.size())].placement =
          static_cast<std::uint32_t>(below(certificate.placements.size()));
      return "a token has another placement";
    case 7:
      if (certificate.order.size() < 2) return {};
      std::swap(certificate.order[below(certificate.order.size())], certificate.order[below(certificate.order.size())]);
      return "two steps are exchanged";
    default:
      if (certificate.order.empty()) return {};
      certificate.order.erase(certificate.order.begin() + static_cast<std::ptrdiff_t>(below(certificate.order.size())));
      certificate.boundaries.pop_back();
      return "a step is missing";
  }
}

/// Numbers far beyond any cost, and sizes that do not fit.
std::vector<std::pair<const char*, std::function<void(Certificate&)>>> hostile() {
  const Wide huge = (Wide(1) << 126) + ((Wide(1) << 126) - 1);
  return {
      {"a time weight of 0", [](Certificate& c) { c.timeWeight = 0; }},
      {"a negative weight", [](Certificate& c) { c.byteWeight = -1; }},
      {"a huge weight", [huge](Certificate& c) { c.timeWeight = huge; }},
      {"a huge claim", [huge](Certificate& c) { c.claims.front().front() = huge; }},
      {"a huge negative claim", [huge](Certificate& c) { c.claims.front().front() = -huge; }},
      {"a huge base", [huge](Certificate& c) { c.boundaries.front().base = huge; }},
      {"an index of a missing table", [](Certificate& c) { c.boundaries.back().states = 1'000'000; }},
      {"no boundaries", [](Certificate& c) { c.boundaries.clear(); }},
      {"no tables", [](Certificate& c) { c.states.clear(); }},
      {"an invalid node", [](Certificate& c) { c.order.front() = NodeId(1'000'000); }},
      {"a width that does not fit", [](Certificate& c) { c.states.back().width += 1; }},
      {"a placement twice", [](Certificate& c) { c.placements.push_back(c.placements.front()); }},
  };
}

}  // namespace

class TestCertificate : public QObject {
  Q_OBJECT
 private slots:
  void verifiesRandomModels() {
    std::uint64_t checked = 0, exact = 0, budgets = 0;
    for (const std::uint64_t seed : Seeds(1'500)) {
      const auto made = caseOf(RandomProblem(seed).build());
      if (!made) continue;
      const auto certified = verify(*made->problem, made->certificate);
      QVERIFY2(certified, fmt::format("seed {}: {}", seed, certified ? "" : certified.error().message).c_str());
      const Femtoseconds fastest = made->result.optimum->fastest().femtoseconds();
      QVERIFY2(certified->lowerBound <= fastest,
               fmt::format("seed {}: the bound exceeds the cost of a plan", seed).c_str());
      ++checked;
      budgets += made->certificate.byteWeight > 0;
      if (made->certificate.byteWeight > 0) continue;
      QVERIFY2(certified->lowerBound == fastest,
               fmt::format("seed {}: the bound is below the fastest plan", seed).c_str());
      ++exact;
    }
    qInfo("%llu are valid, %llu with the exact bound, %llu under a budget", static_cast<unsigned long long>(checked),
          static_cast<unsigned long long>(exact), static_cast<unsigned long long>(budgets));
    QVERIFY(exact > 0);
  }

  void verifiesALlama_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("isTraining");
    QTest::newRow("2 ranks") << 2 << false;
    QTest::newRow("4 ranks") << 4 << false;
    QTest::newRow("2 ranks, training") << 2 << true;
  }
  void verifiesALlama() {
    QFETCH(int, ranks);
    QFETCH(bool, isTraining);
    const auto problem = llama({.layers = 6}, ranks);
    problem->cost.isTraining = isTraining;
    const auto made = caseOf(problem);
    QVERIFY(made);
    const auto certified = verify(*problem, made->certificate);
    QVERIFY2(certified, certified ? "" : certified.error().message.c_str());
    QVERIFY(certified->lowerBound == made->result.optimum->fastest().femtoseconds());
    // Equal blocks share their states.
    QVERIFY(made->certificate.states.size() * 3 < made->certificate.boundaries.size());
  }

  /// If an altered certificate is still valid, its bound holds: no plan is faster.
  void alteredCertificatesProveNothingFalse() {
    std::mt19937_64 random(seed());
    std::uint64_t refused = 0, stillTrue = 0;
    for (const std::uint64_t seed : Seeds(400)) {
      const auto made = caseOf(RandomProblem(seed).build());
      if (!made) continue;
      const Femtoseconds fastest = made->result.optimum->fastest().femtoseconds();
      for (int round = 0; round < 10; ++round) {
        Certificate other = made->certificate;
        const std::string how = altered(other, random);
        if (how.empty()) continue;
        const auto certified = verify(*made->problem, other);
        refused += !certified;
        stillTrue += certified.has_value();
        if (certified)
          QVERIFY2(certified->lowerBound <= fastest,
                   fmt::format("seed {}: {}, but the certificate proves a bound above a plan", seed, how).c_str());
      }
    }
    qInfo("%llu refused, %llu still valid", static_cast<unsigned long long>(refused),
          static_cast<unsigned long long>(stillTrue));
    QVERIFY(refused > stillTrue);
  }

  void refusesHostileNumbers_data() {
    QTest::addColumn<int>("way");
    const auto ways = hostile();
    for (std::size_t i = 0; i < ways.size(); ++i) QTest::newRow(ways[i].first) << static_cast<int>(i);
  }
  void refusesHostileNumbers() {
    QFETCH(int, way);
    auto made = caseOf(llama({.layers = 2}, 2));
    QVERIFY(made);
    hostile()[static_cast<std::size_t>(way)].second(made->certificate);
    const auto certified = verify(*made->problem, made->certificate);
    QVERIFY(!certified);
    QVERIFY(certified.error().code == ErrorCode::BadInput);
    QVERIFY2(certified.error().message.starts_with("The certificate is invalid: "), certified.error().message.c_str());
  }

  /// A certificate is valid for one problem only. With one demand less it lacks choices, or its claims are wrong.
  void isValidOnlyForItsProblem() {
    const auto pinned = llama({.layers = 2}, 2);
    pinned->pins = {*Pin::parse("*q_proj=replicated")};
    pinned->cost.profile = slowLink();
    pinned->cost.profile.linkBytesPerSecond = 1e12;
    const auto made = caseOf(pinned);
    QVERIFY(made);
    QVERIFY(verify(*pinned, made->certificate));
    Problem free = *pinned;
    free.pins.clear();
    QVERIFY(!verify(free, made->certificate));
  }

  void stopsWhenAsked() {
    const auto made = caseOf(llama({.layers = 2}, 2));
    QVERIFY(made);
    std::stop_source stop;
    stop.request_stop();
    const auto certified = verify(*made->problem, made->certificate, Progress(stop.get_token()));
    QVERIFY(!certified);
    QVERIFY(certified.error().code == ErrorCode::Cancelled);
  }
};

QTEST_GUILESS_MAIN(TestCertificate)
#include "tst_certificate.moc"
