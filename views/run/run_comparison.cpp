#include "views/run/run_comparison.h"

#include <algorithm>

#include "pipeline/hub_model.h"
#include "solve/cost/cost_model.h"
#include "views/base/text.h"
#include "views/run/run_verdict.h"

namespace cleave::views {

using pipeline::PastRun;

namespace {
struct Fact {
  QString name, value;
  bool operator==(const Fact&) const = default;
};

QString number(double value) { return QString::number(value, 'g', 6); }

QString microsecondsText(double microseconds) {
  return toQ(solve::timeText(Femtoseconds::ofSeconds(microseconds / 1e6)));
}

/// What was asked for: the same names in the same order for every run.
std::vector<Fact> settingsOf(const PastRun& run) {
  const pipeline::PlanOfReport& plan = run.plan;
  const program::Training& training = run.report.training;
  const bool trains = training.isAsked();
  const auto ifTraining = [trains](const QString& text) { return trains ? text : QString(); };
  QStringList demands;
  for (const std::string& demand : plan.demands) demands << toQ(demand);
  return {{QObject::tr("model"), toQ(plan.model)},
          {QObject::tr("element type"), toQ(plan.dtype)},
          {QObject::tr("batch"), plan.batch > 0 ? QString::number(plan.batch) : QString()},
          {QObject::tr("sequence"), plan.sequence > 0 ? QString::number(plan.sequence) : QString()},
          {QObject::tr("ranks"), QString::number(plan.ranks)},
          {QObject::tr("backend"), toQ(launch::toText(run.report.backend))},
          {QObject::tr("engine"), toQ(plan.engine)},
          {QObject::tr("candidate set"), toQ(plan.menu)},
          {QObject::tr("sequence parallelism"), toQ(plan.sequenceParallel)},
          {QObject::tr("device profile"), toQ(plan.deviceProfile)},
          {QObject::tr("demands"), demands.join(QStringLiteral(", "))},
          {QObject::tr("training steps"), ifTraining(QString::number(training.steps))},
          {QObject::tr("optimizer"), ifTraining(toQ(program::toText(training.optimizer)))},
          {QObject::tr("learning rate"), ifTraining(number(training.learningRate))},
          {QObject::tr("weight decay"), ifTraining(number(training.weightDecay))},
          {QObject::tr("clip norm"), ifTraining(training.clipNorm ? number(*training.clipNorm) : QObject::tr("none"))},
          {QObject::tr("accumulate"), ifTraining(QString::number(training.accumulate))}};
}

QString collectivesText(const PastRun& run) {
  return run.plan.collectives > 0 ? QString::number(run.plan.collectives) : QObject::tr("none");
}

std::int64_t mostMemory(const PastRun& run) {
  std::int64_t most = 0;
  for (const auto& result : run.report.outcome.results)
    if (result) most = std::max(most, result->peak.program);
  return most;
}

QString bytesOrNone(std::int64_t bytes) { return bytes > 0 ? bytesText(bytes) : QString(); }

/// The most of a lane over the ranks.
template <class Part>
QString laneText(const PastRun& run, Part part) {
  std::int64_t most = -1;
  for (const pipeline::LaneSum& sum : run.report.timeline.sums) most = std::max(most, sum.*part);
  return most < 0 ? QString() : microsecondsText(static_cast<double>(most) / 1000);
}

/// What came out.
std::vector<Fact> resultsOf(const PastRun& run) {
  double most = 0;
  for (const auto& output : run.report.outputs) most = std::max(most, output.ofTolerance);
  const QString apart = run.report.outputs.empty()
                            ? QString()
                            : QObject::tr("%1 % of the tolerance").arg(QString::number(100 * most, 'g', 3));
  return {{QObject::tr("verdict"), verdictText(run)},
          {QObject::tr("compared with"), toQ(run.report.comparedWith)},
          {QObject::tr("farthest apart"), apart},
          {QObject::tr("loss"), lossText(run)},
          {QObject::tr("time of a step"), stepTimeText(run)},
          {QObject::tr("predicted time"),
           run.predictedStepNs > 0 ? microsecondsText(run.predictedStepNs / 1000) : QString()},
          {QObject::tr("computing, slowest rank"), laneText(run, &pipeline::LaneSum::compute)},
          {QObject::tr("in collectives"), laneText(run, &pipeline::LaneSum::collective)},
          {QObject::tr("waiting"), laneText(run, &pipeline::LaneSum::waiting)},
          {QObject::tr("collectives planned"), collectivesText(run)},
          {QObject::tr("memory of a rank"), bytesOrNone(mostMemory(run))},
          {QObject::tr("memory predicted"), bytesOrNone(run.plan.predictedMemory)}};
}

/// By category, the most of any rank.
std::vector<Fact> memoryOf(const PastRun& run) {
  std::vector<Fact> facts;
  for (int i = 0; i < protocol::kMemoryKinds; ++i) {
    const std::string_view name = protocol::toText(static_cast<protocol::MemoryKind>(i));
    std::int64_t most = 0;
    for (const auto& [rank, memory] : run.report.memory)
      for (const pipeline::MemoryLine& line : memory.lines)
        if (line.name == name) most = std::max(most, line.measured);
    facts.push_back({toQ(name), bytesOrNone(most)});
  }
  return facts;
}

QString valueOf(const QString& value) { return value.isEmpty() ? QStringLiteral("–") : value.toHtmlEscaped(); }

QString factRows(const std::vector<Fact>& facts, const TextColors& colors) {
  QStringList rows;
  for (const Fact& fact : facts)
    if (!fact.value.isEmpty()) rows << row({nameCell(quiet(fact.name, colors)), cell(valueOf(fact.value))});
  return table(rows);
}

QString pairRows(const std::vector<Fact>& a, const std::vector<Fact>& b, bool onlyDifferent, const TextColors& colors) {
  QStringList rows;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const bool differs = !(a[i] == b[i]);
    if ((onlyDifferent && !differs) || (a[i].value.isEmpty() && b[i].value.isEmpty())) continue;
    const QString strong = differs && !onlyDifferent ? QStringLiteral("<b>%1</b>") : QStringLiteral("%1");
    rows << row({nameCell(quiet(a[i].name, colors)), cell(valueOf(a[i].value)), cell(strong.arg(valueOf(b[i].value)))});
  }
  if (rows.isEmpty()) return {};
  rows.prepend(row({cell({}), cell(QStringLiteral("<b>A</b>")), cell(QStringLiteral("<b>B</b>"))}));
  return table(rows);
}

QString failureHtml(const PastRun& run, const TextColors& colors) {
  QStringList sentences;
  if (const auto& failure = run.report.outcome.firstFailure)
    sentences << QObject::tr("Rank %1 was the first to fail: it %2. %3")
                     .arg(failure->rank)
                     .arg(toQ(failure->what), toQ(failure->lastWords));
  for (const auto* texts : {&run.report.violations, &run.report.notes})
    for (const std::string& text : *texts) sentences << toQ(text);
  for (QString& sentence : sentences) sentence = sentence.toHtmlEscaped();
  return sentences.isEmpty() ? QString()
                             : QStringLiteral("<p>%1</p>").arg(quiet(sentences.join(QStringLiteral("<br>")), colors));
}
}  // namespace

QString modelText(const PastRun& run) {
  const QString name = toQ(pipeline::modelName(run.plan.model));
  return name.isEmpty() ? toQ(run.plan.model) : name;
}

QString planText(const PastRun& run) {
  QStringList parts{toQ(run.plan.engine), ranksText(run.plan.ranks), toQ(launch::toText(run.report.backend))};
  if (run.report.training.isAsked())
    parts << QObject::tr("trained %1 with %2")
                 .arg(countedText(static_cast<std::uint64_t>(run.report.training.steps), "step"),
                      toQ(program::toText(run.report.training.optimizer)));
  parts.removeAll(QString());
  return parts.join(QStringLiteral(", "));
}

QString verdictText(const PastRun& run) { return verdictWord(run.report.verdict); }

QString lossText(const PastRun& run) {
  const auto& steps = run.report.steps;
  if (steps.size() > 1) return QStringLiteral("%1 → %2").arg(number(steps.front().loss), number(steps.back().loss));
  const auto loss = run.loss();
  return loss ? number(*loss) : QString();
}

QString stepTimeText(const PastRun& run) {
  const auto microseconds = run.stepMicroseconds();
  return microseconds ? microsecondsText(*microseconds) : QString();
}

QString endedText(const QDateTime& at) { return at.toLocalTime().toString(QStringLiteral("yyyy-MM-dd HH:mm:ss")); }

QString runHtml(const KeptRun& run, const TextColors& colors) {
  return QStringLiteral("<p><b>%1</b>, %2, %3</p>")
             .arg(modelText(run.run).toHtmlEscaped(), planText(run.run).toHtmlEscaped(), endedText(run.at)) +
         failureHtml(run.run, colors) + heading(QObject::tr("What came out"), colors) +
         factRows(resultsOf(run.run), colors) +
         heading(QObject::tr("Memory by category, the most of any rank"), colors) +
         factRows(memoryOf(run.run), colors) + heading(QObject::tr("Settings"), colors) +
         factRows(settingsOf(run.run), colors);
}

QString comparisonHtml(const KeptRun& a, const KeptRun& b, const TextColors& colors) {
  const QString settings = pairRows(settingsOf(a.run), settingsOf(b.run), true, colors);
  return QStringLiteral("<p><b>A</b>: %1, %2<br><b>B</b>: %3, %4</p>")
             .arg(planText(a.run).toHtmlEscaped(), endedText(a.at), planText(b.run).toHtmlEscaped(), endedText(b.at)) +
         heading(QObject::tr("Settings that differ"), colors) +
         (settings.isEmpty() ? quiet(QObject::tr("None: both were asked for the same."), colors) : settings) +
         heading(QObject::tr("What came out"), colors) + pairRows(resultsOf(a.run), resultsOf(b.run), false, colors) +
         heading(QObject::tr("Memory by category, the most of any rank"), colors) +
         pairRows(memoryOf(a.run), memoryOf(b.run), false, colors);
}

ChartData lossesOf(const std::vector<std::shared_ptr<const KeptRun>>& runs) {
  ChartData data{.title = QObject::tr("Loss"),
                 .empty = QObject::tr("No training step."),
                 .x = ChartUnit::Whole,
                 .y = ChartUnit::Number,
                 .xName = QObject::tr("step")};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ChartLine line;
    if (runs.size() > 1) line.name = i == 0 ? QStringLiteral("A") : QStringLiteral("B");
    for (const protocol::TrainingStep& step : runs[i]->run.report.steps)
      line.points.emplace_back(static_cast<double>(step.step), step.loss);
    if (!line.points.empty()) data.lines.push_back(std::move(line));
  }
  return data;
}

}  // namespace cleave::views
