#pragma once
/// The options of `cleave`. Declared here, so that its manual page and completions match what it accepts.
#include <CLI/CLI.hpp>

#include <string>

namespace cleave::options {

struct WindowOptions {
  std::string model, script, screenshots, platform;
  bool printsScriptManual = false;
};
/// `options` must outlive the parsing.
void declareWindow(CLI::App& app, WindowOptions& options);

}  // namespace cleave::options
