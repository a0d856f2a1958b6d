#include "views/window/script_parse.h"

#include "base/edit_distance.h"
#include "views/base/text.h"
#include "views/window/script_verbs.h"

namespace cleave::views {

namespace {
/// The text before the first space, which `text` then lacks.
QString cutWord(QString& text) {
  qsizetype end = 0;
  while (end < text.size() && !text[end].isSpace()) ++end;
  QString word = text.left(end);
  text = text.mid(end).trimmed();
  return word;
}

tl::unexpected<Error> unknownVerb(const std::string& name) {
  std::vector<std::string> names;
  for (const ScriptVerb& verb : scriptVerbs()) names.push_back(verb.name);
  const std::string near = nearestName(name, names);
  return fail(ErrorCode::BadUsage, "\"{}\" is not a command; {}.", name,
              near.empty() ? "cleave --script-manual lists the commands" : "the nearest is " + near);
}

tl::unexpected<Error> surplusText(const ScriptVerb& verb, const QString& text) {
  return fail(ErrorCode::BadUsage, "\"{}\" is not an argument of {}: write \"{}\".", toStd(text), verb.name,
              usageOf(verb));
}

/// The value of the next argument, which `rest` then lacks. Empty: left out.
Result<QString> cutValue(const ScriptVerb& verb, const ScriptArgument& argument, QString& rest) {
  if (rest.isEmpty()) {
    if (!argument.isRequired) return QString();
    return fail(ErrorCode::BadUsage, "{} has no {}: write \"{}\".", verb.name, argument.name, usageOf(verb));
  }
  const QString prefix = toQ(argument.prefix);
  if (!rest.startsWith(prefix)) return surplusText(verb, rest);
  rest = rest.mid(prefix.size()).trimmed();
  const QString value = argument.form.hasSpaces ? std::exchange(rest, QString()) : cutWord(rest);
  if (!argument.form.check) return value;
  const QStringList texts =
      argument.isRepeated ? value.split(QLatin1Char(' '), Qt::SkipEmptyParts) : QStringList(value);
  for (const QString& text : texts)
    CLEAVE_TRY_VOID(argument.form.check(verb.name + " " + usageOf(argument), toStd(text)));
  return value;
}

Result<ScriptCommand> parseLine(int number, QString line) {
  const std::string name = toStd(cutWord(line));
  ScriptCommand command{.line = number, .verb = findVerb(name), .rest = line};
  if (!command.verb) return unknownVerb(name);
  for (const ScriptArgument& argument : command.verb->arguments) {
    CLEAVE_TRY(QString value, cutValue(*command.verb, argument, line));
    command.values.push_back(std::move(value));
  }
  if (!line.isEmpty()) return surplusText(*command.verb, line);
  return command;
}
}  // namespace

Result<std::vector<ScriptCommand>> parseScript(const QString& text) {
  std::vector<ScriptCommand> commands;
  const QStringList lines = text.split(QLatin1Char('\n'));
  for (int i = 0; i < lines.size(); ++i) {
    const QString line = lines[i].trimmed();
    if (line.isEmpty() || line.startsWith(QLatin1Char('#'))) continue;
    auto command = parseLine(i + 1, line);
    if (!command) return fail(ErrorCode::BadUsage, "line {}: {}", i + 1, command.error().message);
    commands.push_back(std::move(*command));
  }
  return commands;
}

}  // namespace cleave::views
