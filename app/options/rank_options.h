#pragma once
/// The options of `cleave-rank`. Declared here, so that its manual page and completions match what it accepts.
#include "libtorch/rank/process/rank_request.h"
#include "options/setting_flags.h"

#include <CLI/CLI.hpp>

#include <string>

namespace cleave::options {

class RankOptions {
 public:
  RankOptions();
  /// Declares them; this object must outlive the parsing.
  void declare(CLI::App& app);
  /// The request that was parsed. BadUsage for a wrong value, or for flags that exclude each other.
  Result<torch_rank::RankRequest> request() const;

  std::string planFile, eventsTo;
  int eventsFd = -1, controlFd = -1, listenFd = -1;
  bool calibrates = false, probes = false;

 private:
  SettingFlags<spec::RankSpec> m_flags;
};

}  // namespace cleave::options
