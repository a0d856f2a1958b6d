#pragma once
/// A proof that no plan is cheaper. It is small enough to be stored with the plan. The code that checks it does not use
/// the search.
///
/// The steps have the order `order`. A *state* between two steps has the placements of the values that later steps
/// read, and the shared collectives that are already paid for. `toGo` claims a minimum cost of the rest for each state
/// (a *potential*, the dual of a shortest path). The claims hold if
///
///     cost(step) + toGo(state after it) ≥ toGo(state before it)          for every choice of every step,
///
/// and then no plan costs less than the claim of the first state. Along the cheapest plan both sides are equal. Costs
/// are sums of timeWeight · femtoseconds + byteWeight · bytes. The byte weight is 0, or a Lagrange multiplier if the
/// budget binds, so that the bound is valid for plans within the budget (Handler and Zang, 1980).
#include "base/femtoseconds.h"
#include "base/progress.h"
#include "solve/problem/problem.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace cleave::solve {

/// A value in a state: its placement, and its shared collectives that are paid for (Shares, cost/cost_model.h). When
/// training, the first token of a state has no value and records whether the bucket of summed gradients is paid for.
struct CertifiedToken {
  std::uint32_t placement = 0;  ///< index into Certificate::placements
  std::uint8_t paid = 0;
  bool operator==(const CertifiedToken&) const = default;
};

/// The states between two steps, or between several equal pairs of steps.
struct CertifiedStates {
  std::size_t count = 0, width = 0;    ///< number of states; tokens per state
  std::vector<CertifiedToken> tokens;  ///< state by state
  bool operator==(const CertifiedStates&) const = default;
};
/// The claim of each of these states relative to Boundary::base; nullopt if no plan continues from it.
using CertifiedClaims = std::vector<std::optional<Wide>>;

struct Certificate {
  Wide timeWeight = 1, byteWeight = 0;
  std::vector<NodeId> order;  ///< steps with a choice or with a cost that depends on shared collectives
  std::vector<Placement> placements;
  std::vector<CertifiedStates> states;
  std::vector<CertifiedClaims> claims;
  struct Boundary {
    std::uint32_t states = 0, claims = 0;  ///< indices into the lists with these names
    Wide base = 0;
    bool operator==(const Boundary&) const = default;
  };
  std::vector<Boundary> boundaries;  ///< before each step of `order`, and after the last
  bool operator==(const Certificate&) const = default;
};

/// The statement about a problem that a certificate proves.
struct Certified {
  Femtoseconds lowerBound;  ///< no plan is faster; if bytes have a weight, no plan within the budget
  std::uint64_t transitions = 0;
  /// If bytes have no weight: bytes per rank of a plan that is as fast as the bound, regardless of the budget.
  std::optional<std::int64_t> bytesAtBound;
};
/// Checks every claim of `certificate` with the rules, the layers' strategies, the user's demands and the cost model.
/// If bytes have no weight, a plan must cost exactly the claim; it is the fastest plan without limits. BadInput names
/// the wrong claim and its place. Cancelled if cancelled. Shares no code with the engines.
Result<Certified> verify(const Problem& problem, const Certificate& certificate, const Progress& progress = {});

}  // namespace cleave::solve
