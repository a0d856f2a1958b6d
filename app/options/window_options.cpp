#include "options/window_options.h"

#include "settings/option_types.h"

namespace cleave::options {

void declareWindow(CLI::App& app, WindowOptions& options) {
  app.description("Shows how a Transformer splits across GPUs, why, and whether it works.");
  app.name("cleave");
  app.add_option("model", options.model,
                 "Model folder, exported program (.pt2), plan, recorded search or session to open")
      ->type_name(option_types::kOpened);
  app.add_option("--script", options.script, "Run the commands in this file, one per line, then exit")
      ->type_name(option_types::kFile);
  app.add_option("--screenshot", options.screenshots, "Folder for the script's screenshots")
      ->needs("--script")
      ->type_name(option_types::kFolder);
  app.add_flag("--script-manual", options.printsScriptManual, "Print the commands of scripts, as docs/scripts.md");
  app.add_option("--platform", options.platform, "Qt platform, as QT_QPA_PLATFORM")
      ->type_name(option_types::oneOf({"xcb", "wayland", "offscreen"}));
}

}  // namespace cleave::options
