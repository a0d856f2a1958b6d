#pragma once
/// Unwraps a result that a test requires. An error aborts the test with its sentence.
///
///     const auto model = test::need(formats::openModelFolder(path));
#include "base/result.h"
#include "graph/graph.h"

#include <QtGlobal>

#include <memory>
#include <string_view>

namespace cleave::test {

template <class T>
T need(Result<T> result) {
  if (!result) qFatal("%s", result.error().message.c_str());
  return std::move(*result);
}

inline std::shared_ptr<const graph::Graph> parsedGraph(std::string_view text) {
  return std::make_shared<const graph::Graph>(need(graph::parseGraph(text)));
}

}  // namespace cleave::test
