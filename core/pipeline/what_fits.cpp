#include "pipeline/what_fits.h"

#include "base/quantities.h"
#include "graph/attention.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

constexpr int kMostRanksTried = 64;

class Tries {
 public:
  Tries(const Model& model, const SolveOptions& options, const Progress& progress) : m_model(model), m_options(options), m_quiet(progress.stopToken()) {
    progress.report("look for what fits");
  }

  Result<std::vector<Fit>> run() {
    if (!divides(m_options.ranks)) CLEAVE_TRY_VOID(tryFewerRanks());
    CLEAVE_TRY_VOID(tryRanks());
    CLEAVE_TRY_VOID(trySequenceParallel());
    CLEAVE_TRY_VOID(tryDevices());
    // A recording brings its graph alone: there is nothing to capture again.
    if (!m_model.info.source.empty()) CLEAVE_TRY_VOID(tryCaptures());
    return std::move(m_fits);
  }

 private:
  /// The cost of the plan that these options make of the model; nullopt: there is none.
  Result<std::optional<solve::PlanCost>> solved(const Model& model, const SolveOptions& options) const {
    CLEAVE_TRY(const auto problem, problemOf(model, options));
    const auto sink = solve::makeCountingSink();
    CLEAVE_TRY(const auto result, solve::solve(*problem, solve::Engine::Optimal, *sink, m_quiet));
    if (m_quiet.cancelled()) return m_quiet.cancelledError("looking for what fits");
    if (!result.optimum) return std::optional<solve::PlanCost>();
    return std::optional(result.optimum->cost());
  }

  Result<bool> tryOut(const Model& model, const SolveOptions& options, std::string change, std::string flags) {
    CLEAVE_TRY(const auto cost, solved(model, options));
    if (!cost) return false;
    m_fits.push_back({std::move(change), std::move(flags), cost->bytes(), cost->femtoseconds(), options,
                      captureOptionsOf(model.info)});
    return true;
  }

  /// An even share of the weights alone is more than a rank may hold.
  bool isHopeless(int ranks) const {
    std::int64_t weights = 0;
    for (const graph::Node& node : m_model.aten->nodes) {
      if (node.kind == graph::NodeKind::Parameter) weights += sizeInBytes(m_model.aten->value(node.results[0]).type);
    }
    return weights / ranks > m_options.cost.budgetBytes();
  }

  /// Fewer hold less where these do not divide the model: the most that do.
  Result<void> tryFewerRanks() {
    for (int ranks = m_options.ranks - 1; ranks > 1 && !isHopeless(ranks); --ranks) {
      if (!divides(ranks)) continue;
      SolveOptions options = m_options;
      options.ranks = ranks;
      return tryOut(m_model, options, fmt::format("{} ranks", ranks), fmt::format("--ranks {}", ranks)).map([](bool) {});
    }
    return {};
  }

  /// True when ranks divide all attention; false for a model without.
  bool divides(int ranks) const {
    bool hasHeads = false;
    for (graph::NodeId node : idRange<graph::NodeId>(m_model.aten->nodes.size())) {
      const auto heads = graph::headsOf(*m_model.aten, node);
      if (heads && heads->query % ranks != 0) return false;
      hasHeads = hasHeads || heads;
    }
    return hasHeads;
  }

  /// The fewest, and the fewest that are a power of two, as machines have them.
  Result<void> tryRanks() {
    bool hasAny = false;
    for (int ranks = m_options.ranks + 1; ranks <= kMostRanksTried; ++ranks) {
      const bool isPowerOfTwo = (ranks & (ranks - 1)) == 0;
      if ((hasAny && !isPowerOfTwo) || isHopeless(ranks)) continue;
      SolveOptions options = m_options;
      options.ranks = ranks;
      CLEAVE_TRY(const bool fits, tryOut(m_model, options, fmt::format("{} ranks", ranks), fmt::format("--ranks {}", ranks)));
      hasAny = hasAny || fits;
      if (fits && isPowerOfTwo) return {};
    }
    return {};
  }

  Result<void> trySequenceParallel() {
    if (m_options.sequenceParallel != rules::SequenceParallel::Off) return {};
    SolveOptions options = m_options;
    options.sequenceParallel = rules::SequenceParallel::Auto;
    return tryOut(m_model, options, "sequence parallelism where it helps", "--sequence-parallel auto").map([](bool) {});
  }

  /// Those with more memory; a budget of the user's own stays what it is.
  Result<void> tryDevices() {
    if (m_options.cost.memoryBudget) return {};
    CLEAVE_TRY(const auto profiles, deviceProfiles());
    for (const solve::DeviceProfile& profile : profiles) {
      if (profile.memoryBytes <= m_options.cost.budgetBytes()) continue;
      SolveOptions options = m_options;
      options.cost.profile = profile;
      CLEAVE_TRY_VOID(tryOut(m_model, options, fmt::format("the device {} with {}", profile.name, bytesText(profile.memoryBytes)),
                             fmt::format("--device-profile {}", profile.name)));
    }
    return {};
  }

  Result<bool> tryCapture(const torch_capture::CaptureOptions& capture, std::string change, std::string flags) {
    CLEAVE_TRY(const auto model, openModel(m_model.info.source, capture, m_quiet));
    return tryOut(*model, m_options, std::move(change), std::move(flags));
  }

  /// Logits of all positions are large where the vocabulary is, and whoever neither trains nor scores needs the last alone.
  Result<void> tryFewerLogits(torch_capture::CaptureOptions capture) {
    if (m_options.cost.isTraining || capture.logitsToKeep == 1) return {};
    if (capture.loss) {
      capture.loss = false;
      CLEAVE_TRY(const bool fits, tryCapture(capture, "no loss", "--loss off"));
      if (fits) return {};
    }
    capture.logitsToKeep = 1;
    const std::string_view flags = captureOptionsOf(m_model.info).loss ? "--loss off --logits-to-keep 1" : "--logits-to-keep 1";
    return tryCapture(capture, "logits of the last position alone", std::string(flags)).map([](bool) {});
  }

  Result<void> tryCaptures() {
    const torch_capture::CaptureOptions now = captureOptionsOf(m_model.info);
    if (graph::itemSize(m_model.info.dtype) > 2) {
      auto half = now;
      half.dtype = graph::DType::BFloat16;
      CLEAVE_TRY_VOID(tryCapture(half, "bfloat16", "--dtype bfloat16"));
    }
    CLEAVE_TRY_VOID(tryFewerLogits(now));
    for (auto capture = now; capture.batch > 1;) {
      capture.batch /= 2;
      CLEAVE_TRY(const bool fits, tryCapture(capture, fmt::format("batch {}", capture.batch), fmt::format("--batch {}", capture.batch)));
      if (fits) break;
    }
    for (auto capture = now; capture.sequence > 2;) {
      capture.sequence /= 2;
      CLEAVE_TRY(const bool fits, tryCapture(capture, fmt::format("sequence {}", capture.sequence), fmt::format("--seq {}", capture.sequence)));
      if (fits) break;
    }
    return {};
  }

  const Model& m_model;
  const SolveOptions& m_options;
  const Progress m_quiet;  ///< the stages of each try are nobody's concern
  std::vector<Fit> m_fits;
};

}  // namespace

bool isOverBudget(const solve::SolveResult& result) {
  const auto& core = result.core.constraints;
  return std::any_of(core.begin(), core.end(), [](const solve::Constraint& c) { return c.kind == solve::ConstraintKind::Budget; });
}

std::string overBudgetText(const solve::SolveResult& result) {
  if (!isOverBudget(result)) return {};
  const auto cause = std::find_if(result.causes.begin(), result.causes.end(), [](const solve::ConflictRecord& c) { return c.isOfWholePlan(); });
  return cause == result.causes.end() ? std::string() : cause->reason;
}

Result<std::vector<Fit>> whatFits(const Model& model, const SolveOptions& options, const Progress& progress) { return Tries(model, options, progress).run(); }

std::string toText(const std::vector<Fit>& fits) {
  if (fits.empty()) return fmt::format("Nothing that was tried alone fits: up to {} ranks, other devices, fewer logits, a shorter sequence or a smaller batch.\n", kMostRanksTried);
  std::string text = "What fits, each tried alone:\n";
  for (const Fit& fit : fits) {
    text += fmt::format("  {} ({}): {} a rank, {} a step\n", fit.change, fit.flags, bytesText(fit.rankBytes), solve::timeText(fit.femtoseconds));
  }
  return text;
}

}  // namespace cleave::pipeline
