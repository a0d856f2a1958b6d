#pragma once
/// The layout helper: `cleave --layout-worker`. Only this process runs Graphviz, which can neither be cancelled nor be
/// used from several threads. The window kills the process when an answer takes too long.
#include <string>

namespace cleave::views {

/// Reads requests on stdin and answers on stdout (see layout_protocol.h) until end of file. Needs no QApplication.
/// Returns the exit code: 0 at end of file, 2 after a request that cannot be read.
int layoutWorkerMain();

/// Version of the loaded library, such as "2.43.0".
std::string graphvizVersion();

}  // namespace cleave::views
