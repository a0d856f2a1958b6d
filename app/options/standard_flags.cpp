#include "options/standard_flags.h"

#include "about/problem_report.h"

namespace cleave::options {

void addVersionFlag(CLI::App& app, std::function<std::vector<about::Component>()> own) {
  const std::string program = app.get_name();
  app.set_version_flag(
      "--version",
      [program, own = std::move(own)] {
        return about::versionText(program, own ? own() : std::vector<about::Component>());
      },
      "Print the version of this program and of what it is made of, and exit");
}

void addReportFlag(CLI::App& app) {
  app.add_flag_callback(
      kReportFlag,
      [program = app.get_name()] {
        throw CLI::CallForVersion(about::problemReport(program), 0);  // prints, and ends the program
      },
      kReportHelp);
}

}  // namespace cleave::options
