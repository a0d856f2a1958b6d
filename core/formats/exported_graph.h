#pragma once
/// The calls of an exported program's JSON graph, graphs inside of graphs included. Part of exported_program.h's
/// reader.
#include "formats/exported_arguments.h"

namespace cleave::formats {

/// Reads one graph into a program; what is defined so far is in `names`.
class ExportedGraphReader {
 public:
  /// `where`: the archive, to begin errors with.
  ExportedGraphReader(ExportedProgram& program, std::string where, const Progress& progress)
      : m_program(program), m_where(std::move(where)), m_progress(progress) {}

  /// `graph_module.graph`: gives each of its inputs a value and reads its nodes. Answers what its outputs are.
  Result<std::vector<ExportedArgument>> read(const nlohmann::json& graph);
  /// Of the outermost graph: what each name stands for.
  const ExportedNames& names() const { return m_names; }

 private:
  struct Level;      ///< one of the graphs that are read, nested ones inside
  struct GraphCall;  ///< of a graph inside the graph
  Result<ExportedId> define(const std::string& name, Level& level, const std::string& where);
  Result<void> readInputs(Level& level);
  Result<void> readNodes(Level& level);
  Result<void> readNode(const JsonObject& node, Level& level);
  Result<void> readCall(const JsonObject& node, ExportedNode call, Level& level);
  Result<void> readResults(const JsonObject& node, ExportedNode& call, Level& level);
  Result<void> readGraphCall(const JsonObject& node, const ExportedNode& call, Level& level);
  Result<GraphCall> readHanded(const ExportedNode& call, const JsonArray& inputs, const Level& level) const;
  Result<void> runGraph(const JsonObject& node, const ExportedNode& call, GraphCall inside, bool passes, Level& level);
  ExportedId detached(ExportedId id, const ExportedNode& place);
  Result<void> bindResults(const JsonObject& node, const std::vector<ExportedArgument>& results, Level& level);
  Result<std::vector<ExportedArgument>> readOutputs(Level& level) const;
  Result<void> readOrigin(const JsonObject& node, ExportedNode& call);
  std::string placeOf(const ExportedNode& call) const;

  ExportedProgram& m_program;
  std::string m_where;
  const Progress& m_progress;
  ExportedTypes m_types;
  ExportedNames m_names;
  std::vector<bool> m_withoutGradient;  ///< by ExportedId: a call made it where gradients are switched off
  std::unordered_map<std::string, std::uint32_t> m_modules, m_sources;  ///< by the metadata's text
  std::unordered_map<std::string, std::uint32_t> m_sourceLines;
};

}  // namespace cleave::formats
