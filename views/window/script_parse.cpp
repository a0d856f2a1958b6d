#include "views/window/script_parse.h"

#include <QRegularExpression>
#include <algorithm>

#include "base/quantities.h"
#include "launch/backend.h"
#include "rules/strategy_context.h"
#include "solve/problem/cost_settings.h"
#include "solve/problem/solve_result.h"
#include "views/base/text.h"

namespace cleave::views {

std::vector<KeyValue> keyValues(const QString& text) {
  std::vector<KeyValue> pairs;
  for (const QString& word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
    const qsizetype equals = word.indexOf(QLatin1Char('='));
    pairs.push_back({equals < 0 ? word : word.left(equals), equals < 0 ? QString() : word.mid(equals + 1)});
  }
  return pairs;
}

std::optional<int> rankCount(const QString& text) {
  bool isNumber = false;
  const int ranks = text.toInt(&isNumber);
  return isNumber && ranks >= 1 && ranks <= 4096 ? std::optional(ranks) : std::nullopt;
}

std::optional<RunSettings> applyRunArgument(const KeyValue& pair, RunSettings settings) {
  program::Training& training = settings.training;
  const auto is = [&pair](const char* key) { return pair.key == QLatin1String(key); };
  bool isNumber = true;
  if (is("ranks")) {
    const auto ranks = rankCount(pair.value);
    if (!ranks) return std::nullopt;
    settings.ranks = *ranks;
  } else if (is("backend")) {
    const auto backend = launch::parseBackend(toStd(pair.value));
    if (!backend) return std::nullopt;
    settings.backend = *backend;
  } else if (is("optimizer")) {
    const auto optimizer = program::parseOptimizer(toStd(pair.value));
    if (!optimizer || *optimizer == program::Optimizer::None) return std::nullopt;
    training.optimizer = *optimizer;
  } else if (is("steps")) {
    training.steps = pair.value.toLongLong(&isNumber);
  } else if (is("accumulate")) {
    training.accumulate = pair.value.toLongLong(&isNumber);
  } else if (is("lr")) {
    training.learningRate = pair.value.toDouble(&isNumber);
  } else if (is("weight_decay")) {
    training.weightDecay = pair.value.toDouble(&isNumber);
  } else if (is("clip")) {
    training.clipNorm.reset();
    if (pair.value != QLatin1String("none")) training.clipNorm = pair.value.toDouble(&isNumber);
  } else {
    return std::nullopt;
  }
  return isNumber && program::check(training) ? std::optional(settings) : std::nullopt;
}

namespace {
enum class Arguments { None, One, Optional, KeyValues };
struct Syntax {
  const char* name;
  Arguments arguments;
  const char* usage;
  const char* pattern;  ///< regular expression for an argument; null: any text
};
constexpr Syntax kSyntaxes[] = {
    {"open", Arguments::One, "open PATH", nullptr},
    {"sample", Arguments::One, "sample NAME", nullptr},
    {"solve", Arguments::KeyValues,
     "solve [engine=E] [ranks=N] [sequence_parallel=on|off|auto] [menu=optimum|full|auto] [profile=P] "
     "[budget=SIZE|none] [slack=PERCENT] "
     "[train=on|off] [optimizer=O] [checkpoint=on|off] [dropout=on|off] [pin=SPEC]",
     nullptr},
    {"colour", Arguments::One, "colour by=axis|regret|time|memory|traffic|error",
     "^by=(axis|regret|time|memory|traffic|error)$"},
    {"branch", Arguments::One, "branch A|B|keep|drop", "^(A|B|keep|drop)$"},
    {"why-not", Arguments::One, "why-not VALUE PLACEMENT|STRATEGY", "^\\S+ \\S.*$"},
    {"remedy", Arguments::One, "remedy N", "^[1-9]\\d?$"},
    {"fit", Arguments::One, "fit N", "^[1-9]\\d?$"},
    {"world-sizes", Arguments::None, "world-sizes", nullptr},
    {"front", Arguments::None, "front", nullptr},
    {"step", Arguments::One, "step +1|-1|N", "^[+-]?\\d+$"},
    {"next-conflict", Arguments::None, "next-conflict", nullptr},
    {"select", Arguments::One, "select VALUE", nullptr},
    {"expand", Arguments::One, "expand SCOPE", nullptr},
    {"pin", Arguments::One, "pin SPEC", "^[^=]+!?=.+$"},
    {"search", Arguments::Optional, "search TEXT", nullptr},
    {"run", Arguments::KeyValues,
     "run [ranks=N] [backend=auto|gloo|nccl] [steps=N] [optimizer=O] [lr=X] [weight_decay=X] [clip=X|none] "
     "[accumulate=N]",
     nullptr},
    {"set-run", Arguments::KeyValues, "set-run, with the arguments of run", nullptr},
    {"bisect", Arguments::None, "bisect", nullptr},
    {"view", Arguments::One, "view graph|run", "^(graph|run)$"},
    {"page", Arguments::One, "page overview|lanes|memory|log|history", "^(overview|lanes|memory|log|history)$"},
    {"history", Arguments::One, "history N", "^[1-9]\\d{0,2}$"},
    {"compare", Arguments::One, "compare N M", "^[1-9]\\d{0,2} +[1-9]\\d{0,2}$"},
    {"forget", Arguments::One, "forget N", "^[1-9]\\d{0,2}$"},
    {"wait", Arguments::Optional, "wait [MILLISECONDS]", "^\\d{0,6}$"},
    {"stop", Arguments::None, "stop", nullptr},
    {"theme", Arguments::One, "theme dark|light", "^(dark|light)$"},
    {"resize", Arguments::One, "resize WxH", "^[1-9]\\d{1,3}x[1-9]\\d{1,3}$"},
    {"preset", Arguments::One, "preset inspect|debug|run", "^(inspect|debug|run)$"},
    {"panel", Arguments::One, "panel NAME", nullptr},
    {"shot", Arguments::One, "shot NAME [of ACTION [ROW]]", "^[^/\\\\ ]+( of [a-z-]+( [^ ]+)?)?$"},
    {"picture", Arguments::One, "picture NAME.svg|pdf|png", "^[^/\\\\]+\\.(svg|pdf|png)$"},
    {"save-session", Arguments::One, "save-session NAME.cleave", "^[^/\\\\]+\\.cleave$"},
    {"quit", Arguments::None, "quit", nullptr}};

/// A pin without "pin=" in front: its key is not an option.
bool isPinWord(const KeyValue& pair) {
  return pair.key.contains(QLatin1Char('.')) || pair.key.contains(QLatin1Char('*')) ||
         pair.key.contains(QLatin1Char('_')) || pair.key.endsWith(QLatin1Char('!'));
}

bool isOneOf(const QString& value, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return value == QLatin1String(word); });
}

bool isSolveArgument(const KeyValue& pair) {
  const QString &key = pair.key, &value = pair.value;
  if (key == QLatin1String("ranks")) return rankCount(value).has_value();
  if (key == QLatin1String("engine")) return solve::parseEngine(toStd(value)).has_value();
  if (key == QLatin1String("sequence_parallel")) return rules::parseSequenceParallel(toStd(value)).has_value();
  if (key == QLatin1String("menu")) return isOneOf(value, {"optimum", "full", "auto"});
  if (isOneOf(key, {"train", "checkpoint", "dropout"})) return isOneOf(value, {"on", "off"});
  if (key == QLatin1String("optimizer")) return solve::parseOptimizer(toStd(value)).has_value();
  if (key == QLatin1String("profile")) return !value.isEmpty();
  if (key == QLatin1String("budget")) return value == QLatin1String("none") || parseBytes(toStd(value));
  if (key == QLatin1String("slack")) return solve::parseSlack(toStd(value)).has_value();
  if (key == QLatin1String("pin")) return value.contains(QLatin1Char('='));
  return isPinWord(pair) && !value.isEmpty();
}

Result<void> checkKeyValues(const ScriptCommand& command) {
  for (const KeyValue& pair : keyValues(command.rest)) {
    if (command.name == QLatin1String("solve") ? isSolveArgument(pair)
                                               : applyRunArgument(pair, RunSettings()).has_value())
      continue;
    return fail(ErrorCode::BadUsage, "\"{}={}\" is not an argument of {}", toStd(pair.key), toStd(pair.value),
                toStd(command.name));
  }
  return {};
}

Result<void> checkCommand(const ScriptCommand& command) {
  const auto* syntax = std::find_if(std::begin(kSyntaxes), std::end(kSyntaxes),
                                    [&](const Syntax& f) { return command.name == QLatin1String(f.name); });
  if (syntax == std::end(kSyntaxes)) return fail(ErrorCode::BadUsage, "\"{}\" is not a command", toStd(command.name));
  const bool hasRest = !command.rest.isEmpty();
  if ((syntax->arguments == Arguments::None && hasRest) || (syntax->arguments == Arguments::One && !hasRest))
    return fail(ErrorCode::BadUsage, "write \"{}\"", syntax->usage);
  if (syntax->pattern && !QRegularExpression(QString::fromLatin1(syntax->pattern)).match(command.rest).hasMatch())
    return fail(ErrorCode::BadUsage, "\"{}\" is not valid here; write \"{}\"", toStd(command.rest), syntax->usage);
  return syntax->arguments == Arguments::KeyValues ? checkKeyValues(command) : Result<void>();
}

}  // namespace

Result<std::vector<ScriptCommand>> parseScript(const QString& text) {
  std::vector<ScriptCommand> commands;
  const QStringList lines = text.split(QLatin1Char('\n'));
  for (int i = 0; i < lines.size(); ++i) {
    const QString line = lines[i].trimmed();
    if (line.isEmpty() || line.startsWith(QLatin1Char('#'))) continue;
    const ScriptCommand command{i + 1, line.section(QLatin1Char(' '), 0, 0),
                                line.section(QLatin1Char(' '), 1).trimmed()};
    if (const auto good = checkCommand(command); !good)
      return fail(ErrorCode::BadUsage, "line {}: {}.", command.line, good.error().message);
    commands.push_back(command);
  }
  return commands;
}

}  // namespace cleave::views
