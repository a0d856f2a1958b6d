#include "pipeline/run_steps.h"

#include "base/output_file.h"
#include "base/quantities.h"
#include "pipeline/compare.h"
#include "pipeline/folder_check.h"
#include "pipeline/generation.h"
#include "pipeline/plan_again.h"
#include "pipeline/unsplit_place.h"
#include "plan/headline.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {
namespace {

/// By output, or of all parameters and losses: what rounding is in the coarsest type that they were computed in.
std::map<std::string, Rounding> roundingsOf(const RunReport& report, const RunRequest& request) {
  std::map<std::string, Rounding> roundings;
  const graph::Graph& graph = *request.plan->graph;
  const std::vector<graph::DType> coarsest = coarsestTypes(graph);
  for (const graph::Output& output : graph.outputs)
    roundings[output.name].unit = roundingUnit(coarsest[output.value.index()], report.backend, request.mesh().ranks());
  return roundings;
}

/// What the ruler says, once it is measured.
struct Ruler {
  std::map<std::string, Moves> moves = {};       ///< by tensor
  std::vector<std::int64_t> undecidedFrom = {};  ///< of generation, by row: see compareTokens
  bool isMissing = false;                        ///< it does not fit into memory
};

/// Every rank holds all outputs whole. Those of rank 0 are compared, and with them the ranks that computed the same bit
/// for bit; any other rank has written its own.
Result<void> compareOutputs(RunReport& report, const RunRequest& request, const RankFiles& files,
                            const fs::path& expected, std::int64_t steps, const Ruler& ruler) {
  const program::Training& training = request.training;
  Comparison comparison{.rtol = report.rtol,
                        .atol = report.atol,
                        .roundings = roundingsOf(report, request),
                        .rounding = {.unit = roundingUnit(report.coarsest, report.backend, request.mesh().ranks())},
                        .isTraining = training.isAsked(),
                        .isExpectedOfRun = !request.expect,
                        .moves = 2 * training.learningRate * static_cast<double>(steps)};
  if (training.isAsked()) {
    CLEAVE_TRY(comparison.otherNames, otherNamesIn(*request.plan, expected));
  }
  if (ruler.isMissing) {
    comparison.roundings.clear();
    comparison.rounding.unit = unitWithoutRuler(report.coarsest, report.backend, request.mesh().ranks());
  }
  for (const auto& [name, moves] : ruler.moves)
    comparison.roundings.try_emplace(name, comparison.rounding).first->second.moves = moves;
  // An unsplit run of the same program has the same where there is padding.
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

/// Where losses are numbers to begin with, and later are none.
std::optional<std::string> divergesIn(const std::vector<protocol::TrainingStep>& steps) {
  const auto first = std::ranges::find_if(steps, [](const auto& step) { return !std::isfinite(step.loss); });
  if (first == steps.begin() || first == steps.end()) return std::nullopt;
  return fmt::format(
      "From step {} on the loss is not a number: training diverges so, whether the model is split or not. Take a "
      "smaller --lr, or --clip-norm.",
      first->step);
}

/// Weights that hold no numbers leave none in the outputs, however they are split; and no label leaves no loss.
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
    CLEAVE_TRY(const bool isNone, leavesNoLabel(*files.input));
    if (isNone) {
      report.notes.push_back(
          "Every label is -100, so that the loss is the average of none and not a number, whether the model is split "
          "or not: give a label to compare it.");
      return {};
    }
  }
  if (auto diverges = trains ? divergesIn(report.steps) : std::nullopt) {
    report.notes.push_back(*std::move(diverges));
    return {};
  }
  if (request.skipWeights) return {};
  const auto weight = weightThatIsNotFinite(request.plan->model, progress);
  if (progress.cancelled()) return progress.cancelledError("comparing the outputs");
  if (weight && !weight->empty()) report.notes.push_back(*weight);
  return {};
}

void noteDeviations(RunReport& report) {
  int last = 0;
  for (const OutputDifference& output : report.outputs) {
    if (output.rank == std::exchange(last, output.rank) || output.rank == 0) continue;
    report.notes.push_back(
        fmt::format("Rank {} did not compute the very bits of rank 0: its outputs are compared too.", output.rank));
  }
}

/// Whether the ruler can tell a difference that was found from rounding.
bool asksForRuler(const RunReport& report) {
  if (report.rtol || report.atol) return false;
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
    const double coarsest = roundingUnit(report.coarsest, report.backend, request.mesh().ranks());
    const auto unitOf = [&](const std::string& name) {
      const auto own = roundings.find(name);
      return own == roundings.end() ? coarsest : own->second.unit;
    };
    CLEAVE_TRY(ruler.moves, movesBetween(files->unsplit, files->reordered, unitOf));
  }
  return ruler;
}

/// Whether few elements differ: they may have jumped, and one measurement may miss that they do.
bool asksForAnother(const RunReport& report) {
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
        "{} of {} elements of {} are not decided: they differ by more than rounding, but as many jump as far "
        "in the unsplit run when its sums are reordered. The model chooses between nearly equal values there "
        "(an expert, an index, a threshold).",
        output.jumped, output.rounding.elements, output.name));
  }
}

bool isHalf(graph::DType dtype) { return dtype == graph::DType::BFloat16 || dtype == graph::DType::Float16; }

/// Advises float32 when a run in half precision differs and no ruler was measured.
void noteRounding(RunReport& report, const RunRequest& request) {
  const plan::ModelInfo& model = request.plan->model;
  const bool isWithin = std::all_of(report.outputs.begin(), report.outputs.end(), [](const OutputDifference& output) {
    return output.within() || output.notANumber > 0;
  });
  if (!isHalf(model.dtype) || isWithin || report.rulerParts > 0) return;
  const std::string advice = model.isExported ? "Export the model in float32" : "Plan it with --dtype float32";
  report.notes.push_back(
      fmt::format("{} to tell rounding in {} from a wrong split.", advice, graph::toText(model.dtype)));
}

/// AdamW divides a gradient by its own size: where rounding decides which side of a kink a unit is on, or what a sum
/// that cancels comes to, single elements move as far as any, in a right split too.
void noteKinks(RunReport& report, const RunRequest& request) {
  if (!request.training.isAsked() || request.training.optimizer != program::Optimizer::AdamW) return;
  bool isOutside = false;
  for (const OutputDifference& output : report.outputs) {
    if (output.notANumber > 0 || (output.name == "losses" && !output.within())) return;
    isOutside = isOutside || !output.within();
  }
  if (!isOutside) return;
  report.notes.push_back(
      "The losses agree. AdamW divides each gradient by its own size, so that where rounding decides (a unit of ReLU, "
      "a "
      "sum that cancels) single elements move otherwise in a right split too: a run of this model with --train-steps 1 "
      "--optimizer sgd --lr 1 tells a wrong one.");
}

/// Why the tolerance is wider than on CPUs.
void noteSumsOfNccl(RunReport& report, const RunRequest& request) {
  const graph::DType dtype = request.plan->model.dtype;
  if (!isHalf(dtype) || report.backend != launch::Backend::Nccl || request.mesh().ranks() <= 2) return;
  report.notes.push_back(fmt::format("NCCL sums {} in {}, with {} roundings per sum; Gloo sums it in float32.",
                                     graph::toText(dtype), graph::toText(dtype), request.mesh().ranks() - 1));
}

/// What a program or the request leaves out of training.
void noteFrozen(RunReport& report, const RunRequest& request) {
  if (!request.training.isAsked() || !request.plan->backward) return;
  const graph::Graph& program = *request.plan->program;
  std::int64_t all = 0, trained = 0;
  for (const graph::Node& node : program.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    ++all;
    trained += request.plan->backward->gradients.of(node.results[0]);
  }
  const std::int64_t frozen = std::ssize(program.frozen), others = all - trained - frozen;
  if (trained == all) return;
  std::string text = fmt::format("{} of {} parameters are trained.", trained, all);
  if (frozen > 0) text += fmt::format(" {} {} or frozen.", frozen, frozen == 1 ? "is a buffer" : "are buffers");
  if (others > 0) text += fmt::format(" {} {} no gradient from the loss.", others, others == 1 ? "gets" : "get");
  report.notes.push_back(std::move(text));
}

/// Buffers that the program changes: those that its results depend on, or the others.
std::vector<std::string> writtenBuffers(const plan::Plan& plan, bool areRead) {
  std::vector<std::string> names;
  for (const std::string& name : plan.model.writtenBuffers) {
    const auto value = plan.graph->findValue(name);
    const bool isRead = value.isValid() && !plan.graph->value(value).users.empty();
    if (isRead == areRead) names.push_back(name);
  }
  return names;
}

std::string firstOf(const std::vector<std::string>& names) {
  return names.front() + (names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "");
}

void noteWritten(RunReport& report, const RunRequest& request) {
  if (!request.training.isAsked()) return;
  const std::vector<std::string> written = writtenBuffers(*request.plan, false);
  if (written.empty()) return;
  report.notes.push_back(
      fmt::format("The program writes to {} ({}) that its results do not read. Cleave does not carry what it writes: "
                  "the values of {} after training are not those of PyTorch.",
                  counted(std::ssize(written), "buffer"), firstOf(written), written.size() == 1 ? "it" : "them"));
}

std::map<int, MemoryComparison> memoryByRank(const std::map<int, protocol::MemoryAccount>& accounts,
                                             const launch::RunOutcome& outcome, const RunRequest& request) {
  std::map<int, MemoryComparison> byRank;
  for (const auto& [rank, account] : accounts) {
    const auto& result = outcome.results[static_cast<std::size_t>(rank)];
    if (!result) continue;
    byRank[rank] = compareMemory(account, *request.plan, request.training.isAsked(),
                                 result->peak.process - result->peak.program, request.replicas);
  }
  return byRank;
}

/// Parameters of another type than the model's are cast while they are loaded, as from_pretrained does.
void noteCasts(RunReport& report, const RunRequest& request) {
  if (!request.readsWeights()) return;
  std::map<std::string, std::int64_t> byType;
  for (const program::ParameterShards& parameter : request.plan->parameters) {
    if (parameter.isStoredFor(0) && parameter.storedDtype != parameter.type.dtype)
      ++byType[fmt::format("stored as {} and computed in {}", graph::toText(parameter.storedDtype),
                           graph::toText(parameter.type.dtype))];
  }
  for (const auto& [how, count] : byType)
    report.notes.push_back(fmt::format("{} of {} {} {}.", count,
                                       counted(std::ssize(request.plan->parameters), "parameter"),
                                       count == 1 ? "is" : "are", how));
}

/// Such as positions of one's own, for which a folder's program has no input.
void noteUnusedInputs(RunReport& report, const RunRequest& request) {
  if (!request.input) return;
  auto unused = unusedInputs(*request.plan, *request.input);
  if (unused && request.generation.isAsked())
    std::erase_if(*unused, [](const std::string& name) { return name == "prompt" || name == "tokens"; });
  if (!unused || unused->empty()) return;  // the ranks say what is wrong with the file
  constexpr std::ptrdiff_t kMostNamed = 3;
  const auto count = std::ssize(*unused), named = std::min(count, kMostNamed);
  report.notes.push_back(fmt::format("{} also has {}{}, for which this plan has no input: the run does not use {}.",
                                     request.input->string(), fmt::join(unused->begin(), unused->begin() + named, ", "),
                                     count > named ? fmt::format(" and {} more", count - named) : "",
                                     count == 1 ? "it" : "them"));
}

}  // namespace

Result<void> checkTraining(const RunRequest& request) {
  if (!request.training.isAsked()) return {};
  CLEAVE_TRY_VOID(program::check(request.training));
  const plan::Plan& plan = *request.plan;
  if (!plan.costSettings.isTraining)
    return fail(ErrorCode::BadInput, "The plan is not for training: plan again with --train.");
  const std::vector<std::string> written = writtenBuffers(plan, true);
  if (!written.empty() && request.training.steps * request.training.accumulate > 1) {
    return fail(ErrorCode::BadInput,
                "{}: each pass of the program changes the buffer {}, which the next pass reads. Cleave does not carry "
                "buffers from pass to pass. Run one step (--train-steps 1), or export the model in eval mode.",
                plan.model.source, firstOf(written));
  }
  if (plan.backward) return {};
  CLEAVE_TRY_VOID(program::backwardOf(*plan.program, plan.parameters, plan.ranks, plan.checkpointed));
  return {};
}

Result<launch::BackendChoice> backendFor(const RunRequest& request, const Progress& progress) {
  if (request.attended) return launch::BackendChoice{request.backend, {}};
  const std::int64_t bytes = request.ignoreMemory ? 0 : gpuBytes(*request.plan, request.workload());
  return launch::chooseBackend(request.backend, request.mesh().ranks(), bytes, progress);
}

Result<RunReport> beginReport(const RunRequest& request, const launch::BackendChoice& choice) {
  RunReport report;
  report.backend = choice.backend;
  report.coarsest = coarsestType(*request.plan->graph);
  if (request.rtol || request.atol) {
    report.rtol = request.rtol.value_or(0);
    report.atol = request.atol.value_or(0);
  }
  report.warnings = request.plan->warnings;
  report.mesh = request.mesh();
  report.training = request.training;
  const plan::ModelInfo& info = request.plan->model;
  CLEAVE_TRY_VOID(program::checkReplicated(report.mesh, info.source, info.isExported));
  CLEAVE_TRY_VOID(checkTraining(request));
  if (!choice.why.empty()) report.notes.push_back(choice.why);
  noteSumsOfNccl(report, request);
  noteFrozen(report, request);
  noteWritten(report, request);
  if (const std::string isOff = plan::dropoutOffText(*request.plan); request.training.isAsked() && !isOff.empty())
    report.notes.push_back(isOff);
  const FolderCheck folder = checkFolder(request);
  if (!folder.holds()) return fail(ErrorCode::BadInput, "{}", folder.text);
  noteCasts(report, request);
  noteUnusedInputs(report, request);
  return report;
}

Result<void> checkRoom(const RunRequest& request, launch::Backend backend, RunReport& report) {
  std::vector<MemoryCheck> checks;
  if (!request.attended) checks.push_back(checkMemory(*request.plan, backend, request.workload()));
  if (request.comparesUnsplit() &&
      unsplitPlace(*request.plan, request.workload(), backend).backend == launch::Backend::Gloo)
    checks.push_back(checkUnsplitMemory(*request.plan, request.workload()));
  for (const MemoryCheck& memory : checks) {
    if (memory.fits()) continue;
    if (!request.ignoreMemory) return fail(ErrorCode::Environment, "{}", memory.text);
    report.notes.push_back(memory.text);
  }
  return {};
}

Result<launch::RunOutcome> launchRanks(const plan::Plan& plan, launch::Backend backend, const RankFiles& files,
                                       const RunRequest& request, const launch::Observer& observer,
                                       const Progress& progress, const std::vector<std::string>& then) {
  CLEAVE_TRY_VOID(writeFile(files.plan, plan::toJson(plan)));
  launch::LaunchRequest launch;
  launch.rankProgram = request.rankProgram;
  if (launch.rankProgram.empty()) {
    CLEAVE_TRY(launch.rankProgram, launch::rankProgram());
  }
  launch.planFile = files.plan;
  launch.ranks = plan.ranks * request.replicas;
  launch.backend = backend;
  launch.silence = request.silence;
  // Of training the outputs are all parameters: not gathered where nobody wants them.
  if (request.wantsOutputs() || !request.training.isAsked())
    launch.rankArguments = {"--output", files.output.string(), "--deviation", files.deviation.string()};
  for (const std::string& one : then) launch.rankArguments.insert(launch.rankArguments.end(), {"--then", one});
  std::ranges::copy(rankArguments(request), std::back_inserter(launch.rankArguments));
  if (request.step) {
    CLEAVE_TRY_VOID(writeFile(files.step, plan::toJson(*request.step)));
    launch.rankArguments.insert(launch.rankArguments.end(), {"--decode", files.step.string()});
  }
  return launch::launch(launch, observer, progress);
}

Result<void> launchUnsplit(const plan::Plan& plan, const UnsplitPlace& place, const RankFiles& files,
                           const RunRequest& request, const ModelFiles& model, const Progress& progress,
                           const std::vector<std::string>& then) {
  RunRequest alone = request;
  alone.recordsTimes = false;
  alone.replicas = 1;
  if (request.step) {
    CLEAVE_TRY(alone.step, planStep(plan, progress));
  }
  const auto nobody = [](const launch::RankEvent&) {};
  const auto outcome = launchRanks(plan, place.backend, files, alone, nobody, progress, then);
  if (!outcome && outcome.error().code == ErrorCode::Cancelled)
    return progress.cancelledError("the unsplit run went on, which the ranks are compared with");
  if (!outcome) return tl::unexpected(outcome.error());
  CLEAVE_TRY_VOID(model.checkUnchanged());
  if (outcome->succeeded) return {};
  const launch::RankExit& failure = *outcome->firstFailure;
  return fail(failure.code, "The unsplit run that the ranks are compared with failed: it {}. {}", failure.what,
              failure.lastWords);
}

Follower::Follower(const RunRequest& request, bool loads)
    : m_request(request),
      m_conduct(*request.plan, loads && !request.skipWeights, request.training, request.replicas),
      m_times(request.mesh().ranks()) {
  if (request.step) m_conduct.expectSteps(*request.step, request.generation.tokens - 1);
}

void Follower::observe(const launch::RankEvent& event) {
  m_conduct.observe(event);
  m_times.observe(event);
  if (!event.message) return;
  if (const auto* account = std::get_if<protocol::MemoryAccount>(&*event.message)) m_accounts[event.rank] = *account;
  if (const auto* done = std::get_if<protocol::Generated>(&*event.message)) m_generated[event.rank] = *done;
  if (const auto* hello = std::get_if<protocol::Hello>(&*event.message); hello && event.rank == 0)
    m_precision = hello->precision;
  const auto* step = std::get_if<protocol::TrainingStep>(&*event.message);
  if (step && event.rank == 0 && std::ssize(m_steps) < m_request.training.steps) m_steps.push_back(*step);
}

void Follower::tell(RunReport& report) const {
  report.precision = m_precision;
  report.violations = m_conduct.violations(report.outcome);
  report.memory = memoryByRank(m_accounts, report.outcome, m_request);
  if (m_request.step) return;  // its steps are not recorded
  if (auto timeline = m_times.timeline(*m_request.plan->program)) {
    report.timeline = *std::move(timeline);
  } else {
    report.notes.push_back(timeline.error().message);
  }
  if (m_request.training.isAsked()) report.replicaSum = replicaSum(*m_request.plan, report.mesh, report.timeline);
}

Result<void> compareWith(const fs::path& expected, RunReport& report, const RunRequest& request, const RankFiles& files,
                         std::int64_t steps, const MeasureRuler& measure, const Progress& progress) {
  progress.report("compare");
  CLEAVE_TRY_VOID(compareOutputs(report, request, files, expected, steps, {}));
  if (asksForRuler(report)) {
    constexpr int kMostMeasurements = 8;
    std::map<std::string, Moves> moves;
    for (int again = 0; again < kMostMeasurements && (again == 0 || asksForAnother(report)); ++again) {
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
  noteKinks(report, request);
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
