#pragma once
/// What one attaches to a report of a problem: Markdown that tells of the program, the machine, the environment and the
/// window's last run, and of nobody's secrets, names and folders (redaction.h). Nothing is sent anywhere.
#include "about/components.h"

#include <string>
#include <vector>

namespace cleave::about {

struct ReportSection {
  std::string title;
  std::vector<std::string> lines;
};

/// Redacted, as "## title" and a list.
std::string toText(const ReportSection& section);

/// `program`: "cleave-cli"; `own`: its components besides those of all.
std::string problemReport(const std::string& program, const std::vector<Component>& own = {});

}  // namespace cleave::about
