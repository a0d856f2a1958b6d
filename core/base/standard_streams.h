#pragma once
/// Protects the standard streams of a program that was started with closed streams (`2>&-`), closed readers, or a limit
/// on file sizes.

namespace cleave {

/// Opens /dev/null for each closed standard stream. Call it first in main(): otherwise the next file or socket would
/// get the free number and receive the user's output. A closed output is opened read-only, so that writing results to
/// it still fails. Messages to a closed error stream are lost, as requested.
void holdStandardStreams();

/// From here on a write to a closed pipe (SIGPIPE) or beyond the file size limit (SIGXFSZ) fails instead of ending the
/// process. Ranks do this for themselves.
void failWritesInsteadOfEnding();

}  // namespace cleave
