#include "options/standard_flags.h"

namespace cleave::options {

void addVersionFlag(CLI::App& app, std::function<std::vector<about::Component>()> own) {
  const std::string program = app.get_name();
  app.set_version_flag(
      "--version",
      [program, own = std::move(own)] {
        return about::versionText(program, own ? own() : std::vector<about::Component>());
      },
      "Print the versions of this program and of its components, and exit");
}

CLI::Validator notEmpty(std::string write) {
  return {[write = std::move(write)](const std::string& text) { return text.empty() ? write : std::string(); }, "", ""};
}

}  // namespace cleave::options
