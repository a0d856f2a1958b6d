#pragma once
/// The options of `cleave-rank`. Declared here, so that its manual page and completions match what it accepts.
#include "libtorch/rank/process/rank_request.h"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace cleave::options {

struct RankOptions {
  torch_rank::RankRequest request;
  int eventsFd = -1, controlFd = -1, connectTimeout = 60,
      collectiveTimeout = static_cast<int>(torch_rank::kCallTimeout.count());
  std::string input, output, deviation, watch, watched, eventsTo, optimizer = "adamw";
  std::vector<std::string> then;
  std::optional<double> clipNorm;
  bool calibrates = false, probes = false;
};
/// `options` must outlive the parsing.
void declareRank(CLI::App& app, RankOptions& options);

}  // namespace cleave::options
