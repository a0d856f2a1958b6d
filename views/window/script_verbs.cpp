#include "views/window/script_verbs.h"

#include <algorithm>

#include "views/window/script_actions.h"
#include "views/window/script_values.h"

namespace cleave::views {

namespace {
using Verbs = std::vector<ScriptVerb>;

constexpr int kMostOffers = 99, kMostSavedRuns = 999, kMostPauseMs = 999'999;

void addModelVerbs(Verbs& verbs) {
  verbs.push_back({.name = "open",
                   .arguments = {{"PATH", textForm()}},
                   .help = "Open a model folder, an exported program, a plan, a recorded search or a session",
                   .example = "open resources/models/tiny-llama",
                   .jobs = {Activity::Opening, Activity::Solving},
                   .endsWhen = ScriptState::ModelOpened,
                   .perform = &ScriptActions::open});
  verbs.push_back({.name = "sample",
                   .arguments = {{"NAME", textForm()}},
                   .help = "Open a bundled sample: a name of File ▸ Samples",
                   .example = "sample tiny-llama",
                   .jobs = {Activity::Opening, Activity::Solving},
                   .endsWhen = ScriptState::ModelOpened,
                   .perform = &ScriptActions::openSample});
  verbs.push_back({.name = "save-session",
                   .arguments = {{"NAME.cleave", fileNameForm({".cleave"})}},
                   .help = "Save the session in the folder of the screenshots",
                   .example = "save-session looked-at.cleave",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::Settled,
                   .endsWhen = ScriptState::SessionWritten,
                   .perform = &ScriptActions::saveSession,
                   .checkAnswer = &ScriptActions::checkSession});
}

void addPlanVerbs(Verbs& verbs) {
  verbs.push_back({.name = "solve",
                   .arguments = {{"KEY=VALUE", solveValueForm(), false, true}},
                   .help = "Change settings of the plan, and solve",
                   .example = "solve engine=reference ranks=2 pin=lm_head=row",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::RunEnded,
                   .jobs = {Activity::Solving},
                   .perform = &ScriptActions::solve});
  verbs.push_back({.name = "pin",
                   .arguments = {{"SPEC", pinForm()}},
                   .help = "Add a pin, and solve",
                   .example = "pin model.layers.*.mlp.down_proj=replicated",
                   .needs = ScriptNeed::Model,
                   .jobs = {Activity::Solving},
                   .perform = &ScriptActions::pin});
  verbs.push_back({.name = "branch",
                   .arguments = {{"BRANCH", choiceForm({"A", "B", "keep", "drop"})}},
                   .help = "Show a branch, keep B as the only plan, or drop B",
                   .example = "branch B",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::Settled,
                   .endsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::showBranch});
  verbs.push_back({.name = "remedy",
                   .arguments = {{"N", numberForm(1, kMostOffers)}},
                   .help = "Apply remedy N of the conflict, and solve",
                   .example = "remedy 1",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::Settled,
                   .jobs = {Activity::Solving},
                   .perform = &ScriptActions::applyRemedy});
  verbs.push_back({.name = "fit",
                   .arguments = {{"N", numberForm(1, kMostOffers)}},
                   .help = "Apply change N of those with which the plan fits, and solve",
                   .example = "fit 1",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::Settled,
                   .jobs = {Activity::Opening, Activity::Solving},
                   .perform = &ScriptActions::applyFit});
}

void addQuestionVerbs(Verbs& verbs) {
  verbs.push_back({.name = "why-not",
                   .arguments = {{"VALUE", wordForm("the name of a value or layer")},
                                 {"PLACEMENT|STRATEGY", placementOrStrategyForm()}},
                   .help = "Select a value or layer, and ask why it has no such placement or strategy",
                   .example = "why-not model.layers.0.mlp.up_proj row",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::Settled,
                   .endsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::askWhyNot,
                   .checkAnswer = &ScriptActions::checkWhyNot});
  verbs.push_back({.name = "world-sizes",
                   .help = "Compute which world sizes work",
                   .example = "world-sizes",
                   .needs = ScriptNeed::Model,
                   .endsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::computeWorldSizes});
  verbs.push_back({.name = "front",
                   .help = "Compute the Pareto front of time and memory",
                   .example = "front",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::Settled,
                   .endsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::computeFront,
                   .checkAnswer = &ScriptActions::checkFront});
}

void addSearchVerbs(Verbs& verbs) {
  verbs.push_back({.name = "step",
                   .arguments = {{"+1|-1|N", stepForm()}},
                   .help = "Go to a step of the recorded search",
                   .example = "step +1",
                   .needs = ScriptNeed::Search,
                   .endsWhen = ScriptState::StepShown,
                   .perform = &ScriptActions::step});
  verbs.push_back({.name = "next-conflict",
                   .help = "Go to the next conflict of the recorded search. Fails if the search has no other",
                   .example = "next-conflict",
                   .needs = ScriptNeed::Search,
                   .endsWhen = ScriptState::StepShown,
                   .perform = &ScriptActions::nextConflict,
                   .checkAnswer = &ScriptActions::checkConflict});
}

void addRunVerbs(Verbs& verbs) {
  verbs.push_back({.name = "run",
                   .arguments = {{"KEY=VALUE", runValueForm(), false, true}},
                   .help = "Change settings of the run, and run the plan on local ranks. Solves first if the plan is "
                           "for another number of ranks",
                   .example = "run ranks=2 backend=gloo steps=5 optimizer=adamw lr=0.001",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::JobsIdle,
                   .jobs = {Activity::Running},
                   .perform = &ScriptActions::runRanks});
  verbs.push_back({.name = "set-run",
                   .arguments = {{"KEY=VALUE", runValueForm(), false, true}},
                   .help = "Change settings of the next run",
                   .example = "set-run ranks=2 clip=1 accumulate=2",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::setRun});
  verbs.push_back({.name = "bisect",
                   .help = "Find the first value that differs from an unsplit run",
                   .example = "bisect",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::Settled,
                   .jobs = {Activity::Running},
                   .endsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::bisect});
  verbs.push_back({.name = "history",
                   .arguments = {{"N", numberForm(1, kMostSavedRuns)}},
                   .help = "Show saved run N",
                   .example = "history 1",
                   .startsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::showSavedRun});
  verbs.push_back({.name = "compare",
                   .arguments = {{"N", numberForm(1, kMostSavedRuns)}, {"M", numberForm(1, kMostSavedRuns)}},
                   .help = "Compare two saved runs",
                   .example = "compare 1 2",
                   .startsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::compareSavedRuns});
  verbs.push_back({.name = "forget",
                   .arguments = {{"N", numberForm(1, kMostSavedRuns)}},
                   .help = "Delete saved run N",
                   .example = "forget 2",
                   .startsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::forgetRun});
}

void addGraphVerbs(Verbs& verbs) {
  verbs.push_back({.name = "select",
                   .arguments = {{"VALUE", textForm()}},
                   .help = "Select a value or a layer by its name",
                   .example = "select model.layers.0.self_attn.q_proj",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::select});
  verbs.push_back({.name = "expand",
                   .arguments = {{"SCOPE", textForm()}},
                   .help = "Unfold a module of the graph, and show it",
                   .example = "expand model.layers.0",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::expand});
  verbs.push_back({.name = "search",
                   .arguments = {{"TEXT", textForm(), false}},
                   .help = "Search the graph, or clear the search",
                   .example = "search op:linear",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::search});
  verbs.push_back({.name = "colour",
                   .arguments = {{"AMOUNT", choiceForm(ScriptActions::colorWords()), true, false, "by="}},
                   .help = "Colour the graph by an amount",
                   .example = "colour by=time",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::colorBy});
}

void addWindowVerbs(Verbs& verbs) {
  verbs.push_back({.name = "view",
                   .arguments = {{"VIEW", choiceForm({"graph", "run"})}},
                   .help = "Show the graph or the run",
                   .example = "view run",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::showView});
  verbs.push_back({.name = "page",
                   .arguments = {{"PAGE", choiceForm(ScriptActions::pageWords())}},
                   .help = "Show a page of the run view",
                   .example = "page lanes",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::showPage});
  verbs.push_back({.name = "panel",
                   .arguments = {{"NAME", textForm()}},
                   .help = "Raise a panel: a name of the Window menu, or run",
                   .example = "panel pre-flight",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::raisePanel});
  verbs.push_back({.name = "preset",
                   .arguments = {{"PRESET", choiceForm(ScriptActions::presetWords())}},
                   .help = "Arrange the panels for a task",
                   .example = "preset debug",
                   .needs = ScriptNeed::Model,
                   .perform = &ScriptActions::applyPreset});
  verbs.push_back({.name = "theme",
                   .arguments = {{"THEME", choiceForm({"dark", "light"})}},
                   .help = "Set the colours of the window",
                   .example = "theme dark",
                   .perform = &ScriptActions::setTheme});
  verbs.push_back({.name = "resize",
                   .arguments = {{"WxH", windowSizeForm()}},
                   .help = "Set the size of the window",
                   .example = "resize 1440x900",
                   .perform = &ScriptActions::resize});
}

void addPictureVerbs(Verbs& verbs) {
  verbs.push_back(
      {.name = "shot",
       .arguments = {{"NAME", fileNameForm()},
                     {"ACTION", wordForm("the name of a menu entry, such as open-hub"), false, false, "of "},
                     {"ROW", wordForm(), false}},
       .help = "Save a picture of the window as NAME.png. With ACTION, trigger this menu entry, select ROW "
               "in the list of its dialog, draw the dialog too, and close it",
       .example = "shot export of export-plan tp-plan",
       .startsWhen = ScriptState::Drawn,
       .perform = &ScriptActions::shoot});
  verbs.push_back({.name = "picture",
                   .arguments = {{"NAME.svg|pdf|png", fileNameForm({".svg", ".pdf", ".png"})}},
                   .help = "Save a picture of the graph, in full",
                   .example = "picture graph.svg",
                   .needs = ScriptNeed::Model,
                   .startsWhen = ScriptState::Drawn,
                   .perform = &ScriptActions::savePicture});
}

void addControlVerbs(Verbs& verbs) {
  verbs.push_back({.name = "wait",
                   .arguments = {{"MILLISECONDS", numberForm(0, kMostPauseMs), false}},
                   .help = "Wait until all work has ended, or for a time",
                   .example = "wait 400",
                   .endsWhen = ScriptState::Waited,
                   .perform = &ScriptActions::wait});
  verbs.push_back({.name = "stop",
                   .help = "Stop all work",
                   .example = "stop",
                   .needs = ScriptNeed::Model,
                   .endsWhen = ScriptState::Settled,
                   .perform = &ScriptActions::stop});
  verbs.push_back({.name = "quit",
                   .help = "End the script here, as the end of the file does",
                   .example = "quit",
                   .perform = &ScriptActions::quit,
                   .endsScript = true});
}
}  // namespace

const std::vector<ScriptVerb>& scriptVerbs() {
  static const Verbs verbs = [] {
    Verbs all;
    const auto add = [&](const char* section, void (*addVerbs)(Verbs&)) {
      const std::size_t first = all.size();
      addVerbs(all);
      for (std::size_t i = first; i < all.size(); ++i) all[i].section = section;
    };
    add("Models", &addModelVerbs);
    add("Plans", &addPlanVerbs);
    add("Questions", &addQuestionVerbs);
    add("The search", &addSearchVerbs);
    add("Runs", &addRunVerbs);
    add("The graph", &addGraphVerbs);
    add("The window", &addWindowVerbs);
    add("Pictures", &addPictureVerbs);
    add("The script", &addControlVerbs);
    return all;
  }();
  return verbs;
}

const ScriptVerb* findVerb(std::string_view name) {
  const Verbs& verbs = scriptVerbs();
  const auto found =
      std::find_if(verbs.begin(), verbs.end(), [&](const ScriptVerb& verb) { return verb.name == name; });
  return found == verbs.end() ? nullptr : &*found;
}

std::string usageOf(const ScriptArgument& argument) {
  const std::string text =
      argument.form.words.empty() ? argument.name : fmt::format("{}", fmt::join(argument.form.words, "|"));
  return argument.prefix + text;
}

std::string usageOf(const ScriptVerb& verb) {
  std::string usage = verb.name, end;
  for (const ScriptArgument& argument : verb.arguments) {
    usage += argument.isRequired ? " " : " [";
    usage += usageOf(argument);
    if (argument.isRepeated) usage += "]...";
    if (!argument.isRequired && !argument.isRepeated) end += ']';
  }
  return usage + end;
}

}  // namespace cleave::views
