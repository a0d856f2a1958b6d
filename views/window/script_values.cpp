#include "views/window/script_values.h"

#include <array>
#include <cctype>

#include "base/edit_distance.h"
#include "pipeline/settings/run_settings.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
using settings::SettingFacts;
using settings::ValueKind;

/// A name of scripts as a name of flags, and back.
std::string flagName(QString key) { return toStd(key.replace(QLatin1Char('_'), QLatin1Char('-'))); }
std::string keyName(std::string_view flag) {
  if (flag.starts_with("--")) flag.remove_prefix(2);
  return toStd(toQ(flag).replace(QLatin1Char('-'), QLatin1Char('_')));
}

/// `auto` or `none` leaves the setting out, besides the words of its own. A command requires its mode's setting, such
/// as the steps of `train`; in the window the mode is a setting too.
template <class Request>
bool mayBeLeftOut(const settings::Setting<Request>& row) {
  return row.isRequired || row.texts(Request()).empty();
}

/// The reason of a row's error, without the flag and the value: "Write on or off."
std::string reasonOf(const SettingFacts& row, const KeyValue& pair, const std::string& message) {
  const std::string start = fmt::format("{} is \"{}\": ", row.flag, toStd(pair.value));
  if (!message.starts_with(start)) return message;
  std::string reason = message.substr(start.size());
  reason[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(reason[0])));
  return reason;
}

tl::unexpected<Error> notValid(const KeyValue& pair, const std::string& reason) {
  return fail(ErrorCode::BadUsage, "{}={} is not valid. {}", toStd(pair.key), toStd(pair.value), reason);
}

template <class Request>
Result<void> readValue(const settings::SettingRows<Request>& rows, const KeyValue& pair, Request& request) {
  const settings::Setting<Request>& row = *settings::findSetting(rows, flagName(pair.key));
  const Request before = request;
  const bool isNone = pair.value == QLatin1String("none");
  if (!row.isList || isNone) row.copy(request, Request());
  if (row.isList && isNone) return {};
  // A word of the setting comes first: "sequence_parallel=auto", "optimizer=none".
  const auto read = row.read(request, toStd(pair.value));
  if (read || ((isNone || pair.value == QLatin1String("auto")) && mayBeLeftOut(row))) return {};
  request = before;
  std::string reason = reasonOf(row, pair, read.error().message);
  if (mayBeLeftOut(row) && reason.starts_with("Write ")) reason.insert(reason.size() - 1, ", or none");
  return notValid(pair, reason);
}

Result<void> checkRanks(const KeyValue& pair, int ranks) {
  if (ranks >= 1 && ranks <= spec::kMaxRanks) return {};
  return notValid(pair, fmt::format("Use 1 to {} ranks.", spec::kMaxRanks));
}

/// A pin without "pin=" in front: its key is not a setting.
bool isPin(const KeyValue& pair) {
  return pair.key.contains(QLatin1Char('.')) || pair.key.contains(QLatin1Char('*')) ||
         pair.key.contains(QLatin1Char('_')) || pair.key.endsWith(QLatin1Char('!'));
}

/// True if the setting is part of the capture, which `solve` keeps. Some value of these changes each of them.
bool isOfCapture(const settings::Setting<pipeline::PlanSettings>& row) {
  constexpr std::array kValues{"on", "off", "2", "s=2", "float64", "x"};
  return std::any_of(kValues.begin(), kValues.end(), [&](const char* value) {
    pipeline::PlanSettings changed;
    return row.read(changed, value) && changed.input != spec::InputSpec();
  });
}

/// "on|off|none", "INT [1 - 1024]"
template <class Request>
std::string valueText(const settings::Setting<Request>& row) {
  constexpr double kMostShown = 1e9;
  const settings::ValueForm& form = row.form;
  std::string text = form.type;
  if (!form.words.empty()) {
    text = fmt::format("{}", fmt::join(form.words, "|"));
  } else if (form.kind == ValueKind::Bytes) {
    text = "SIZE";
  } else if (form.kind == ValueKind::Number && text.find('[') == std::string::npos) {
    if (!form.unit.empty()) text = "PERCENT";
    if (form.least < form.most && form.most < kMostShown) text += fmt::format(" [{} - {}]", form.least, form.most);
  }
  return mayBeLeftOut(row) ? text + "|none" : text;
}

template <class Request>
ScriptKey keyOfSetting(const settings::Setting<Request>& row) {
  ScriptKey key{.names = {keyName(row.flag)}, .value = valueText(row), .help = row.help};
  for (const std::string& other : {row.shortName, row.alias})
    if (!other.empty()) key.names.push_back(keyName(other));
  return key;
}

std::vector<ScriptKey> solveKeys() {
  std::vector<ScriptKey> keys;
  for (const auto& row : pipeline::planSettings()) {
    if (row.isHidden) continue;
    keys.push_back(keyOfSetting(row));
    keys.back().hasEffect = !isOfCapture(row);
  }
  return keys;
}

bool isOfRunsPlan(const QString& key) { return key == QLatin1String("ranks") || key == QLatin1String("optimizer"); }

/// The window runs one shape at a time.
bool isOfWindow(const SettingFacts& row) {
  return !row.isHidden && row.name() != "shapes" && row.name() != "pad-to-planned";
}

std::vector<ScriptKey> runKeys() {
  std::vector<ScriptKey> keys;
  for (auto row : pipeline::planSettings()) {
    if (!isOfRunsPlan(toQ(row.name()))) continue;
    std::erase(row.form.words, program::toText(program::Optimizer::None));  // a run's training changes parameters
    keys.push_back(keyOfSetting(row));
  }
  for (const auto& row : pipeline::runSettings(spec::RunMode::Train))
    if (isOfWindow(row)) keys.push_back(keyOfSetting(row));
  return keys;
}

/// `"enigne" is not a setting; the nearest is engine.`
tl::unexpected<Error> unknownKey(const KeyValue& pair, const std::vector<ScriptKey>& keys) {
  std::vector<std::string> names;
  for (const ScriptKey& key : keys) names.insert(names.end(), key.names.begin(), key.names.end());
  const std::string near = nearestName(toStd(pair.key), names);
  return fail(ErrorCode::BadUsage, "\"{}\" is not a setting; {}.", toStd(pair.key),
              near.empty() ? "cleave --script-manual lists the settings" : "the nearest is " + near);
}

/// Checks one word of a verb by reading it into a default request.
template <class Request>
ScriptForm valueForm(Result<void> (*read)(const KeyValue&, Request&), std::vector<ScriptKey> (*keys)()) {
  ScriptForm form{.write = "a setting and its value, such as ranks=2", .hasSpaces = true};
  form.check = [read](std::string_view argument, const std::string& word) -> Result<void> {
    Request request;
    if (word.find('=') == std::string::npos)
      return fail(ErrorCode::BadUsage, "{} is \"{}\": write a setting and its value, such as ranks=2.", argument, word);
    return read(keyValues(toQ(word)).front(), request);
  };
  form.keys = keys;
  return form;
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
    return checkRanks(pair, settings.plan.ranks);
  }
  if (!isPin(pair) || pair.value.isEmpty()) return unknownKey(pair, solveKeys());
  CLEAVE_TRY(solve::Pin pin, solve::Pin::parse(toStd(pair.key) + "=" + toStd(pair.value)));
  settings.plan.pins.push_back(std::move(pin));
  return {};
}

Result<void> readRunValue(const KeyValue& pair, RunSettings& settings) {
  if (isOfRunsPlan(pair.key)) {
    auto plan = pipeline::PlanSettings::of({}, {}, {});
    CLEAVE_TRY_VOID(readValue(pipeline::planSettings(), pair, plan));
    if (pair.key == QLatin1String("ranks"))
      settings.ranks = plan.plan.ranks;
    else
      settings.training.optimizer = plan.plan.cost.optimizer;
  } else {
    const auto& rows = pipeline::runSettings(spec::RunMode::Train);
    const auto* row = settings::findSetting(rows, flagName(pair.key));
    if (!row || !isOfWindow(*row)) return unknownKey(pair, runKeys());
    spec::RunSpec& run = settings;
    CLEAVE_TRY_VOID(readValue(rows, pair, run));
  }
  CLEAVE_TRY_VOID(checkRanks(pair, settings.ranks));
  if (settings.training.optimizer == program::Optimizer::None)
    return notValid(pair, "Training needs an optimizer that changes parameters, not none.");
  if (const auto good = program::check(settings.training); !good) return notValid(pair, good.error().message);
  return {};
}

ScriptForm solveValueForm() { return valueForm<pipeline::PlanSettings>(&readSolveValue, &solveKeys); }

ScriptForm runValueForm() { return valueForm<RunSettings>(&readRunValue, &runKeys); }

}  // namespace cleave::views
