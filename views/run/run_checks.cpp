#include "views/run/run_checks.h"

#include "launch/shell_word.h"
#include "pipeline/memory/memory_check.h"
#include "pipeline/memory/predicted_memory.h"
#include "pipeline/run/unsplit_place.h"
#include "plan/text/headline.h"
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
  return QStringLiteral("%1 all-reduce, %2 all-gather, %3 reduce-scatter")
      .arg(counts.allReduce)
      .arg(counts.allGather)
      .arg(counts.reduceScatter);
}

std::int64_t predictedBytes(const plan::Plan& plan, const program::Training& training) {
  return pipeline::predictedMemory(plan, {.isTraining = training.isAsked()});
}

std::vector<pipeline::MemoryCheck> memoryBeforeRun(const plan::Plan* plan, const RunSettings& settings,
                                                   const BackendAnswer& backend) {
  if (!plan || !isFor(*plan, settings) || !backend || !*backend) return {};
  const launch::Backend ofRanks = (*backend)->backend;
  const pipeline::Workload workload{.isTraining = settings.training.isAsked()};
  std::vector<pipeline::MemoryCheck> checks{pipeline::checkMemory(*plan, ofRanks, workload)};
  if (pipeline::unsplitPlace(*plan, workload, ofRanks).backend == launch::Backend::Gloo)
    checks.push_back(pipeline::checkUnsplitMemory(*plan, workload));
  return checks;
}

namespace {
QString weightsText(const plan::Plan& plan) {
  if (plan.model.hasWeights) return QStringLiteral("The weights are available. Each rank reads only its own shard.");
  return plan.model.isExported
             ? QStringLiteral(
                   "This archive has no readable weights. Random ones from seed %1 are used. Model › Capture "
                   "Options accepts a weights file.")
                   .arg(plan.spec.seed)
             : QStringLiteral("This folder has no weights. Random ones from seed %1 are used.").arg(plan.spec.seed);
}

QString whereText(const BackendAnswer& backend, bool& isOk) {
  isOk = !backend || backend->has_value();
  if (!backend) return QStringLiteral("Asking CUDA for the GPUs of this machine…");
  return toQ(isOk ? (*backend)->why : backend->error().message);
}

QString solvedFirstText(const plan::Plan& plan, const RunSettings& settings) {
  const QString training = QStringLiteral("training with %1").arg(toQ(program::toText(settings.training.optimizer)));
  if (plan.spec.ranks == settings.ranks)
    return QStringLiteral("The plan is not for %1. It will be solved again first.").arg(training);
  return QStringLiteral("The plan is for %1. It will be solved again for %2%3 first.")
      .arg(ranksText(plan.spec.ranks))
      .arg(settings.ranks)
      .arg(settings.training.isAsked() ? QStringLiteral(" and %1").arg(training) : QString());
}

QString needText(const plan::Plan& plan, const program::Training& training) {
  if (training.isAsked())
    return QStringLiteral(
               "A training step needs %1 per rank: %2 parameters, %3 gradients, %4 optimizer states and %5 saved "
               "activations.")
        .arg(bytesText(plan.cost.bytes()), bytesText(plan.cost.sum.parameters), bytesText(plan.cost.sum.gradients),
             bytesText(plan.cost.sum.optimizer), bytesText(plan.cost.sum.activations));
  return QStringLiteral("A forward pass needs %1 per rank: %2 parameters and %3 activations.")
      .arg(bytesText(plan.memory.total()), bytesText(plan.memory.parameters), bytesText(plan.memory.peakActivations));
}
}  // namespace

std::vector<RunCheck> checksBeforeRun(const plan::Plan* plan, const RunSettings& settings, const BackendAnswer& backend,
                                      const QString& whyNot) {
  std::vector<RunCheck> checks(1);
  checks[0].text = whereText(backend, checks[0].isOk);
  const auto add = [&checks](bool isOk, const QString& text) { checks.push_back({isOk, text}); };
  if (!whyNot.isEmpty()) {
    add(false, whyNot);
    return checks;
  }
  if (!plan) {
    add(true, QStringLiteral("No plan yet. The model will be solved first."));
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
    add(true, QStringLiteral("Dropout is off. config.json has %1. Turn on Solve › Settings › Dropout to train with it.")
                  .arg(toQ(plan->model.dropouts)));
  for (const pipeline::MemoryCheck& memory : memoryBeforeRun(plan, settings, backend))
    add(memory.fits(), toQ(memory.text));
  add(true, QStringLiteral("Planned: %1.").arg(countsText(plannedCollectives(*plan))));
  for (const std::string& warning : plan->warnings) add(false, prose(warning));
  return checks;
}

QString runCommand(const Runs& runs, const RunSettings& settings) {
  QStringList words = runs.arguments(settings);
  if (words.isEmpty()) return {};
  const bool isTraining = settings.training.isAsked();
  words.prepend(isTraining ? QStringLiteral("train") : QStringLiteral("run"));
  words.prepend(QStringLiteral("cleave-cli"));
  for (QString& word : words) word = toQ(shellWord(toStd(word)));
  return words.join(QLatin1Char(' '));
}

}  // namespace cleave::views
