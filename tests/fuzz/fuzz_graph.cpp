// Graphs in JSON. An accepted graph is valid, and is reproduced by its own JSON and its own text.
#include "base/json.h"
#include "graph/json.h"
#include "graph/verify.h"
#include "tests/fuzz/fuzz_target.h"

#include <nlohmann/json.hpp>

using namespace cleave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = parseJson({reinterpret_cast<const char*>(data), size}, "input",
                              {.bytes = 1 << 20, .depth = 16, .elements = 100'000});
  const auto graph = json ? graph::graphFromJson(*json) : Result<graph::Graph>(tl::unexpected(json.error()));
  wasAccepted = graph.has_value();
  if (!graph) {
    CLEAVE_CHECK(graph.error().code == ErrorCode::BadInput);
    nlohmann::json(graph.error().message).dump();  // throws on invalid UTF-8
    return 0;
  }
  CLEAVE_CHECK(graph::verify(*graph).has_value());
  const auto again = graph::graphFromJson(nlohmann::json::parse(graph::toJson(*graph)));
  CLEAVE_CHECK(again.has_value(), "{}", again ? "" : again.error().message);
  CLEAVE_CHECK(graph::toJson(*again) == graph::toJson(*graph));
  CLEAVE_CHECK(!graph::toText(*graph).empty());
  return 0;
}
