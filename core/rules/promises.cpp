#include "rules/promises.h"

#include "rules/rule_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <random>

namespace cleave::rules {

namespace {

class PromiseCheck {
 public:
  PromiseCheck(const OpCall& call, std::uint64_t seed, int draws) : m_call(call), m_random(seed), m_draws(draws) {
    for (const graph::ValueId operand : graph::operandsOf(call.graph.node(call.node))) {
      m_choices.push_back(placementsWorthTrying(call.graph.shapeOf(operand), call.worldSize, false));
    }
  }

  std::optional<BrokenPromise> ofConflict(const Conflict& conflict) {
    if (auto broken = ofCulprits(conflict.culprits)) return broken;
    for (const auto& further : conflict.further) {
      if (auto broken = ofCulprits(further)) return broken;
    }
    return std::nullopt;
  }

  std::optional<BrokenPromise> ofClaims(const std::vector<Claim>& claims) {
    const int decider = claims.empty() ? -1 : claims.front().decider;
    const auto isAlike = [decider](const Claim& claim) { return claim.decider == decider; };
    if (decider < 0 || !std::all_of(claims.begin(), claims.end(), isAlike)) return std::nullopt;
    return findOther({decider}, [&](const Verdict& now) -> std::string {
      const auto* others = std::get_if<std::vector<Claim>>(&now);
      const auto haveSameResults = [](const Claim& a, const Claim& b) { return a.results == b.results; };
      if (others == nullptr ||
          std::equal(claims.begin(), claims.end(), others->begin(), others->end(), haveSameResults))
        return {};
      return fmt::format("operand {} alone fixes the results {}", decider, toText(Verdict(claims)));
    });
  }

 private:
  std::optional<BrokenPromise> ofCulprits(const std::vector<int>& culprits) {
    return findOther(culprits, [&](const Verdict& now) -> std::string {
      if (std::holds_alternative<Conflict>(now)) return {};
      return fmt::format("operands {} suffice for a conflict", fmt::join(culprits, ", "));
    });
  }

  /// Draws other placements for all operands except `fixed`, until `broken` returns a promise that fails.
  std::optional<BrokenPromise> findOther(const std::vector<int>& fixed,
                                         const std::function<std::string(const Verdict&)>& broken) {
    if (fixed.size() == m_choices.size()) return std::nullopt;
    // The first draw replicates all other operands, because then a conflict is least likely.
    for (int draw = 0; draw < m_draws; ++draw) {
      std::vector<Placement> operands(m_call.operands.begin(), m_call.operands.end());
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (std::find(fixed.begin(), fixed.end(), static_cast<int>(i)) != fixed.end()) continue;
        operands[i] = draw == 0 ? Placement() : drawPlacement(i, operands);
      }
      const Verdict now = applyRule({m_call.graph, m_call.node, operands, m_call.worldSize});
      const std::string promise = broken(now);
      if (!promise.empty())
        return BrokenPromise{operands,
                             fmt::format("{}, but with other placements the verdict is {}", promise, toText(now))};
    }
    return std::nullopt;
  }

  /// Often repeats the placement of another operand, because then most rules return a claim.
  Placement drawPlacement(std::size_t operand, const std::vector<Placement>& operands) {
    const auto& choices = m_choices[operand];
    if (m_random() % 2 == 0) {
      const Placement& alike = operands[m_random() % operands.size()];
      if (std::find(choices.begin(), choices.end(), alike) != choices.end()) return alike;
    }
    return choices[m_random() % choices.size()];
  }

  const OpCall& m_call;
  std::mt19937_64 m_random;
  int m_draws;
  std::vector<std::vector<Placement>> m_choices;  ///< by operand
};

}  // namespace

std::vector<Placement> placementsWorthTrying(const Shape& shape, int worldSize, bool isPlainOnly) {
  std::vector<Placement> out = {Placement()};
  const auto add = [&](const Placement& p) {
    if (p.localShape(shape, worldSize) && std::find(out.begin(), out.end(), p) == out.end()) out.push_back(p);
  };
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) add(Placement::split(d));
  if (isPlainOnly) return out;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    const std::int64_t size = shape[static_cast<std::size_t>(d)];
    for (int replicas = 2; replicas <= worldSize; ++replicas) add(Placement::split(d).withReplicas(replicas));
    for (int e = d + 1; e < static_cast<int>(shape.size()); ++e) {
      add(Placement::joint(d, e));
      add(Placement::joint(d, e).withReplicas(2));
    }
    if (size > 0 && size % worldSize != 0) add(Placement::split(d).withPadding(worldSize - size % worldSize));
    add(Placement::split(d).withBlocks({{0, 1}, {0, 1}}));
    add(Placement::split(d).withBlocks({{0, 1}, {0, 1}, {0, 1}}));
    if (size > worldSize) {
      add(Placement::split(d).withBlocks({{worldSize, 1}, {size - worldSize, 1}}));
      add(Placement::split(d).withBlocks({{worldSize, 1}, {size - worldSize, worldSize}}));
    }
  }
  return out;
}

std::optional<BrokenPromise> findBrokenPromise(const OpCall& call, const Verdict& verdict, std::uint64_t seed,
                                               int draws) {
  PromiseCheck check(call, seed, draws);
  if (const auto* conflict = std::get_if<Conflict>(&verdict)) return check.ofConflict(*conflict);
  return check.ofClaims(std::get<std::vector<Claim>>(verdict));
}

}  // namespace cleave::rules
