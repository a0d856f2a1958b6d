#pragma once
/// The flags of `run` for ranks on several machines: print the commands that start them there, and listen to them.
#include "launch/listener.h"
#include "pipeline/run/run_request.h"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace cleave::cli {

struct ClusterFlags {
  std::string printCommand, listen, master, rankProgram;
  int nodes = 1, connectTimeoutS = 60;

  void addTo(CLI::App& command);
  bool isAsked() const { return !printCommand.empty() || !listen.empty(); }
  bool onlyPrints() const { return isAsked() && listen.empty(); }
  /// BadUsage for flags that mean nothing without another, or with what is run.
  Result<void> check(const std::string& model, bool hasShapes) const;
  /// The commands that start the ranks on other machines. `listener`: where ranks report; may be null.
  Result<std::string> commands(const pipeline::RunRequest& request, const std::string& planFile,
                               const launch::Listener* listener, const Progress& progress) const;
  /// For `--listen`: opens the listener, which the request refers to from then on. Its token is CLEAVE_RUN_TOKEN where
  /// that is set.
  Result<void> listenWith(std::optional<launch::Listener>& listener, pipeline::RunRequest& request,
                          const Progress& progress) const;
  /// Says on standard error how the ranks are started that it waits for.
  Result<void> printInstructions(const pipeline::RunRequest& request, const std::string& planFile,
                                 const launch::Listener& listener, const Progress& progress) const;
};

}  // namespace cleave::cli
