#include "views/window/script_values.h"

#include "pipeline/settings/run_settings.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
/// A name of scripts as a name of flags.
std::string flagName(QString key) { return toStd(key.replace(QLatin1Char('_'), QLatin1Char('-'))); }

template <class Request>
Result<void> readValue(const settings::SettingRows<Request>& rows, const KeyValue& pair, Request& request) {
  const settings::Setting<Request>* row = settings::findSetting(rows, flagName(pair.key));
  if (!row) return fail(ErrorCode::BadUsage, "There is no setting \"{}\".", toStd(pair.key));
  const Request before = request;
  if (!row->isList || pair.value == QLatin1String("none")) row->copy(request, Request());
  const bool leavesOut = pair.value == QLatin1String("auto") || pair.value == QLatin1String("none");
  // A word of the setting comes first: "sequence_parallel=auto", "optimizer=none".
  auto read = row->read(request, toStd(pair.value));
  if (read || (leavesOut && row->texts(Request()).empty())) return {};
  request = before;
  return read;
}

Result<void> checkRanks(int ranks) {
  if (ranks >= 1 && ranks <= spec::kMaxRanks) return {};
  return fail(ErrorCode::BadUsage, "{} ranks are not possible. Use 1 to {} ranks.", ranks, spec::kMaxRanks);
}

/// A pin without "pin=" in front: its key is not a setting.
bool isPin(const KeyValue& pair) {
  return pair.key.contains(QLatin1Char('.')) || pair.key.contains(QLatin1Char('*')) ||
         pair.key.contains(QLatin1Char('_')) || pair.key.endsWith(QLatin1Char('!'));
}
}  // namespace

std::vector<KeyValue> keyValues(const QString& text) {
  std::vector<KeyValue> pairs;
  for (const QString& word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
    const qsizetype equals = word.indexOf(QLatin1Char('='));
    pairs.push_back({equals < 0 ? word : word.left(equals), equals < 0 ? QString() : word.mid(equals + 1)});
  }
  return pairs;
}

Result<void> readSolveValue(const KeyValue& pair, pipeline::PlanSettings& settings) {
  if (settings::findSetting(pipeline::planSettings(), flagName(pair.key))) {
    CLEAVE_TRY_VOID(readValue(pipeline::planSettings(), pair, settings));
    return checkRanks(settings.plan.ranks);
  }
  if (!isPin(pair) || pair.value.isEmpty())
    return fail(ErrorCode::BadUsage, "There is no setting \"{}\".", toStd(pair.key));
  CLEAVE_TRY(solve::Pin pin, solve::Pin::parse(toStd(pair.key) + "=" + toStd(pair.value)));
  settings.plan.pins.push_back(std::move(pin));
  return {};
}

Result<void> readRunValue(const KeyValue& pair, RunSettings& settings) {
  if (pair.key == QLatin1String("ranks") || pair.key == QLatin1String("optimizer")) {
    auto plan = pipeline::PlanSettings::of({}, {}, {});
    CLEAVE_TRY_VOID(readValue(pipeline::planSettings(), pair, plan));
    if (pair.key == QLatin1String("ranks"))
      settings.ranks = plan.plan.ranks;
    else
      settings.training.optimizer = plan.plan.cost.optimizer;
  } else {
    spec::RunSpec& run = settings;
    CLEAVE_TRY_VOID(readValue(pipeline::runSettings(spec::RunMode::Train), pair, run));
  }
  CLEAVE_TRY_VOID(checkRanks(settings.ranks));
  if (settings.training.optimizer == program::Optimizer::None)
    return fail(ErrorCode::BadUsage, "Training needs an optimizer that changes parameters, not none.");
  return program::check(settings.training);
}

}  // namespace cleave::views
