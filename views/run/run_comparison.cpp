#include "views/run/run_comparison.h"

#include <algorithm>

#include "pipeline/source/hub_model.h"
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

/// "2 ranks", "2 replicas of 2 ranks"
QString ranksOf(const PastRun& run) {
  const QString ranks = ranksText(run.plan.ranks);
  const int replicas = run.report.mesh.dp;
  return replicas > 1 ? QStringLiteral("%1 replicas of %2").arg(replicas).arg(ranks) : ranks;
}

/// The settings of a run: the same names in the same order for every run.
std::vector<Fact> settingsOf(const PastRun& run) {
  const pipeline::PlanOfReport& plan = run.plan;
  const program::Training& training = run.report.spec.training;
  const bool trains = training.isAsked();
  const auto ifTraining = [trains](const QString& text) { return trains ? text : QString(); };
  QStringList demands;
  for (const std::string& demand : plan.demands) demands << toQ(demand);
  return {{QStringLiteral("model"), toQ(plan.model)},
          {QStringLiteral("mode"), toQ(run.mode)},
          {QStringLiteral("element type"), toQ(plan.dtype)},
          {QStringLiteral("batch"), plan.batch > 0 ? QString::number(plan.batch) : QString()},
          {QStringLiteral("sequence"), plan.sequence > 0 ? QString::number(plan.sequence) : QString()},
          {QStringLiteral("ranks"), ranksOf(run)},
          {QStringLiteral("backend"), toQ(launch::toText(run.report.spec.backend))},
          {QStringLiteral("engine"), toQ(plan.engine)},
          {QStringLiteral("candidate set"), toQ(plan.menu)},
          {QStringLiteral("sequence parallelism"), toQ(plan.sequenceParallel)},
          {QStringLiteral("device profile"), toQ(plan.deviceProfile)},
          {QStringLiteral("demands"), demands.join(QStringLiteral(", "))},
          {QStringLiteral("training steps"), ifTraining(QString::number(training.steps))},
          {QStringLiteral("optimizer"), ifTraining(toQ(program::toText(training.optimizer)))},
          {QStringLiteral("learning rate"), ifTraining(number(training.learningRate))},
          {QStringLiteral("weight decay"), ifTraining(number(training.weightDecay))},
          {QStringLiteral("clip norm"),
           ifTraining(training.clipNorm ? number(*training.clipNorm) : QStringLiteral("none"))},
          {QStringLiteral("accumulate"), ifTraining(QString::number(training.accumulate))}};
}

/// The settings that settingsOf does not list, by flag, in the order of the report.
std::vector<Fact> otherSettingsOf(const PastRun& run) {
  static const QStringList listed{QStringLiteral("ranks"),
                                  QStringLiteral("engine"),
                                  QStringLiteral("candidates"),
                                  QStringLiteral("sequence-parallel"),
                                  QStringLiteral("batch"),
                                  QStringLiteral("seq"),
                                  QStringLiteral("dtype"),
                                  QStringLiteral("pin"),
                                  QStringLiteral("device-profile"),
                                  QStringLiteral("rule-off"),
                                  QStringLiteral("redistribute"),
                                  QStringLiteral("steps"),
                                  QStringLiteral("backend"),
                                  QStringLiteral("optimizer"),
                                  QStringLiteral("weight-decay"),
                                  QStringLiteral("clip-norm"),
                                  QStringLiteral("lr"),
                                  QStringLiteral("accumulate")};
  std::vector<Fact> facts;
  for (const auto* words : {&run.plan.arguments, &run.arguments}) {
    for (std::size_t i = 0; i < words->size(); ++i) {
      const QString flag = toQ((*words)[i]).mid(2);
      const bool hasValue = i + 1 < words->size() && !(*words)[i + 1].starts_with("--");
      const QString value = hasValue ? toQ((*words)[++i]) : QStringLiteral("on");
      if (listed.contains(flag)) continue;
      const auto known = std::ranges::find(facts, flag, &Fact::name);
      if (known == facts.end()) {
        facts.push_back({flag, value});
      } else {
        known->value += QStringLiteral(", ") + value;
      }
    }
  }
  return facts;
}

/// Adds the other settings to both, with the same names in the same order.
void addOtherSettings(std::vector<Fact>& a, std::vector<Fact>& b, const PastRun& runA, const PastRun& runB) {
  const std::vector<Fact> othersA = otherSettingsOf(runA), othersB = otherSettingsOf(runB);
  QStringList names;
  for (const auto* others : {&othersA, &othersB}) {
    for (const Fact& fact : *others)
      if (!names.contains(fact.name)) names << fact.name;
  }
  const auto add = [](std::vector<Fact>& facts, const std::vector<Fact>& others, const QString& name) {
    const auto found = std::ranges::find(others, name, &Fact::name);
    facts.push_back({name, found == others.end() ? QString() : found->value});
  };
  for (const QString& name : names) {
    add(a, othersA, name);
    add(b, othersB, name);
  }
}

QString collectivesText(const PastRun& run) {
  return run.plan.collectives > 0 ? QString::number(run.plan.collectives) : QStringLiteral("none");
}

std::int64_t mostMemory(const PastRun& run) {
  std::int64_t most = 0;
  for (const auto& result : run.report.outcome.results)
    if (result) most = std::max(most, result->peak.program);
  return most;
}

QString bytesOrNone(std::int64_t bytes) { return bytes > 0 ? bytesText(bytes) : QString(); }

/// The maximum of a lane's sum over the ranks.
template <class Part>
QString laneText(const PastRun& run, Part part) {
  std::int64_t most = -1;
  for (const pipeline::LaneSum& sum : run.report.timeline.sums) most = std::max(most, sum.*part);
  return most < 0 ? QString() : microsecondsText(static_cast<double>(most) / 1000);
}

/// The results of a run.
std::vector<Fact> resultsOf(const PastRun& run) {
  double most = 0;
  for (const auto& output : run.report.outputs) most = std::max(most, output.ofTolerance);
  const QString apart = run.report.outputs.empty()
                            ? QString()
                            : QStringLiteral("%1 % of the tolerance").arg(QString::number(100 * most, 'g', 3));
  return {{QStringLiteral("verdict"), verdictText(run)},
          {QStringLiteral("compared with"), toQ(run.report.comparedWith)},
          {QStringLiteral("largest difference"), apart},
          {QStringLiteral("loss"), lossText(run)},
          {QStringLiteral("step time"), stepTimeText(run)},
          {QStringLiteral("predicted step time"),
           run.predictedStepNs > 0 ? microsecondsText(run.predictedStepNs / 1000) : QString()},
          {QStringLiteral("computing, slowest rank"), laneText(run, &pipeline::LaneSum::compute)},
          {QStringLiteral("in collectives"), laneText(run, &pipeline::LaneSum::collective)},
          {QStringLiteral("waiting"), laneText(run, &pipeline::LaneSum::waiting)},
          {QStringLiteral("collectives planned"), collectivesText(run)},
          {QStringLiteral("peak memory per rank"), bytesOrNone(mostMemory(run))},
          {QStringLiteral("predicted peak memory"), bytesOrNone(run.plan.predictedMemory)}};
}

/// By category, the maximum over the ranks.
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
    sentences << QStringLiteral("Rank %1 failed first: it %2. %3")
                     .arg(failure->rank)
                     .arg(toQ(failure->what), toQ(failure->lastMessage));
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
  QStringList parts{toQ(run.plan.engine), ranksOf(run), toQ(launch::toText(run.report.spec.backend))};
  if (run.mode == spec::toText(spec::RunMode::Generate)) parts << QStringLiteral("generation");
  if (run.report.spec.training.isAsked())
    parts << QStringLiteral("trained %1 with %2")
                 .arg(countedText(static_cast<std::uint64_t>(run.report.spec.training.steps), "step"),
                      toQ(program::toText(run.report.spec.training.optimizer)));
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
  std::vector<Fact> settings = settingsOf(run.run);
  const std::vector<Fact> others = otherSettingsOf(run.run);
  settings.insert(settings.end(), others.begin(), others.end());
  return QStringLiteral("<p><b>%1</b>, %2, %3</p>")
             .arg(modelText(run.run).toHtmlEscaped(), planText(run.run).toHtmlEscaped(), endedText(run.at)) +
         failureHtml(run.run, colors) + heading(QStringLiteral("Results"), colors) +
         factRows(resultsOf(run.run), colors) +
         heading(QStringLiteral("Memory by category, maximum over ranks"), colors) +
         factRows(memoryOf(run.run), colors) + heading(QStringLiteral("Settings"), colors) + factRows(settings, colors);
}

QString comparisonHtml(const KeptRun& a, const KeptRun& b, const TextColors& colors) {
  std::vector<Fact> ofA = settingsOf(a.run), ofB = settingsOf(b.run);
  addOtherSettings(ofA, ofB, a.run, b.run);
  const QString settings = pairRows(ofA, ofB, true, colors);
  return QStringLiteral("<p><b>A</b>: %1, %2<br><b>B</b>: %3, %4</p>")
             .arg(planText(a.run).toHtmlEscaped(), endedText(a.at), planText(b.run).toHtmlEscaped(), endedText(b.at)) +
         heading(QStringLiteral("Settings that differ"), colors) +
         (settings.isEmpty() ? quiet(QStringLiteral("Both reports list the same settings."), colors) : settings) +
         heading(QStringLiteral("Results"), colors) + pairRows(resultsOf(a.run), resultsOf(b.run), false, colors) +
         heading(QStringLiteral("Memory by category, maximum over ranks"), colors) +
         pairRows(memoryOf(a.run), memoryOf(b.run), false, colors);
}

ChartData lossesOf(const std::vector<std::shared_ptr<const KeptRun>>& runs) {
  ChartData data{.title = QStringLiteral("Loss"),
                 .empty = QStringLiteral("No training steps."),
                 .x = ChartUnit::Whole,
                 .y = ChartUnit::Number,
                 .xName = QStringLiteral("step")};
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
