#include "pipeline/report/report_read.h"

#include "base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {
namespace {

using protocol::MemoryKind;

constexpr IntegerRange kCount{.min = 0, .max = std::int64_t{1} << 53};  // a JSON double is exact up to here

/// JSON has null for infinities and NaN.
Result<double> numberOr(const JsonObject& json, std::string_view key, double fallback) {
  if (!json.has(key)) return fallback;
  return json.number(key);
}

Result<std::int64_t> countOf(const JsonObject& json, std::string_view key) { return json.integer(key, kCount, 0); }

/// Calls `read` for each object of a list that may be absent.
template <class Read>
Result<void> forEachIn(const JsonObject& json, std::string_view key, std::size_t most, Read&& read) {
  if (!json.has(key)) return {};
  CLEAVE_TRY(const JsonArray items, json.array(key));
  if (items.size() > most) return json.wrong(key, fmt::format("a list of at most {} items", most));
  for (std::size_t i = 0; i < items.size(); ++i) {
    CLEAVE_TRY(const JsonObject item, items.object(i));
    CLEAVE_TRY_VOID(read(item));
  }
  return {};
}

Result<std::vector<std::string>> textsOr(const JsonObject& json, std::string_view key) {
  if (!json.has(key)) return std::vector<std::string>();
  return json.texts(key);
}

class ReportReader {
 public:
  explicit ReportReader(const JsonObject& root) : m_root(root) {}

  Result<PastRun> read() {
    CLEAVE_TRY_VOID(readPlan());
    CLEAVE_TRY_VOID(readVerdict());
    CLEAVE_TRY_VOID(readTraining());
    CLEAVE_TRY_VOID(forEachIn(m_root, "outputs", kMostItems, [this](const JsonObject& o) { return readOutput(o); }));
    CLEAVE_TRY_VOID(
        forEachIn(m_root, "ranks", kMostReportedRanks, [this](const JsonObject& r) { return readRank(r); }));
    CLEAVE_TRY_VOID(readTimeline());
    CLEAVE_TRY_VOID(
        forEachIn(m_root, "memory", kMostReportedRanks, [this](const JsonObject& m) { return readMemory(m); }));
    CLEAVE_TRY(m_run.report.violations, textsOr(m_root, "violations"));
    CLEAVE_TRY(m_run.report.notes, textsOr(m_root, "notes"));
    CLEAVE_TRY(m_run.report.warnings, textsOr(m_root, "warnings"));
    CLEAVE_TRY_VOID(readFailure());
    return std::move(m_run);
  }

 private:
  static constexpr std::size_t kMostItems = 200'000;

  Result<void> readPlan() {
    CLEAVE_TRY(const JsonObject json, m_root.object("plan"));
    PlanOfReport& plan = m_run.plan;
    CLEAVE_TRY(plan.model, json.text("model"));
    for (const auto& [key, to] : {std::pair{"architecture", &plan.architecture},
                                  {"dtype", &plan.dtype},
                                  {"engine", &plan.engine},
                                  {"menu", &plan.menu},
                                  {"sequence_parallel", &plan.sequenceParallel},
                                  {"device_profile", &plan.deviceProfile}}) {
      CLEAVE_TRY(*to, json.text(key, ""));
    }
    CLEAVE_TRY(plan.demands, textsOr(json, "demands"));
    CLEAVE_TRY(plan.batch, countOf(json, "batch"));
    CLEAVE_TRY(plan.sequence, countOf(json, "sequence"));
    CLEAVE_TRY(const std::int64_t ranks, json.integer("ranks", {.min = 1, .max = kMostReportedRanks}));
    plan.ranks = static_cast<int>(ranks);
    CLEAVE_TRY(plan.collectives, countOf(json, "collectives"));
    CLEAVE_TRY(plan.predictedMemory, countOf(json, "predicted_memory"));
    m_run.report.outcome.results.resize(static_cast<std::size_t>(plan.ranks));
    return {};
  }

  Result<void> readVerdict() {
    RunReport& report = m_run.report;
    report.verdict = RunVerdict::NotChecked;
    if (m_root.has("passed")) {
      CLEAVE_TRY(const bool hasPassed, m_root.flag("passed"));
      report.verdict = hasPassed ? RunVerdict::Passed : RunVerdict::Failed;
    }
    CLEAVE_TRY(report.backend, m_root.word<launch::Backend>("backend", launch::parseBackend));
    CLEAVE_TRY(report.precision, m_root.text("precision", ""));
    CLEAVE_TRY(report.comparedWith, m_root.text("compared_with", ""));
    if (m_root.has("rtol") && m_root.has("atol")) {
      CLEAVE_TRY(report.rtol, numberOr(m_root, "rtol", 0));
      CLEAVE_TRY(report.atol, numberOr(m_root, "atol", 0));
    }
    if (m_root.has("coarsest_dtype")) {
      CLEAVE_TRY(report.coarsest, m_root.word("coarsest_dtype", graph::parseDType));
    }
    CLEAVE_TRY(const std::int64_t parts, m_root.integer("ruler_parts", {.min = 0, .max = program::kMaxRanks}, 0));
    report.rulerParts = static_cast<int>(parts);
    return {};
  }

  Result<void> readTraining() {
    if (!m_root.has("training")) return {};
    CLEAVE_TRY(const JsonObject json, m_root.object("training"));
    program::Training& training = m_run.report.training;
    CLEAVE_TRY(training.optimizer, json.word<program::Optimizer>("optimizer", program::parseOptimizer));
    CLEAVE_TRY(training.learningRate, json.number("learning_rate"));
    CLEAVE_TRY(training.weightDecay, json.number("weight_decay", 0.0));
    if (json.has("clip_norm")) {
      CLEAVE_TRY(training.clipNorm, json.number("clip_norm"));
    }
    CLEAVE_TRY(training.accumulate, json.integer("accumulate", kPositive, 1));
    CLEAVE_TRY_VOID(forEachIn(json, "steps", static_cast<std::size_t>(program::kMostSteps),
                              [this](const JsonObject& step) { return readStep(step); }));
    auto& steps = m_run.report.steps;
    training.steps = std::max<std::int64_t>(1, std::ssize(steps));
    for (protocol::TrainingStep& step : steps) step.steps = training.steps;
    return {};
  }

  Result<void> readStep(const JsonObject& json) {
    protocol::TrainingStep step{.step = std::ssize(m_run.report.steps) + 1};
    CLEAVE_TRY(step.loss, numberOr(json, "loss", std::nan("")));
    CLEAVE_TRY(step.microseconds, countOf(json, "step_us"));
    step.hasNorm = json.json().contains("gradient_norm");
    CLEAVE_TRY(step.gradientNorm, numberOr(json, "gradient_norm", step.hasNorm ? std::nan("") : 0));
    m_run.report.steps.push_back(step);
    return {};
  }

  Result<void> readOutput(const JsonObject& json) {
    OutputDifference output;
    CLEAVE_TRY(output.name, json.text("name"));
    CLEAVE_TRY(const std::int64_t rank, json.integer("rank", {.min = 0, .max = m_run.plan.ranks - 1}, 0));
    output.rank = static_cast<int>(rank);
    CLEAVE_TRY(output.maxAbs, numberOr(json, "max_abs_diff", HUGE_VAL));
    CLEAVE_TRY(output.maxRel, numberOr(json, "max_rel_diff", HUGE_VAL));
    CLEAVE_TRY(output.ofTolerance, numberOr(json, "of_tolerance", HUGE_VAL));
    for (const auto& [key, to] : {std::pair{"outside", &output.outside},
                                  {"not_a_number", &output.notANumber},
                                  {"positions", &output.positions},
                                  {"padding", &output.padding},
                                  {"undetermined", &output.undetermined}}) {
      CLEAVE_TRY(*to, countOf(json, key));
    }
    if (json.has("jumped")) {
      CLEAVE_TRY(output.jumped, countOf(json, "jumped"));
    }
    CLEAVE_TRY(output.rounding.unit, numberOr(json, "unit", 0));
    if (json.has("ruler")) {
      CLEAVE_TRY(output.rounding.moves.emplace().ruler, numberOr(json, "ruler", HUGE_VAL));
    }
    if (json.has("farthest")) {
      CLEAVE_TRY(const JsonObject farthest, json.object("farthest"));
      CLEAVE_TRY(output.place, farthest.integers("place"));
      CLEAVE_TRY(output.actual, numberOr(farthest, "actual", HUGE_VAL));
      CLEAVE_TRY(output.expected, numberOr(farthest, "expected", HUGE_VAL));
      CLEAVE_TRY(output.allowed, numberOr(farthest, "allowed", HUGE_VAL));
    }
    m_run.report.outputs.push_back(std::move(output));
    return {};
  }

  Result<std::size_t> rankOf(const JsonObject& json) const {
    CLEAVE_TRY(const std::int64_t rank, json.integer("rank", {.min = 0, .max = m_run.plan.ranks - 1}));
    return static_cast<std::size_t>(rank);
  }

  Result<void> readRank(const JsonObject& json) {
    CLEAVE_TRY(const std::size_t rank, rankOf(json));
    protocol::RankResult result;
    for (const auto& [key, to] : {std::pair{"bytes_read", &result.bytesRead},
                                  {"shard_bytes", &result.shardBytes},
                                  {"largest_parameter_allocation", &result.largestParameterAllocation},
                                  {"peak_memory", &result.peak.program},
                                  {"peak_rss", &result.peak.process},
                                  {"allocator_rounding", &result.peak.rounding},
                                  {"step_us", &result.stepMicroseconds}}) {
      CLEAVE_TRY(*to, countOf(json, key));
    }
    if (json.has("collectives")) {
      CLEAVE_TRY(const JsonObject collectives, json.object("collectives"));
      CLEAVE_TRY(result.allReduce, countOf(collectives, "all_reduce"));
      CLEAVE_TRY(result.allGather, countOf(collectives, "all_gather"));
      CLEAVE_TRY(result.reduceScatter, countOf(collectives, "reduce_scatter"));
    }
    result.hasLoss = json.json().contains("loss");
    CLEAVE_TRY(result.loss, numberOr(json, "loss", result.hasLoss ? std::nan("") : 0));
    m_run.report.outcome.results[rank] = std::move(result);
    return {};
  }

  static Result<std::int64_t> nanoseconds(const JsonObject& json, std::string_view key) {
    CLEAVE_TRY(const double microseconds, numberOr(json, key, 0));
    constexpr double kMost = 1e15;  // in microseconds: thirty years
    if (!(microseconds >= 0 && microseconds <= kMost)) return json.wrong(key, "a number of microseconds");
    return std::llround(microseconds * 1000);
  }

  Result<void> readTimeline() {
    if (!m_root.has("time")) return {};
    CLEAVE_TRY(const JsonObject json, m_root.object("time"));
    Timeline& timeline = m_run.report.timeline;
    CLEAVE_TRY(timeline.totalNs, nanoseconds(json, "step_us"));
    CLEAVE_TRY(timeline.skewNs, nanoseconds(json, "skew_us"));
    CLEAVE_TRY(timeline.isOneClock, json.flag("one_clock", true));
    CLEAVE_TRY(const std::int64_t predicted, nanoseconds(json, "predicted_step_us"));
    m_run.predictedStepNs = static_cast<double>(predicted);
    return forEachIn(json, "ranks", kMostReportedRanks, [&timeline](const JsonObject& rank) -> Result<void> {
      LaneSum sum;
      CLEAVE_TRY(sum.compute, nanoseconds(rank, "compute_us"));
      CLEAVE_TRY(sum.collective, nanoseconds(rank, "collective_us"));
      CLEAVE_TRY(sum.waiting, nanoseconds(rank, "waiting_us"));
      CLEAVE_TRY(sum.total, nanoseconds(rank, "total_us"));
      CLEAVE_TRY(sum.madeOthersWait, nanoseconds(rank, "made_others_wait_us"));
      timeline.sums.push_back(sum);
      return {};
    });
  }

  /// The name of a known part of memory; empty for other names. The result outlives `name`.
  static std::string_view partNamed(std::string_view name) {
    for (int i = 0; i < protocol::kMemoryKinds; ++i) {
      if (const std::string_view known = protocol::toText(static_cast<MemoryKind>(i)); known == name) return known;
    }
    return name == "context" ? "context" : name == "peak" ? "peak" : std::string_view();
  }

  static Result<MemoryLine> lineOf(const JsonObject& json) {
    MemoryLine line;
    CLEAVE_TRY(const std::string name, json.text("name"));
    line.name = partNamed(name);
    CLEAVE_TRY(line.measured, countOf(json, "measured"));
    CLEAVE_TRY(line.predicted, json.optionalInteger("predicted", kCount));
    return line;
  }

  Result<void> readMemory(const JsonObject& json) {
    CLEAVE_TRY(const std::size_t rank, rankOf(json));
    MemoryComparison memory;
    CLEAVE_TRY(const JsonObject peak, json.object("peak"));
    CLEAVE_TRY(memory.peak, lineOf(peak));
    CLEAVE_TRY_VOID(
        forEachIn(json, "parts", 2 * protocol::kMemoryKinds, [&memory](const JsonObject& part) -> Result<void> {
          CLEAVE_TRY(const MemoryLine line, lineOf(part));
          if (!line.name.empty()) memory.lines.push_back(line);
          return {};
        }));
    m_run.report.memory[static_cast<int>(rank)] = std::move(memory);
    return {};
  }

  Result<void> readFailure() {
    launch::RunOutcome& outcome = m_run.report.outcome;
    outcome.succeeded = !m_root.has("first_failure");
    if (outcome.succeeded) return {};
    CLEAVE_TRY(const JsonObject json, m_root.object("first_failure"));
    CLEAVE_TRY(const std::size_t rank, rankOf(json));
    launch::RankExit failure{.rank = static_cast<int>(rank), .failed = true};
    CLEAVE_TRY(const std::int64_t code, json.integer("code", {.min = 0, .max = 255}, 5));
    failure.code = protocol::errorCodeOf(static_cast<int>(code));
    CLEAVE_TRY(failure.what, json.text("what"));
    CLEAVE_TRY(failure.lastMessage, json.text("last_words", ""));
    outcome.firstFailure = std::move(failure);
    m_run.report.verdict = RunVerdict::Failed;
    return {};
  }

  const JsonObject& m_root;
  PastRun m_run;
};

}  // namespace

std::optional<double> PastRun::loss() const {
  if (!report.steps.empty()) return report.steps.back().loss;
  const auto& results = report.outcome.results;
  if (results.empty() || !results.front() || !results.front()->hasLoss) return std::nullopt;
  return results.front()->loss;
}

std::optional<double> PastRun::stepMicroseconds() const {
  std::vector<double> times;
  for (const protocol::TrainingStep& step : report.steps) times.push_back(static_cast<double>(step.microseconds));
  if (!times.empty()) {
    const auto middle = times.begin() + std::ssize(times) / 2;
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }
  for (const auto& result : report.outcome.results) {
    if (result) times.push_back(static_cast<double>(result->stepMicroseconds));
  }
  if (times.empty()) return std::nullopt;
  return *std::max_element(times.begin(), times.end());
}

Result<PastRun> readReport(std::string_view text, std::string_view where) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(text, where, {.bytes = kMostReportBytes}));
  CLEAVE_TRY(const JsonObject root, JsonObject::of(json, std::string(where)));
  CLEAVE_TRY(const std::string schema, root.text("schema"));
  if (schema != "cleave.run/1") {
    return fail(ErrorCode::BadInput, "{}: schema is {}, but a report of a run has \"cleave.run/1\".", where,
                quotedText(schema));
  }
  return ReportReader(root).read();
}

}  // namespace cleave::pipeline
