#include "views/run/run_checks.h"

#include "base/shell_word.h"
#include "plan/headline.h"
#include "views/base/text.h"

namespace cleave::views {

CollectiveCounts plannedCollectives(const plan::Plan& plan) {
  CollectiveCounts counts;
  for (const plan::CollectivePlan& collective : plan.collectives) {
    if (collective.kind == rules::CollectiveKind::AllReduce)
      ++counts.allReduce;
    else if (collective.kind == rules::CollectiveKind::AllGather)
      ++counts.allGather;
    else
      ++counts.reduceScatter;
  }
  return counts;
}

QString countsText(const CollectiveCounts& counts) {
  return QObject::tr("%1 all-reduce, %2 all-gather, %3 reduce-scatter")
      .arg(counts.allReduce)
      .arg(counts.allGather)
      .arg(counts.reduceScatter);
}

std::int64_t predictedBytes(const plan::Plan& plan, const program::Training& training) {
  return pipeline::predictedMemory(plan, {.isTraining = training.isAsked()});
}

std::vector<pipeline::MemoryCheck> memoryBeforeRun(const plan::Plan* plan, const RunSettings& settings) {
  const auto resolved = launch::resolveBackend(settings.backend, settings.ranks);
  if (!plan || !isFor(*plan, settings) || !resolved) return {};
  const pipeline::Workload workload{.isTraining = settings.training.isAsked()};
  return {pipeline::checkMemory(*plan, *resolved, workload), pipeline::checkUnsplitMemory(*plan, workload)};
}

namespace {
QString weightsText(const plan::Plan& plan) {
  if (plan.model.hasWeights) return QObject::tr("Weights are here: each rank reads only its own part.");
  return plan.model.isExported
             ? QObject::tr(
                   "No weights in this archive that can be read: random ones from seed %1. Model › Capture "
                   "Options takes a file with its own.")
                   .arg(plan.seed)
             : QObject::tr("No weights in this folder: random ones from seed %1.").arg(plan.seed);
}

QString whereText(const RunSettings& settings, bool& isOk) {
  std::string why;
  const int gpus = launch::localGpuCount();
  const auto resolved = launch::resolveBackend(settings.backend, settings.ranks, &why);
  isOk = resolved.has_value();
  if (!resolved) return toQ(resolved.error().message);
  if (gpus == 0) return QObject::tr("No GPU here: CPU ranks over Gloo.");
  if (*resolved == launch::Backend::Nccl)
    return QObject::tr("%1 of %2 over NCCL.")
        .arg(settings.ranks)
        .arg(countedText(static_cast<std::uint64_t>(gpus), "GPU"));
  return why.empty() ? QObject::tr("CPU ranks over Gloo.") : toQ(why);
}

QString solvedFirstText(const plan::Plan& plan, const RunSettings& settings) {
  const QString training = QObject::tr("training with %1").arg(toQ(program::toText(settings.training.optimizer)));
  if (plan.ranks == settings.ranks)
    return QObject::tr("The plan is not for %1: it is solved again for that first.").arg(training);
  return QObject::tr("The plan is for %1: it is solved again for %2%3 first.")
      .arg(ranksText(plan.ranks))
      .arg(settings.ranks)
      .arg(settings.training.isAsked() ? QObject::tr(" and %1").arg(training) : QString());
}

QString needText(const plan::Plan& plan, const program::Training& training) {
  if (training.isAsked())
    return QObject::tr(
               "A training step needs %1 per rank, of it %2 parameters, %3 gradients, %4 optimizer states and %5 saved "
               "activations.")
        .arg(bytesText(plan.cost.bytes()), bytesText(plan.cost.sum.parameters), bytesText(plan.cost.sum.gradients),
             bytesText(plan.cost.sum.optimizer), bytesText(plan.cost.sum.activations));
  return QObject::tr("The program of a forward pass needs %1 per rank, of it %2 parameters and %3 activations.")
      .arg(bytesText(plan.memory.total()), bytesText(plan.memory.parameters), bytesText(plan.memory.peakActivations));
}
}  // namespace

std::vector<RunCheck> checksBeforeRun(const plan::Plan* plan, const RunSettings& settings, const QString& whyNot) {
  std::vector<RunCheck> checks(1);
  checks[0].text = whereText(settings, checks[0].isOk);
  const auto add = [&checks](bool isOk, const QString& text) { checks.push_back({isOk, text}); };
  if (!whyNot.isEmpty()) {
    add(false, whyNot);
    return checks;
  }
  if (!plan) {
    add(true, QObject::tr("No plan yet: the model is solved first."));
    return checks;
  }
  const bool isAsItIs = isFor(*plan, settings);
  if (!isAsItIs) add(true, solvedFirstText(*plan, settings));
  add(true, weightsText(*plan));
  if (!isAsItIs) return checks;
  add(true, needText(*plan, settings.training));
  if (const std::string notKept = plan::notKeptText(*plan); !notKept.empty() && !settings.training.isAsked())
    add(true, toQ(notKept));
  if (settings.training.isAsked() && !plan::dropoutOffText(*plan).empty())
    add(true, QObject::tr("Dropout is off: config.json has %1, which Solve › Settings › Dropout trains with.")
                  .arg(toQ(plan->model.dropouts)));
  for (const pipeline::MemoryCheck& memory : memoryBeforeRun(plan, settings)) add(memory.fits(), toQ(memory.text));
  add(true, QObject::tr("Planned: %1.").arg(countsText(plannedCollectives(*plan))));
  for (const std::string& warning : plan->warnings) add(false, prose(warning));
  return checks;
}

QString runCommand(const Runs& runs, const RunSettings& settings) {
  QStringList words = runs.arguments(settings);
  if (words.isEmpty()) return {};
  words.prepend(QStringLiteral("run"));
  words.prepend(QStringLiteral("cleave-cli"));
  if (settings.backend != launch::Backend::Auto)
    words << QStringLiteral("--backend") << toQ(launch::toText(settings.backend));
  if (settings.ignoresMemory) words << QStringLiteral("--ignore-memory");
  for (QString& word : words) word = toQ(shellWord(toStd(word)));
  return words.join(QLatin1Char(' '));
}

}  // namespace cleave::views
