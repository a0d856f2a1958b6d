#pragma once
/// What `cleave` takes. Declared here, so that its pages and completions are made of what it reads.
#include <CLI/CLI.hpp>

#include <string>

namespace cleave::options {

struct WindowOptions {
  std::string model, script, screenshots, platform;
};
/// `options` must outlive the parsing.
void declareWindow(CLI::App& app, WindowOptions& options);

}  // namespace cleave::options
