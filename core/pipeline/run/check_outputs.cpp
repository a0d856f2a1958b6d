#include "pipeline/run/check_outputs.h"

#include "base/quantities.h"
#include "pipeline/compare/compare_tensors.h"
#include "pipeline/compare/expected_outputs.h"
#include "pipeline/compare/not_a_number.h"
#include "pipeline/compare/token_differences.h"
#include "pipeline/solve/unsplit_plan.h"
#include "pipeline/source/planned_model.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cleave::pipeline {
namespace {

/// By output: the rounding in the coarsest type that it was computed in.
std::map<std::string, Rounding> roundingsOf(const RunReport& report, const RunRequest& request) {
  std::map<std::string, Rounding> roundings;
  const graph::Graph& graph = *request.plan->graph;
  const std::vector<graph::DType> coarsest = coarsestTypes(graph);
  for (const graph::Output& output : graph.outputs)
    roundings[output.name].unit =
        roundingUnit(coarsest[output.value.index()], report.spec.backend, request.mesh().ranks());
  return roundings;
}

/// The measured ruler.
struct Ruler {
  std::map<std::string, Moves> moves = {};       ///< by tensor
  std::vector<std::int64_t> undecidedFrom = {};  ///< for generation, by row: see compareTokens
  bool isMissing = false;                        ///< true: the unsplit run does not fit into memory
};

/// Outputs are replicated. Rank 0's outputs stand for all ranks with bit-identical ones; every other rank has written
/// its own outputs.
Result<void> compareOutputs(RunReport& report, const RunRequest& request, const RankFiles& files,
                            const fs::path& expected, std::int64_t steps, const Ruler& ruler) {
  const program::Training& training = request.training;
  Comparison comparison{
      .rtol = report.spec.rtol,
      .atol = report.spec.atol,
      .roundings = roundingsOf(report, request),
      .rounding = {.unit = roundingUnit(report.coarsest, report.spec.backend, request.mesh().ranks())},
      .isTraining = training.isAsked(),
      .isExpectedOfRun = !request.expect,
      .moves = 2 * training.learningRate * static_cast<double>(steps)};
  if (training.isAsked()) {
    CLEAVE_TRY(comparison.otherNames, otherNamesIn(*request.plan, expected));
  }
  if (ruler.isMissing) {
    comparison.roundings.clear();
    comparison.rounding.unit = unitWithoutRuler(report.coarsest, report.spec.backend, request.mesh().ranks());
  }
  for (const auto& [name, moves] : ruler.moves)
    comparison.roundings.try_emplace(name, comparison.rounding).first->second.moves = moves;
  // Padding is skipped only for a given file: an unsplit run of the same program computes the same logits at padding.
  if (request.expect && files.input && !training.isAsked()) {
    CLEAVE_TRY(comparison.padding, paddingOf(withRowsOf(request.plan->model, request.replicas), *files.input));
  }
  for (int rank = 0; rank < request.mesh().ranks(); ++rank) {
    const auto& results = report.outcome.results;
    const bool isSame = results[static_cast<std::size_t>(rank)]->outputDigests == results.front()->outputDigests;
    if (rank > 0 && isSame) continue;
    const fs::path file = rank == 0 ? files.output : fs::path(fmt::format("{}.{}", files.deviation.string(), rank));
    if (report.generation) {
      CLEAVE_TRY(OutputDifference tokens,
                 compareTokens(file, expected, ruler.undecidedFrom, report.generation->firstDifference));
      tokens.rank = rank;
      report.outputs.push_back(std::move(tokens));
      continue;
    }
    CLEAVE_TRY(auto differences, compareTensors(file, expected, comparison));
    for (OutputDifference& difference : differences) {
      difference.rank = rank;
      report.outputs.push_back(std::move(difference));
    }
  }
  return {};
}

void notePadding(RunReport& report) {
  const auto padded = std::find_if(report.outputs.begin(), report.outputs.end(),
                                   [](const OutputDifference& output) { return output.padding > 0; });
  if (padded == report.outputs.end()) return;
  report.notes.push_back(fmt::format("{} of {} {} padding and not compared.", padded->padding,
                                     counted(padded->positions, "position"), padded->padding == 1 ? "is" : "are"));
}

/// A sentence if the first loss is finite and a later one is not.
std::optional<std::string> divergesIn(const std::vector<protocol::TrainingStep>& steps) {
  const auto first = std::ranges::find_if(steps, [](const auto& step) { return !std::isfinite(step.loss); });
  if (first == steps.begin() || first == steps.end()) return std::nullopt;
  return fmt::format(
      "The loss is not finite from step {} on. Training diverges with and without the split. Use a smaller --lr, or "
      "--clip-norm.",
      first->step);
}

/// Explains NaN outputs that do not come from the split: weights that are not finite, divergence, or no labels.
Result<void> explainNotANumber(RunReport& report, const RunRequest& request, const RankFiles& files,
                               const Progress& progress) {
  const bool isNumber = std::all_of(report.outputs.begin(), report.outputs.end(),
                                    [](const OutputDifference& o) { return o.notANumber == 0; });
  if (isNumber) return {};
  const bool trains = request.training.isAsked();
  const auto isLossAlone = std::all_of(report.outputs.begin(), report.outputs.end(), [](const OutputDifference& o) {
    return (o.notANumber > 0) == (o.name == "loss");
  });
  if ((trains ? !report.steps.empty() && std::isnan(report.steps.front().loss) : isLossAlone) && files.input) {
    CLEAVE_TRY(const bool areIgnored, areAllLabelsIgnored(*files.input));
    if (areIgnored) {
      report.notes.push_back(
          "The loss is NaN with and without the split, because every label is -100. Set a label to compare the loss.");
      return {};
    }
  }
  if (auto diverges = trains ? divergesIn(report.steps) : std::nullopt) {
    report.notes.push_back(*std::move(diverges));
    return {};
  }
  if (request.skipWeights) return {};
  const auto weight = firstNonFiniteWeight(request.plan->model, progress);
  if (progress.cancelled()) return progress.cancelledError("comparing the outputs");
  if (weight && !weight->empty()) report.notes.push_back(*weight);
  return {};
}

void noteDeviations(RunReport& report) {
  int last = 0;
  for (const OutputDifference& output : report.outputs) {
    if (output.rank == std::exchange(last, output.rank) || output.rank == 0) continue;
    report.notes.push_back(
        fmt::format("Rank {} is not bit-identical to rank 0, so its outputs are compared too.", output.rank));
  }
}

/// Returns true if there is a difference that the ruler may explain.
bool needsRuler(const RunReport& report) {
  if (report.spec.rtol || report.spec.atol) return false;
  bool isOutside = false;
  for (const OutputDifference& output : report.outputs) {
    if (output.notANumber > 0) return false;
    isOutside = isOutside || !output.within();
  }
  return isOutside;
}

Result<Ruler> readRuler(const std::optional<RulerFiles>& files, const RunReport& report, const RunRequest& request) {
  Ruler ruler;
  if (!files) {
    ruler.isMissing = true;
  } else if (report.generation) {
    CLEAVE_TRY(ruler.undecidedFrom, firstDifferences(files->unsplit, files->reordered));
  } else {
    const auto roundings = roundingsOf(report, request);
    const double coarsest = roundingUnit(report.coarsest, report.spec.backend, request.mesh().ranks());
    const auto unitOf = [&](const std::string& name) {
      const auto own = roundings.find(name);
      return own == roundings.end() ? coarsest : own->second.unit;
    };
    CLEAVE_TRY(ruler.moves, movesBetween(files->unsplit, files->reordered, unitOf));
  }
  return ruler;
}

/// Returns true if few elements differ: they may be jumps that the previous measurements did not show.
bool needsAnotherRuler(const RunReport& report) {
  constexpr std::int64_t kFew = 8;
  return std::ranges::any_of(report.outputs, [](const OutputDifference& o) {
    return !o.within() && o.notANumber == 0 && o.rounding.moves && kFew * o.outside <= o.rounding.elements;
  });
}

/// Elements that depend on a choice which rounding decides.
void noteJumps(RunReport& report) {
  for (const OutputDifference& output : report.outputs) {
    if (output.jumped == 0) continue;
    report.notes.push_back(fmt::format(
        "{} of {} elements of {} are undecided: they differ by more than rounding, and so do as many in the unsplit "
        "run when its sums are reordered. The model chooses between nearly equal values there (an expert, an index, "
        "a threshold).",
        output.jumped, output.rounding.elements, output.name));
  }
}

/// Advises float32 when a run in half precision differs and no ruler was measured.
void noteRounding(RunReport& report, const RunRequest& request) {
  const plan::ModelInfo& model = request.plan->model;
  const bool isWithin = std::all_of(report.outputs.begin(), report.outputs.end(), [](const OutputDifference& output) {
    return output.within() || output.notANumber > 0;
  });
  if (!isHalf(model.dtype) || isWithin || report.rulerParts > 0) return;
  const std::string advice = model.isExported ? "Export the model in float32" : "Plan it with --dtype float32";
  report.notes.push_back(
      fmt::format("{} to distinguish rounding in {} from a wrong split.", advice, graph::toText(model.dtype)));
}

/// AdamW divides each gradient by its own size. If a gradient depends on rounding (a ReLU input near 0, a sum that
/// cancels), its parameter makes a full step in a random direction, in a correct split too.
void noteAdamW(RunReport& report, const RunRequest& request) {
  if (!request.training.isAsked() || request.training.optimizer != program::Optimizer::AdamW) return;
  bool isOutside = false;
  for (const OutputDifference& output : report.outputs) {
    if (output.notANumber > 0 || (output.name == "losses" && !output.within())) return;
    isOutside = isOutside || !output.within();
  }
  if (!isOutside) return;
  report.notes.push_back(
      "The losses agree. AdamW divides each gradient by its own size, so gradients that are only rounding move single "
      "elements differently in a correct split too. To detect a wrong split, train one step with SGD: --steps 1 "
      "--optimizer "
      "sgd --lr 1.");
}

}  // namespace

Result<void> compareWith(const fs::path& expected, RunReport& report, const RunRequest& request, const RankFiles& files,
                         std::int64_t steps, const MeasureRuler& measure, const Progress& progress) {
  progress.report("compare");
  CLEAVE_TRY_VOID(compareOutputs(report, request, files, expected, steps, {}));
  if (needsRuler(report)) {
    constexpr int kMostMeasurements = 8;
    std::map<std::string, Moves> moves;
    for (int again = 0; again < kMostMeasurements && (again == 0 || needsAnotherRuler(report)); ++again) {
      progress.report("ruler");
      CLEAVE_TRY(const auto made, measure(again));
      CLEAVE_TRY(Ruler ruler, readRuler(made, report, request));
      for (auto& [name, found] : ruler.moves) found = moves[name] = moves[name].with(found);
      if (made) report.rulerParts = reorderedParts(*request.plan, again);
      report.outputs.clear();
      CLEAVE_TRY_VOID(compareOutputs(report, request, files, expected, steps, ruler));
    }
    noteJumps(report);
  }
  noteDeviations(report);
  notePadding(report);
  noteAdamW(report, request);
  CLEAVE_TRY_VOID(explainNotANumber(report, request, files, progress));
  noteRounding(report, request);
  return {};
}

RunVerdict verdictOf(const RunReport& report) {
  const bool isWithin = std::all_of(report.outputs.begin(), report.outputs.end(),
                                    [](const OutputDifference& output) { return output.within(); });
  if (!isWithin || !report.violations.empty()) return RunVerdict::Failed;
  return report.outputs.empty() ? RunVerdict::NotChecked : RunVerdict::Passed;
}

}  // namespace cleave::pipeline
