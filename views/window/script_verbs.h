#pragma once
/// The table of a script's commands: one row for each verb. The parser checks lines with it, the runner performs from
/// it, and docs/scripts.md is generated from it. A new command is a function of ScriptActions and a row here:
///
///     verbs.push_back({.name = "remedy",
///                      .arguments = {{"N", numberForm(1, kMostOffers)}},
///                      .help = "Apply a remedy of the list, counted from 1",
///                      ...
///                      .perform = &ScriptActions::applyRemedy});
///
/// Immutable; any thread.
#include <string_view>
#include <vector>

#include "views/window/script_verb.h"

namespace cleave::views {

/// All verbs, by section, in the order of the document.
const std::vector<ScriptVerb>& scriptVerbs();
/// Null: there is no such verb.
const ScriptVerb* findVerb(std::string_view name);

/// "why-not VALUE PLACEMENT|STRATEGY", "shot NAME [of ACTION [ROW]]"
std::string usageOf(const ScriptVerb& verb);
/// "by=axis|regret", "of ACTION", "KEY=VALUE"
std::string usageOf(const ScriptArgument& argument);

}  // namespace cleave::views
