#include "pipeline/solve/what_fits.h"

#include "base/quantities.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "solve/problem/wording.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace cleave::pipeline {
namespace {

constexpr int kMostRanksTried = 64;

bool isPowerOfTwo(int number) { return (number & (number - 1)) == 0; }

class Tries {
 public:
  Tries(const Model& model, const Solved& solved, const Progress& progress)
      : m_model(model), m_solved(solved), m_spec(solved.spec), m_now(model.info.input), m_quiet(progress.stopToken()) {
    progress.report("look for what fits");
  }

  Result<Fits> run() {
    if (m_solved.result.solution) return ofPlan(*m_solved.result.solution);
    CLEAVE_TRY_VOID(tryFewerRanks());
    CLEAVE_TRY_VOID(tryMoreRanks());
    dropDominatedRanks();
    CLEAVE_TRY_VOID(trySequenceParallel());
    CLEAVE_TRY_VOID(tryBudget());
    CLEAVE_TRY_VOID(tryDevices());
    CLEAVE_TRY_VOID(tryCaptures());
    return std::move(m_fits);
  }

 private:
  enum class Found : std::uint8_t { Fits, TooLarge, Unknown };

  /// For a plan over the budget: the engine that made it ignores budgets.
  Result<Fits> ofPlan(const solve::Solution& solution) {
    spec::PlanSpec spec = m_spec;
    spec.engine = solve::Engine::Optimal;
    CLEAVE_TRY_VOID(tryAlone(m_model, spec, "the engine optimal", "--engine optimal"));
    const solve::PlanCost cost = solve::costOf(*m_solved.problem, solution);
    if (!canBudget(cost.bytes())) return std::move(m_fits);
    spec = m_spec;
    spec.cost.memoryBudget = cost.bytes();
    m_fits.found.push_back(
        {budgetChange(cost.bytes()), budgetFlags(cost.bytes()), cost.bytes(), cost.femtoseconds(), spec, m_now});
    return std::move(m_fits);
  }

  // ---- one try

  void addUnknown(std::string change, std::string why) {
    m_fits.notKnown.push_back({std::move(change), std::move(why)});
  }

  /// Solves the model with this spec. Only a cancellation is an error.
  Result<Found> tryOut(const Model& model, const spec::PlanSpec& spec, std::string change, std::string flags) {
    const auto problem = problemOf(model, spec);
    if (!problem) return addUnknown(std::move(change), problem.error().message), Found::Unknown;
    const auto sink = solve::makeCountingSink();
    const auto result = solve::solve(**problem, solve::Engine::Optimal, *sink, m_quiet);
    if (m_quiet.cancelled()) return m_quiet.cancelledError("looking for what fits");
    if (!result) return addUnknown(std::move(change), result.error().message), Found::Unknown;
    if (!result->optimum && result->isProved) return Found::TooLarge;
    if (!result->optimum) {
      return addUnknown(std::move(change),
                        fmt::format("The search stopped at its limit of {} without an answer.", result->limit)),
             Found::Unknown;
    }
    const solve::PlanCost& cost = result->optimum->cost();
    m_fits.found.push_back(
        {std::move(change), std::move(flags), cost.bytes(), cost.femtoseconds(), spec, model.info.input});
    return Found::Fits;
  }

  /// Tries a change and records it if it is too large.
  Result<Found> tryAlone(const Model& model, const spec::PlanSpec& spec, const std::string& change, std::string flags) {
    CLEAVE_TRY(const Found found, tryOut(model, spec, change, std::move(flags)));
    if (found == Found::TooLarge) m_fits.tooLarge.push_back(change);
    return found;
  }

  Result<Found> tryRanks(int ranks) {
    if (exceedsWithWeightsAlone(ranks)) return Found::TooLarge;
    spec::PlanSpec spec = m_spec;
    spec.ranks = ranks;
    return tryOut(m_model, spec, fmt::format("{} ranks", ranks), fmt::format("--ranks {}", ranks));
  }

  Result<Found> tryCapture(const spec::InputSpec& input, const std::string& change, std::string flags) {
    const auto model = captureAgain(m_model, input, m_quiet);
    if (m_quiet.cancelled()) return m_quiet.cancelledError("looking for what fits");
    if (!model) return addUnknown(change, model.error().message), Found::Unknown;
    return tryAlone(**model, m_spec, change, std::move(flags));
  }

  // ---- ranks

  /// Even an equal split of the weights alone exceeds the budget per rank.
  bool exceedsWithWeightsAlone(int ranks) const {
    std::int64_t weights = 0;
    for (const graph::Node& node : m_model.aten->nodes) {
      if (node.kind == graph::NodeKind::Parameter) weights += m_model.aten->heldBytes(node.results[0]);
    }
    return weights / ranks > m_spec.cost.budgetBytes();
  }

  /// Fewer ranks can need less memory per rank if the current number does not divide the model. Keeps the fewest ranks
  /// that fit, and the fastest.
  Result<void> tryFewerRanks() {
    std::vector<Fit> fits;
    for (int ranks = m_spec.ranks - 1; ranks > 1; --ranks) {
      CLEAVE_TRY(const Found found, tryRanks(ranks));
      if (found != Found::Fits) continue;
      fits.push_back(std::move(m_fits.found.back()));
      m_fits.found.pop_back();
    }
    if (fits.empty()) return {};
    const auto fastest = std::min_element(fits.begin(), fits.end(),
                                          [](const Fit& a, const Fit& b) { return a.femtoseconds < b.femtoseconds; });
    if (fastest + 1 != fits.end()) m_fits.found.push_back(*fastest);
    m_fits.found.push_back(fits.back());
    return {};
  }

  /// Keeps the fewest ranks that fit, and the smallest power of two, because machines have such numbers of GPUs.
  Result<void> tryMoreRanks() {
    bool hasAny = false, isKnown = true;
    for (int ranks = m_spec.ranks + 1; ranks <= kMostRanksTried; ++ranks) {
      if (hasAny && !isPowerOfTwo(ranks)) continue;
      CLEAVE_TRY(const Found found, tryRanks(ranks));
      isKnown = isKnown && found != Found::Unknown;
      hasAny = hasAny || found == Found::Fits;
      if (found == Found::Fits && isPowerOfTwo(ranks)) return {};
    }
    if (!hasAny && isKnown && m_spec.ranks < kMostRanksTried)
      m_fits.tooLarge.push_back(fmt::format("{} to {} ranks", m_spec.ranks + 1, kMostRanksTried));
    return {};
  }

  /// Drops a number of ranks if fewer ranks are as fast and need no more memory: a user can leave ranks idle.
  void dropDominatedRanks() {
    const std::vector<Fit> all = m_fits.found;
    const auto isDominated = [&](const Fit& fit) {
      return std::any_of(all.begin(), all.end(), [&](const Fit& other) {
        return other.spec.ranks < fit.spec.ranks && other.femtoseconds <= fit.femtoseconds &&
               other.rankBytes <= fit.rankBytes;
      });
    };
    std::erase_if(m_fits.found, isDominated);
  }

  // ---- settings

  Result<void> trySequenceParallel() {
    if (m_spec.sequenceParallel != rules::SequenceParallel::Off) return {};
    spec::PlanSpec spec = m_spec;
    spec.sequenceParallel = rules::SequenceParallel::Auto;
    return tryAlone(m_model, spec, "sequence parallelism where it helps", "--sequence-parallel auto").map([](Found) {});
  }

  /// The user's budget is too small, and the device has enough memory.
  bool canBudget(std::int64_t bytes) const {
    return m_spec.cost.memoryBudget && bytes > m_spec.cost.budgetBytes() && bytes <= m_spec.cost.profile.memoryBytes;
  }
  static std::string budgetChange(std::int64_t bytes) { return fmt::format("a budget of {}", bytesText(bytes)); }
  static std::string budgetFlags(std::int64_t bytes) { return fmt::format("--memory-budget {}", bytes); }

  /// Tries the memory of the smallest plan that was found as the budget.
  Result<void> tryBudget() {
    const std::int64_t least = m_solved.result.leastBytes;
    if (!canBudget(least)) return {};
    spec::PlanSpec spec = m_spec;
    spec.cost.memoryBudget = least;
    return tryAlone(m_model, spec, budgetChange(least), budgetFlags(least)).map([](Found) {});
  }

  /// Tries devices with more memory. A user's budget does not depend on the device.
  Result<void> tryDevices() {
    if (m_spec.cost.memoryBudget) return {};
    const auto profiles = deviceProfiles();
    if (!profiles) return addUnknown("other devices", profiles.error().message), Result<void>();
    for (const solve::DeviceProfile& profile : *profiles) {
      if (profile.memoryBytes <= m_spec.cost.budgetBytes()) continue;
      spec::PlanSpec spec = m_spec;
      spec.cost.profile = profile;
      CLEAVE_TRY_VOID(tryAlone(m_model, spec,
                               fmt::format("the device {} with {}", profile.name, bytesText(profile.memoryBytes)),
                               fmt::format("--device-profile {}", profile.name)));
    }
    return {};
  }

  // ---- smaller steps

  Result<void> tryCaptures() {
    if (!m_model.folder.config) {
      return addUnknown("other batches, lengths and types",
                        "Only the graph is open, not its model. Open the model's folder."),
             Result<void>();
    }
    if (graph::itemSize(m_model.info.dtype) > 2) {
      auto half = m_now;
      half.dtype = graph::DType::BFloat16;
      CLEAVE_TRY_VOID(tryCapture(half, "bfloat16", "--dtype bfloat16"));
    }
    CLEAVE_TRY_VOID(tryFewerLogits());
    CLEAVE_TRY_VOID(tryHalves(&spec::InputSpec::batch, 1, "batch", "--batch"));
    return tryHalves(&spec::InputSpec::sequence, m_now.loss ? 2 : 1, "sequence", "--seq");
  }

  /// The logits of all positions are large if the vocabulary is. Without training or scoring, only the last position is
  /// needed.
  Result<void> tryFewerLogits() {
    if (m_spec.cost.isTraining || m_now.logitsToKeep == 1) return {};
    auto input = m_now;
    if (input.loss) {
      input.loss = false;
      CLEAVE_TRY(const Found found, tryCapture(input, "no loss", "--loss off"));
      if (found == Found::Fits) return {};
    }
    input.logitsToKeep = 1;
    return tryCapture(input, "logits of the last position only",
                      m_now.loss ? "--loss off --logits-to-keep 1" : "--logits-to-keep 1")
        .map([](Found) {});
  }

  /// Tries the least number first: if it is too large, larger ones cannot fit.
  Result<void> tryHalves(std::optional<std::int64_t> spec::InputSpec::*count, std::int64_t least, std::string_view name,
                         std::string_view flag) {
    const std::int64_t now = (m_now.*count).value_or(least);
    if (now <= least) return {};
    const auto tryWith = [&](std::int64_t number) {
      auto input = m_now;
      input.*count = number;
      return tryCapture(input, fmt::format("{} {}", name, number), fmt::format("{} {}", flag, number));
    };
    CLEAVE_TRY(const Found fewest, tryWith(least));
    if (fewest != Found::Fits) return {};
    const Fit smallest = std::move(m_fits.found.back());
    m_fits.found.pop_back();
    const std::size_t refused = m_fits.tooLarge.size();
    bool hasMore = false;
    for (std::int64_t number = now / 2; number > least && !hasMore; number /= 2) {
      CLEAVE_TRY(const Found found, tryWith(number));
      hasMore = found == Found::Fits;
    }
    // Report only the largest number that fits, not the larger ones that do not.
    m_fits.tooLarge.resize(refused);
    if (!hasMore) m_fits.found.push_back(smallest);
    return {};
  }

  const Model& m_model;
  const Solved& m_solved;
  const spec::PlanSpec& m_spec;
  const spec::InputSpec m_now;
  const Progress m_quiet;  ///< does not report the stages of each try
  Fits m_fits;
};

}  // namespace

Result<Fits> whatFits(const Model& model, const Solved& solved, const Progress& progress) {
  return Tries(model, solved, progress).run();
}

std::string toText(const Fits& fits) {
  std::string text = fits.found.empty() ? "" : "What fits, each tried alone:\n";
  for (const Fit& fit : fits.found) {
    text += fmt::format("  {} ({}): {} per rank, {} per step\n", fit.change, fit.flags, bytesText(fit.rankBytes),
                        solve::timeText(fit.femtoseconds));
  }
  return text + restText(fits);
}

std::string restText(const Fits& fits) {
  std::string text;
  if (!fits.tooLarge.empty()) {
    text += fmt::format("{}, each tried alone: {}.\n",
                        fits.found.empty() ? "None of these changes fits" : "Still too large",
                        fmt::join(fits.tooLarge, ", "));
  }
  for (const NotKnown& open : fits.notKnown)
    text += fmt::format("Unknown for {}: {}\n", open.change, solve::asClause(open.why));
  return text;
}

}  // namespace cleave::pipeline
