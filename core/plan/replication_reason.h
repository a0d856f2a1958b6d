#pragma once
/// Why a part of a plan is replicated. Each reason asks the user for something else:
///
///   Cannot       no plan splits it, whatever the candidate set, sequence parallelism and demands: it needs other ranks
///                or another model. If plans that gather or split values (Problem::redistributable) can split it, it is
///                "without redistribution"
///   DoesNotPay   plans split it, but they are slower than the slack allows, or need as much memory
///   NotAskedFor  a setting of the user excludes the plans that split it: change that setting
///
/// replication/explain_replication.h finds the reasons. Layer reasons, warnings, verdicts on world sizes, the command
/// line and the window read them from here.
#include "solve/explain/change.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cleave::plan {

/// The part is split.
struct Split {
  bool operator==(const Split&) const = default;
};
struct Cannot {
  std::string why;  ///< a clause with numbers, without a full stop
  /// A plan that redistributes values splits it, or might split it.
  bool isUnlessRedistributed = false;
  std::vector<solve::Change> withThat;  ///< other changes that such a plan needs
  bool operator==(const Cannot&) const = default;
};
struct DoesNotPay {
  Femtoseconds extraFs;  ///< extra time per step of the fastest plan that splits it, with any budget; negative: it is
                         ///< faster
  std::int64_t extraBytes = 0;  ///< extra memory per rank of the smallest plan that splits it and is fast enough; 0 if
                                ///< that was not searched
  bool isFastEnough = false;    ///< the slack allows that time: no such plan needs less memory
  bool isOverBudget = false;    ///< plans that split it and are as fast are over the memory budget
  bool isProved = true;         ///< false: not all plans that are fast enough and fit the budget were searched
  bool operator==(const DoesNotPay&) const = default;
};
/// Result for a plan that was searched without the memory budget: does it fit the budget?
enum class BudgetFit : std::uint8_t { Fits, Over, NotKnown };
struct NotAskedFor {
  std::vector<solve::Change> changes;  ///< with all of these a plan splits it; empty: the engine keeps the first plan
                                       ///< that it finds
  Femtoseconds extraFs;  ///< extra time per step of the fastest such plan, with any budget; negative: it is faster
  std::string why;       ///< a clause with the cause of replication here; may be empty
  BudgetFit fit = BudgetFit::NotKnown;  ///< for that fastest plan
  /// If that plan is over the budget: extra time per step of the fastest such plan within the budget; nullopt: unknown,
  /// or no such plan exists.
  std::optional<Femtoseconds> extraWithinFs = {};
  bool isOfOptimal = false;  ///< only the engine `optimal` finds that fastest plan
  bool operator==(const NotAskedFor&) const = default;
};
/// The search stopped at its limits.
struct NotKnown {
  bool operator==(const NotKnown&) const = default;
};
using ReplicationReason = std::variant<Split, Cannot, DoesNotPay, NotAskedFor, NotKnown>;

}  // namespace cleave::plan
