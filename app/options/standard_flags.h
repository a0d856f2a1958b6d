#pragma once
/// The flags that all three programs have.
#include "about/components.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace cleave::options {

/// --version: what is asked, is found out only then. `own`: components besides those of all programs.
void addVersionFlag(CLI::App& app, std::function<std::vector<about::Component>()> own = {});

// --report, of the programs that a person starts; a rank's has none, and links nothing of what it tells.
inline constexpr const char* kReportFlag = "--report";
inline constexpr const char* kReportHelp =
    "Print what to attach to a report of a problem: versions, machine, last run; no secrets, names and folders";

}  // namespace cleave::options
