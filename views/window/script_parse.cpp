#include "views/window/script_parse.h"

#include <QRegularExpression>
#include <algorithm>

#include "views/base/text.h"
#include "views/window/script_values.h"

namespace cleave::views {

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

Result<void> checkKeyValues(const ScriptCommand& command) {
  pipeline::PlanSettings plan;
  RunSettings run;
  for (const KeyValue& pair : keyValues(command.rest)) {
    if (command.name == QLatin1String("solve") ? readSolveValue(pair, plan) : readRunValue(pair, run)) continue;
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
