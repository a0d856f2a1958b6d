#pragma once
/// The signals that end a program: Ctrl+C, `kill`, and the end of the terminal.
#include <csignal>

namespace cleave {

/// Blocks SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP in this thread and the threads it starts later. One
/// thread can then wait for them (sigwait) and do what a signal handler may not. Call it before starting threads.
sigset_t blockEndingSignals();

}  // namespace cleave
