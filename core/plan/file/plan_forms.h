#pragma once
/// Forms of values in plan files (base/schema_forms.h). Internal to this room.
#include "base/schema_forms.h"
#include "graph/graph.h"
#include "program/limits.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cleave::plan {

inline constexpr std::size_t kMostTexts = 10'000;  // warnings, demands
inline constexpr IntegerRange kSizes{0, program::kMaxSize};

/// A node of the ATen graph, by the name of its first result. `graph`: null to list the fields.
struct ResultForm {
  const graph::Graph* graph;
  std::string type() const { return "text"; }
  void write(auto& out, graph::NodeId node) const { out.value(graph->value(graph->node(node).results.front()).name); }
  Result<graph::NodeId> read(const JsonObject& object, std::string_view key) const;
};

/// Sizes by symbol.
struct SizesForm {
  std::string type() const { return "object of integers"; }
  void write(auto& out, const std::map<std::string, std::int64_t>& sizes) const {
    out.beginObject();
    for (const auto& [symbol, size] : sizes) out.key(symbol).value(size);
    out.endObject();
  }
  Result<std::map<std::string, std::int64_t>> read(const JsonObject& object, std::string_view key) const;
};

/// True in the file if Cleave's loss is in the graph. An exported program has its own, which its input asks for.
struct LossForm {
  bool isExported;
  std::string type() const { return "true or false"; }
  void write(auto& out, bool loss) const { out.value(loss && !isExported); }
  Result<bool> read(const JsonObject& object, std::string_view key) const;
};

/// A node of the rank program; null for no node. Only written.
struct ProgramNodeForm {
  std::string type() const { return "integer or null"; }
  void write(auto& out, graph::NodeId node) const { node.isValid() ? out.value(node.raw()) : out.null(); }
};

}  // namespace cleave::plan
