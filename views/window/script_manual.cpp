#include "views/window/script_manual.h"

#include "views/window/script_verbs.h"

namespace cleave::views {

namespace {
constexpr std::string_view kIntroduction = R"(# Scripts

A script drives the window without a user: it opens models, solves, runs, and takes screenshots.
`cleave --script FILE --screenshot FOLDER` runs the commands in FILE, one per line, and exits. Without a display, it
draws offscreen.

```
# A model, its plan, and a run.
open resources/models/tiny-llama
solve engine=reference ranks=2
wait
shot graph
run steps=5 optimizer=adamw lr=0.001
wait
page lanes
shot lanes
```

Blank lines and lines that begin with # are ignored. Paths are relative to the working folder, or else to the folder of
the script. Screenshots, pictures and sessions are written to the folder of `--screenshot`.

Cleave checks all lines before it runs the first one. If a line is wrong, the exit code is 2, and the message says what
to write. If a command or its job fails, the exit code is 1. Both messages name the line.

`cleave --script-manual` prints this page; a test compares the two.

## Commands

`[X]` may be left out, `X|Y` is one of the two, and `[X]...` may be repeated. A command starts when its row's state is
reached. If its job continues, the next line starts meanwhile; `wait` waits for the job.
)";

constexpr std::string_view kSettings = R"(
## Settings of solve

`solve` changes these settings of the plan, and keeps the others. The keys are flags of `cleave-cli plan`, with _ for -.
The value `none` leaves a setting out; so does `auto` for a choice. A pin needs no key: `lm_head.weight=S(0)`.
)";
constexpr std::string_view kRunSettings = R"(
## Settings of run

`run` and `set-run` change these settings of the run, and keep the others. Without `steps`, or with
`steps=none`, a run is one forward pass. The keys are flags of `cleave-cli train`, with _ for -.
)";

/// A bar ends a cell, in code too.
std::string inCell(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? "\\|" : std::string(1, c);
  return cell;
}

std::string code(std::string_view text) { return "`" + inCell(text) + "`"; }

/// Outside of code, Markdown reads these.
std::string escaped(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '<' || c == '*' || c == '_') cell += '\\';
    cell += c;
  }
  return inCell(cell);
}

std::string stateText(ScriptState state) {
  switch (state) {
    case ScriptState::Now: return {};
    case ScriptState::ModelOpened: return "the model is open";
    case ScriptState::RunEnded: return "no ranks run";
    case ScriptState::JobsIdle: return "earlier jobs have ended";
    case ScriptState::Settled: return "all work has ended";
    case ScriptState::StepShown: return "the step is shown";
    case ScriptState::Drawn: return "the graph is drawn";
    case ScriptState::SessionWritten: return "the file is written";
    case ScriptState::Waited: return "the wait is over";
  }
  return {};
}

std::string startText(const ScriptVerb& verb) {
  const std::string need = verb.needs == ScriptNeed::Nothing ? ""
                           : verb.needs == ScriptNeed::Model ? "a model is open"
                                                             : "a search is shown";
  const std::string state = stateText(verb.startsWhen);
  if (need.empty() && state.empty()) return "at once";
  return need + (need.empty() || state.empty() ? "" : ", and ") + state;
}

std::string endText(const ScriptVerb& verb) {
  if (verb.endsWhen != ScriptState::Now) return stateText(verb.endsWhen);
  return verb.jobs.empty() ? "at once" : "at once; its job continues";
}

/// "N: a whole number from 1 to 99." for each argument whose name does not say it.
std::string argumentsText(const ScriptVerb& verb) {
  std::string text;
  for (const ScriptArgument& argument : verb.arguments) {
    if (!argument.form.words.empty() || argument.form.write.empty()) continue;
    if (argument.form.keys)
      text += " The keys are in a table below.";
    else
      text += fmt::format(" {}: {}.", code(argument.name), escaped(argument.form.write));
  }
  return text;
}

void addVerbTables(std::string& page) {
  std::string section;
  for (const ScriptVerb& verb : scriptVerbs()) {
    if (verb.section != section) {
      section = verb.section;
      page += fmt::format(
          "\n### {}\n\n| command | what it does | starts when | ends | example |\n|---|---|---|---|---|\n", section);
    }
    page += fmt::format("| {} | {}.{} | {} | {} | {} |\n", code(usageOf(verb)), escaped(verb.help), argumentsText(verb),
                        startText(verb), endText(verb), code(verb.example));
  }
}

void addKeyTable(std::string& page, const std::string& verbName) {
  page += "\n| key | value | |\n|---|---|---|\n";
  std::string others;
  for (const ScriptKey& key : findVerb(verbName)->arguments.front().form.keys()) {
    std::string names;
    for (const std::string& name : key.names) names += (names.empty() ? "" : ", ") + code(name);
    if (key.hasEffect)
      page += fmt::format("| {} | {} | {} |\n", names, code(key.value), escaped(key.help));
    else
      others += (others.empty() ? "" : ", ") + names;
  }
  if (others.empty()) return;
  page += fmt::format("\n`{}` accepts these keys of the capture too, but keeps the capture of the open model: {}.\n",
                      verbName, others);
}
}  // namespace

std::string scriptManual() {
  std::string page(kIntroduction);
  addVerbTables(page);
  page += kSettings;
  addKeyTable(page, "solve");
  page += kRunSettings;
  addKeyTable(page, "run");
  return page;
}

}  // namespace cleave::views
