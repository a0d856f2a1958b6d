#pragma once
/// The signals by which somebody ends a program: Ctrl+C, `kill`, and the end of the terminal.
#include <csignal>

namespace cleave {

/// SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP: from now on blocked in this thread and in those it
/// starts, so that one thread can wait for them (sigwait) and do what a signal handler may not. Before there are other
/// threads.
sigset_t blockEndingSignals();

}  // namespace cleave
