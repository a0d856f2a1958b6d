#pragma once
/// The terminal side of `cleave-cli`: results on stdout, progress and errors on stderr, Ctrl+C as cancellation.
#include "base/progress.h"
#include "hub/download_state.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::cli {

/// Progress that draws a bar on a terminal and lines elsewhere; stops on SIGINT, SIGTERM and SIGHUP. A second
/// signal ends the program at once.
Progress consoleProgress();
/// Shows a download: a line that changes on a terminal; elsewhere a line for each file and every ten seconds.
hub::Watcher consoleWatcher();
/// Ends a bar that is being drawn.
void endProgress();

/// Prints the error as "cleave-cli: sentence", unless its sentence is empty. Returns its exit code.
int report(const Error& error);
/// One line each, to standard error.
void warn(const std::vector<std::string>& warnings);

/// Writes to a file (atomically) or, for "-", to stdout. Waits for a pipe's reader until the progress is stopped:
/// Cancelled.
Result<void> writeOutput(const std::string& target, std::string_view text);

}  // namespace cleave::cli
