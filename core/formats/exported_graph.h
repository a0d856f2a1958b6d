#pragma once
/// The calls in an exported program's JSON graph, nested graphs included. Part of exported_program.h's reader.
#include "formats/exported_arguments.h"

namespace cleave::formats {

/// Reads one graph into a program. `names` has the definitions so far.
class ExportedGraphReader {
 public:
  /// `where`: the archive, the start of error messages.
  ExportedGraphReader(ExportedProgram& program, std::string where, const Progress& progress)
      : m_program(program), m_where(std::move(where)), m_progress(progress) {}

  /// `graph_module.graph`: creates a value for each input and reads the nodes. Returns the outputs.
  Result<std::vector<ExportedArgument>> read(const nlohmann::json& graph);
  /// The outermost graph's names and what they refer to.
  const ExportedNames& names() const { return m_names; }

 private:
  struct Level;      ///< one of the graphs being read, nested ones included
  struct GraphCall;  ///< names of a nested graph
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
  std::vector<bool> m_withoutGradient;  ///< by ExportedId: a call made it while gradients were disabled
  std::unordered_map<std::string, std::uint32_t> m_modules, m_sources;  ///< by the text of the metadata
  std::unordered_map<std::string, std::uint32_t> m_sourceLines;
};

}  // namespace cleave::formats
