#pragma once
/// Flags and checks of values that the programs share.
#include "about/components.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace cleave::options {

/// Adds --version. `own` returns further components and is called only for that flag.
void addVersionFlag(CLI::App& app, std::function<std::vector<about::Component>()> own = {});

// --report exists for the programs that people start. A rank does not have it, and does not link its code.
inline constexpr const char* kReportFlag = "--report";
inline constexpr const char* kReportHelp =
    "Print a report to attach to an issue: versions, machine, last run; without secrets, names and folders";

/// Refuses an empty text; the error is `write`, such as "write HOST".
CLI::Validator notEmpty(std::string write);

}  // namespace cleave::options
