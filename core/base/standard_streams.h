#pragma once
/// Input, output and error of a program that somebody started with some of them closed (`2>&-`), that nobody reads, or
/// whose files may not grow.

namespace cleave {

/// Opens /dev/null for each of the three that is closed. The first thing in main(): the next file or socket would take
/// the free number and receive what is written for the user. A closed output is opened for reading only, so that
/// writing results to it still fails; what is said on a closed error is lost, as its closing asks.
void holdStandardStreams();

/// From here on a write that nobody reads (SIGPIPE), or that makes a file longer than it may get (SIGXFSZ), fails, and
/// does not end the process. Ranks that it starts do the same for themselves.
void failWritesInsteadOfEnding();

}  // namespace cleave
