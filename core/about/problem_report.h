#pragma once
/// A problem report to attach to an issue: Markdown about the program, the machine, the environment and the window's
/// last run. Secrets, names and folders are redacted (redaction.h). Nothing is sent anywhere.
#include "about/components.h"

#include <string>
#include <vector>

namespace cleave::about {

struct ReportSection {
  std::string title;
  std::vector<std::string> lines;
};

/// The section as "## title" and a list, redacted.
std::string toText(const ReportSection& section);

/// `program`: "cleave-cli"; `own`: components besides those that all programs have.
std::string problemReport(const std::string& program, const std::vector<Component>& own = {});

}  // namespace cleave::about
