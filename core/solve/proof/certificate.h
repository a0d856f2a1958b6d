#pragma once
/// A proof that no plan is cheaper, small enough to go with the plan and checked by code that knows nothing of the
/// search.
///
/// Steps are taken in `order`. What a later step still needs to know of those before it is a *state*: how the values
/// lie that are read later, and which collectives that several readers share are paid for. `toGo` claims of each state
/// that the rest costs at least so much (a *potential*, the dual of a shortest path). The claim holds where
///
///     cost(step) + toGo(state behind it) ≥ toGo(state before it)          for every choice of every step,
///
/// and then no plan costs less than the first state's. Along the cheapest plan both sides are equal. What is added up
/// is timeWeight · femtoseconds + byteWeight · bytes: time alone, or under a budget that binds a Lagrange multiplier of
/// the bytes, so that the bound holds for the plans within the budget (Handler and Zang, 1980).
#include "base/femtoseconds.h"
#include "base/progress.h"
#include "solve/problem/problem.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace cleave::solve {

/// What is known of a value between two steps: how it is placed, and what of it is paid for (Shares,
/// cost/cost_model.h). The first of a state is that of no value when training: whether the bucket of summed gradients
/// is paid for.
struct CertifiedToken {
  std::uint32_t placement = 0;  ///< into Certificate::placements
  std::uint8_t paid = 0;
  bool operator==(const CertifiedToken&) const = default;
};

/// The states between two steps, or between several pairs of steps that are alike.
struct CertifiedStates {
  std::size_t count = 0, width = 0;    ///< states; tokens of each
  std::vector<CertifiedToken> tokens;  ///< state by state
  bool operator==(const CertifiedStates&) const = default;
};
/// Of each of these states, beyond Boundary::base; nullopt: no plan comes out of it.
using CertifiedClaims = std::vector<std::optional<Wide>>;

struct Certificate {
  Wide timeWeight = 1, byteWeight = 0;
  std::vector<NodeId> order;  ///< the steps that have a choice, or whose price depends on what is paid for
  std::vector<Placement> placements;
  std::vector<CertifiedStates> states;
  std::vector<CertifiedClaims> claims;
  struct Boundary {
    std::uint32_t states = 0, claims = 0;  ///< into the lists of the same names
    Wide base = 0;
    bool operator==(const Boundary&) const = default;
  };
  std::vector<Boundary> boundaries;  ///< before each step of `order`, and behind the last
  bool operator==(const Certificate&) const = default;
};

/// What a certificate proves of a problem.
struct Certified {
  Femtoseconds lowerBound;  ///< no plan (within the budget, where there is one) is faster
  std::uint64_t transitions = 0;
  /// Where bytes have no weight: what a rank holds of a plan that takes no longer than the bound, whatever the budget.
  std::optional<std::int64_t> bytesAtBound;
};
/// Holds every claim of `certificate` against the rules, the layers' strategies, the user's demands and the cost model.
/// Where bytes have no weight, some plan has to cost as little as it claims: it is the fastest where nothing limits it.
/// BadInput says which claim does not hold, and where; Cancelled. Shares no code with the engines.
Result<Certified> verify(const Problem& problem, const Certificate& certificate, const Progress& progress = {});

}  // namespace cleave::solve
