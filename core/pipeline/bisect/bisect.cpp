#include "pipeline/bisect/bisect.h"

#include "base/output_file.h"
#include "base/quantities.h"
#include "base/temporary_folder.h"
#include "formats/safetensors.h"
#include "launch/rank_program.h"
#include "pipeline/compare/held_value.h"
#include "pipeline/compare/rounding.h"
#include "pipeline/memory/rank_memory.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/unsplit_place.h"
#include "pipeline/solve/unsplit_plan.h"
#include "pipeline/source/planned_model.h"
#include "plan/file/plan_file.h"
#include "program/watch.h"
#include "spec/rank/rank_settings.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace cleave::pipeline {
namespace {

using graph::ValueId;

/// A digest covers all elements of a value, so its threshold is below that of one element: this part of the unit plus
/// this number of rulers. Above it, the value is compared in full. Four random projections of a correct value rarely
/// differ that much.
constexpr double kSuspicious = 0.05, kSuspiciousRulers = 4;
/// Number of values that are compared in full at once, without the operands of their nodes.
constexpr std::size_t kAtOnce = 4, kMostRounds = 8, kMaybeNotNumbers = 16;

/// One of the two runs.
struct Side {
  std::shared_ptr<const plan::Plan> plan;
  std::string name;  ///< prefix of its files
  launch::Backend backend = launch::Backend::Gloo;
};

/// A value that all runs compute.
struct Common {
  ValueId value, other, unsplit, reordered;  ///< ids in the ATen graphs of the plans
};
/// Selects one of a Common's values.
enum class Of : std::uint8_t { Split, Other, Unsplit, Reordered };

bool isHeld(const plan::Plan& plan, ValueId value) {
  if (value.index() >= plan.programValueOf.size()) return false;
  const ValueId held = plan.programValueOf[value.index()];
  if (!held.isValid()) return false;
  const auto local = plan.solution->placements[value.index()].localShape(plan.graph->shapeOf(value), plan.spec.ranks);
  return local && *local == plan.program->shapeOf(held);
}

/// The values of a plan's graph by name.
class Names {
 public:
  explicit Names(const plan::Plan& plan) : m_plan(plan) {
    for (const auto id : idRange<ValueId>(plan.graph->values.size())) m_byName.emplace(plan.graph->value(id).name, id);
  }
  /// The value of this name and type; invalid if the plan's program does not hold it.
  ValueId held(const graph::Value& value) const {
    const auto found = m_byName.find(value.name);
    if (found == m_byName.end() || m_plan.graph->value(found->second).type != value.type) return {};
    return isHeld(m_plan, found->second) ? found->second : ValueId();
  }

 private:
  const plan::Plan& m_plan;
  std::unordered_map<std::string_view, ValueId> m_byName;
};

program::WatchedValue watched(const plan::Plan& plan, ValueId value, bool isKept) {
  const ValueId held = plan.programValueOf[value.index()];
  return {plan.program->value(held).name, plan.graph->shapeOf(value), plan.solution->placements[value.index()], isKept};
}

/// The digests from the ranks of one run, in the order of the values.
using Digest = std::array<double, program::kDigestNumbers>;
struct Digests {
  std::vector<std::vector<Digest>> byRank;
};

class Bisector {
 public:
  Bisector(const BisectRequest& request, const Progress& progress, const TemporaryFolder& folder)
      : m_request(request), m_progress(progress), m_folder(folder) {}

  Result<Bisection> run() {
    CLEAVE_TRY_VOID(prepare());
    findCommon();
    m_progress.report("digests");
    CLEAVE_TRY(const std::vector<ValueId> suspects, compareDigests());
    for (std::size_t round = 0; round < kMostRounds && round * kAtOnce < suspects.size(); ++round) {
      const auto from = suspects.begin() + static_cast<std::ptrdiff_t>(round * kAtOnce);
      const auto count = std::min<std::ptrdiff_t>(kAtOnce, suspects.end() - from);
      m_progress.report("values", static_cast<std::int64_t>(round) + 1, 0);
      CLEAVE_TRY_VOID(compareInFull({from, from + count}));
      if (m_found.first) break;
    }
    if (!m_found.first) CLEAVE_TRY_VOID(findFirstNan());
    return std::move(m_found);
  }

 private:
  int mostRanks() const {
    return std::max(m_request.plan->spec.ranks, m_request.against ? m_request.against->spec.ranks : 1);
  }

  Result<void> prepare() {
    CLEAVE_TRY(const launch::BackendChoice choice,
               launch::chooseBackend(m_request.backend, mostRanks(), gpuBytes(*m_request.plan), m_progress));
    m_split = {m_request.plan, "split", choice.backend};
    CLEAVE_TRY(const auto model, openSameModel(*m_request.plan, m_progress));
    const UnsplitPlace place = unsplitPlace(*m_request.plan, {}, choice.backend);
    CLEAVE_TRY(auto unsplit, unsplitPlan(model, *m_request.plan, m_progress));
    CLEAVE_TRY(auto reordered, reorderedPlan(model, *m_request.plan, m_progress));
    m_unsplit = {std::move(unsplit), "unsplit", place.backend};
    m_reordered = {std::move(reordered), "reordered", place.backend};
    m_other = m_request.against ? Side{m_request.against, "other", choice.backend} : m_unsplit;
    m_found.comparedWith = m_request.against
                               ? fmt::format("the other plan on {}", counted(m_request.against->spec.ranks, "rank"))
                               : place.text;
    return {};
  }

  void findCommon() {
    const plan::Plan &plan = *m_split.plan, &other = *m_other.plan;
    m_found.errors.assign(plan.graph->values.size(), -1);
    const Names inOther(other), inUnsplit(*m_unsplit.plan), inReordered(*m_reordered.plan);
    for (const auto id : idRange<ValueId>(plan.graph->values.size())) {
      const graph::Value& value = plan.graph->value(id);
      const Common common{id, inOther.held(value), inUnsplit.held(value), inReordered.held(value)};
      if (!isHeld(plan, id) || !common.other.isValid() || !common.unsplit.isValid() || !common.reordered.isValid())
        continue;
      m_places.emplace(id, m_common.size());
      m_common.push_back(common);
    }
    m_found.compared = m_common.size();
    m_units.assign(plan.graph->values.size(), 0);
    const auto own = coarsestTypes(*plan.graph), there = coarsestTypes(*other.graph);
    for (const Common& common : m_common) {
      const auto unitOf = [&](graph::DType type) { return roundingUnit(type, m_split.backend, mostRanks()); };
      m_units[common.value.index()] = m_request.tolerance.value_or(
          std::max(unitOf(own[common.value.index()]), unitOf(there[common.other.index()])));
    }
    m_found.tolerances = m_units;
  }

  /// Runs one side and returns a path. Rank r's file is this path plus ".r".
  Result<fs::path> runSide(const Side& side, const std::vector<program::WatchedValue>& values) {
    const std::string name = fmt::format("{}-{}", side.name, m_runs++);
    const fs::path planFile = m_folder / (name + "-plan.json"), watch = m_folder / (name + "-watch.json");
    CLEAVE_TRY_VOID(writeFile(planFile, plan::toJson(*side.plan)));
    CLEAVE_TRY_VOID(writeFile(watch, program::toJson(values)));
    const fs::path seen = m_folder / name;
    launch::LaunchRequest launch;
    launch.rankProgram = m_request.rankProgram;
    if (launch.rankProgram.empty()) {
      CLEAVE_TRY(launch.rankProgram, launch::rankProgram());
    }
    launch.planFile = planFile;
    launch.ranks = side.plan->spec.ranks;
    launch.backend = side.backend;
    spec::RankSpec spec;
    spec.watchFile = watch;
    spec.watchedFile = seen;
    spec.inputFile = m_request.input;
    spec.skipWeights = m_request.skipWeights;
    spec.initMissing = m_request.initMissing;
    launch.rankArguments = settings::argumentsOf(spec::rankSettings(), spec);
    CLEAVE_TRY(const auto outcome, launch::launch(
                                       launch, [](const launch::RankEvent&) {}, m_progress));
    if (outcome.succeeded) return seen;
    const launch::RankExit& failure = *outcome.firstFailure;
    return fail(failure.code, "Rank {} of the {} run {}. {}", failure.rank, side.name, failure.what,
                failure.lastMessage);
  }

  static ValueId valueOf(const Common& common, Of which) {
    switch (which) {
      case Of::Split: return common.value;
      case Of::Other: return common.other;
      case Of::Unsplit: return common.unsplit;
      case Of::Reordered: break;
    }
    return common.reordered;
  }

  Result<Digests> digestsOf(const Side& side, Of which) {
    std::vector<program::WatchedValue> values;
    for (const Common& common : m_common) values.push_back(watched(*side.plan, valueOf(common, which), false));
    CLEAVE_TRY(const fs::path seen, runSide(side, values));
    Digests digests;
    for (int rank = 0; rank < side.plan->spec.ranks; ++rank) {
      const fs::path path = fmt::format("{}.{}", seen.string(), rank);
      CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(path));
      const formats::WeightSource* table = file.find("digests");
      std::vector<Digest>& rows = digests.byRank.emplace_back(values.size());
      const std::size_t bytes = rows.size() * sizeof(Digest);
      if (!table || graph::sizeInBytes(table->type) != static_cast<std::int64_t>(bytes))
        return fail(ErrorCode::RankFailed, "Rank {} of the {} run reported no digests.", rank, side.name);
      CLEAVE_TRY_VOID(file.read(*table, 0, std::as_writable_bytes(std::span(rows))));
    }
    return digests;
  }

  /// The digest of the full value. If the value is replicated, `rank`'s digest already is that.
  static Digest wholeOf(const Digests& digests, std::size_t number, const rules::Placement& placement,
                        std::size_t rank) {
    if (placement.isReplicated()) return digests.byRank[rank][number];
    Digest sum{};
    for (const auto& rows : digests.byRank) {
      for (int i = 0; i < program::kLargest; ++i) sum[i] += rows[number][i];
      sum[program::kLargest] = std::max(sum[program::kLargest], rows[number][program::kLargest]);
    }
    return sum;
  }

  /// The relative difference of a value according to its digests; infinite if the counts of non-finite elements differ.
  static double errorOf(const Digest& actual, const Digest& expected) {
    if (actual[program::kNotFinite] != expected[program::kNotFinite]) return HUGE_VAL;
    double apart = std::abs(std::sqrt(actual[program::kSquares]) - std::sqrt(expected[program::kSquares]));
    for (int i = 0; i < program::kProjections; ++i) apart = std::max(apart, std::abs(actual[i] - expected[i]));
    const double size = std::sqrt(std::max(actual[program::kSquares], expected[program::kSquares]));
    return apart == 0 ? 0 : apart / size;
  }

  /// The ruler of each value, relative to its size, from digests. All are 0 if the request has a tolerance.
  Result<std::vector<double>> rulersOfDigests(const Digests& unsplit) {
    std::vector<double> rulers(m_common.size(), 0);
    if (m_request.tolerance) return rulers;
    CLEAVE_TRY(const Digests reordered, digestsOf(m_reordered, Of::Reordered));
    for (std::size_t i = 0; i < m_common.size(); ++i)
      rulers[i] = std::min(1.0, errorOf(reordered.byRank[0][i], unsplit.byRank[0][i]));
    return rulers;
  }

  /// Returns the values whose digests differ, in graph order.
  Result<std::vector<ValueId>> compareDigests() {
    CLEAVE_TRY(const Digests actual, digestsOf(m_split, Of::Split));
    CLEAVE_TRY(const Digests expected, digestsOf(m_other, Of::Other));
    std::optional<Digests> unsplit;
    if (m_request.against && !m_request.tolerance) {
      CLEAVE_TRY(unsplit, digestsOf(m_unsplit, Of::Unsplit));
    }
    CLEAVE_TRY(const std::vector<double> rulers, rulersOfDigests(unsplit ? *unsplit : expected));
    std::vector<ValueId> suspects;
    for (std::size_t i = 0; i < m_common.size(); ++i) {
      const ValueId value = m_common[i].value, other = m_common[i].other;
      const rules::Placement &held = m_split.plan->solution->placements[value.index()],
                             &heldThere = m_other.plan->solution->placements[other.index()];
      const Digest whole = wholeOf(expected, i, heldThere, 0);
      if (whole[program::kNotFinite] > 0) m_notFinite.push_back(value);
      double& error = m_found.errors[value.index()];
      error = 0;
      const std::size_t copies = held.isReplicated() ? actual.byRank.size() : 1;
      for (std::size_t rank = 0; rank < copies; ++rank)
        error = std::max(error, errorOf(wholeOf(actual, i, held, rank), whole));
      m_found.tolerances[value.index()] +=
          rulersFor(graph::elementCount(m_split.plan->graph->shapeOf(value))) * rulers[i];
      if (error > kSuspicious * m_units[value.index()] + kSuspiciousRulers * rulers[i]) suspects.push_back(value);
    }
    m_found.apart = suspects.size();
    return suspects;
  }

  std::vector<ValueId> operandsOf(ValueId value) const {
    const graph::Graph& graph = *m_split.plan->graph;
    std::vector<ValueId> operands;
    for (const ValueId operand : graph::operandsOf(graph.node(graph.value(value).producer))) {
      if (m_places.contains(operand) && std::find(operands.begin(), operands.end(), operand) == operands.end())
        operands.push_back(operand);
    }
    return operands;
  }

  Result<void> compareInFull(const std::vector<ValueId>& suspects) {
    std::set<ValueId> wanted(suspects.begin(), suspects.end());
    for (const ValueId suspect : suspects) {
      for (const ValueId operand : operandsOf(suspect)) wanted.insert(operand);
    }
    const std::vector<ValueId> kept(wanted.begin(), wanted.end());
    std::vector<program::WatchedValue> own, others, alone;
    for (const ValueId value : kept) {
      const Common& common = m_common[m_places.at(value)];
      own.push_back(watched(*m_split.plan, value, true));
      others.push_back(watched(*m_other.plan, common.other, true));
      alone.push_back(watched(*m_unsplit.plan, common.unsplit, true));
    }
    CLEAVE_TRY(const fs::path actual, runSide(m_split, own));
    CLEAVE_TRY(const fs::path expected, runSide(m_other, others));
    fs::path unsplit = expected, reordered;
    if (!m_request.tolerance) {
      if (m_request.against) {
        CLEAVE_TRY(unsplit, runSide(m_unsplit, alone));
      }
      std::vector<program::WatchedValue> again;
      for (const ValueId value : kept)
        again.push_back(watched(*m_reordered.plan, m_common[m_places.at(value)].reordered, true));
      CLEAVE_TRY(reordered, runSide(m_reordered, again));
    }
    const auto differenceOfKept = [&](ValueId value) -> Result<ValueDifference> {
      const auto number = static_cast<std::size_t>(std::find(kept.begin(), kept.end(), value) - kept.begin());
      const auto heldOn = [&](const fs::path& files, const program::WatchedValue& held, int ranks) {
        return HeldValue{files, fmt::format("value.{}", number), held.shape, held.placement, ranks};
      };
      Rounding rounding{.unit = m_units[value.index()],
                        .elements = graph::elementCount(m_split.plan->graph->shapeOf(value))};
      if (!m_request.tolerance) {
        CLEAVE_TRY(rounding.moves,
                   movesOf(heldOn(reordered, alone[number], 1), heldOn(unsplit, alone[number], 1), rounding.unit));
      }
      CLEAVE_TRY(ValueDifference difference,
                 differenceOf(heldOn(actual, own[number], m_split.plan->spec.ranks),
                              heldOn(expected, others[number], m_other.plan->spec.ranks), rounding));
      difference.value = value;
      return difference;
    };
    for (const ValueId suspect : suspects) {
      CLEAVE_TRY(ValueDifference difference, differenceOfKept(suspect));
      if (difference.outside == 0) continue;
      m_found.first = std::move(difference);
      m_found.inputs.clear();
      std::vector<ValueId> earlier;
      for (const ValueId operand : operandsOf(suspect)) {
        CLEAVE_TRY(m_found.inputs.emplace_back(), differenceOfKept(operand));
        if (m_found.inputs.back().outside > 0) earlier.push_back(operand);
      }
      // A digest can miss a difference: large fill values at masked positions dominate it.
      return earlier.empty() ? Result<void>() : compareInFull(earlier);
    }
    return {};
  }

  /// NaN on both sides is not a difference, but the user needs to know where it starts.
  Result<void> findFirstNan() {
    const std::size_t end = std::min(m_notFinite.size(), kMostRounds * kMaybeNotNumbers);
    for (std::size_t from = 0; from < end && !m_found.firstNotANumber; from += kMaybeNotNumbers) {
      std::vector<program::WatchedValue> kept;
      for (std::size_t i = from; i < std::min(from + kMaybeNotNumbers, end); ++i)
        kept.push_back(watched(*m_other.plan, m_common[m_places.at(m_notFinite[i])].other, true));
      CLEAVE_TRY(const fs::path seen, runSide(m_other, kept));
      for (std::size_t i = 0; i < kept.size() && !m_found.firstNotANumber; ++i) {
        const HeldValue held{seen, fmt::format("value.{}", i), kept[i].shape, kept[i].placement,
                             m_other.plan->spec.ranks};
        const auto found = nanElementsOf(held);
        if (!found) return tl::unexpected(found.error());
        if (found->outside == 0) continue;
        m_found.firstNotANumber.emplace(*found).value = m_notFinite[from + i];
      }
    }
    return {};
  }

  const BisectRequest& m_request;
  const Progress& m_progress;
  const TemporaryFolder& m_folder;
  Side m_split, m_other, m_unsplit, m_reordered;
  std::vector<double> m_units;                        ///< by ValueId of the split plan's graph: Rounding::unit
  std::vector<Common> m_common;                       ///< in the order of the split plan's graph
  std::unordered_map<ValueId, std::size_t> m_places;  ///< in m_common
  std::vector<ValueId> m_notFinite;                   ///< in graph order; includes masks, whose infinities are correct
  int m_runs = 0;
  Bisection m_found;
};

/// Compares architecture, parameter names and full shapes.
bool areOfOneModel(const plan::Plan& a, const plan::Plan& b) {
  const auto shapes = [](const plan::Plan& plan) {
    std::map<std::string_view, graph::Shape> byName;
    for (const program::ParameterShards& parameter : plan.parameters)
      byName.emplace(parameter.name, parameter.type.shape);
    return byName;
  };
  return a.model.architecture == b.model.architecture && shapes(a) == shapes(b);
}

}  // namespace

Result<Bisection> bisect(const BisectRequest& request, const Progress& progress) {
  RunRequest asked;
  asked.plan = request.plan;
  asked.skipWeights = request.skipWeights;
  asked.initMissing = request.initMissing;
  if (const FolderCheck folder = checkFolder(asked); !folder.holds())
    return fail(ErrorCode::BadInput, "{}", folder.text);
  if (request.against && !areOfOneModel(*request.plan, *request.against)) {
    return fail(ErrorCode::BadInput,
                "The plans are for different models: {} in {} and {} in {}. Use two plans of one model.",
                request.plan->model.architecture, request.plan->model.source, request.against->model.architecture,
                request.against->model.source);
  }
  if (request.against && inputsInWords(request.against->model) != inputsInWords(request.plan->model)) {
    return fail(ErrorCode::BadInput, "The plans have different inputs: {}; {}. Plan both for the same inputs.",
                inputsInWords(request.plan->model), inputsInWords(request.against->model));
  }
  CLEAVE_TRY(const TemporaryFolder folder, TemporaryFolder::make("cleave-bisect"));
  return Bisector(request, progress, folder).run();
}

}  // namespace cleave::pipeline
