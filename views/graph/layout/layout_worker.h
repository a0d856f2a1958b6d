#pragma once
/// The layout helper: `cleave --layout-worker`. Graphviz runs here and nowhere else, because it can neither be
/// cancelled nor trusted with threads; who is tired of waiting kills this process.
#include <string>

namespace cleave::views {

/// Reads requests on stdin and answers on stdout (see layout_protocol.h) until end of file. Needs no QApplication.
/// Returns the exit code: 0 at end of file, 2 after a request that cannot be read.
int layoutWorkerMain();

/// "2.43.0", of the library that is loaded.
std::string graphvizVersion();

}  // namespace cleave::views
