#include "solve/trace/trace_json.h"

#include "base/json_tree.h"
#include "base/made_items.h"
#include "base/schema_reader.h"
#include "base/schema_writer.h"
#include "graph/json.h"
#include "solve/trace/trace_schema.h"

#include <nlohmann/json.hpp>

namespace cleave::solve {
namespace {

constexpr JsonLimits kHeaderLimits{.bytes = 512 << 20, .depth = 32, .elements = 8'000'000};

template <class Choices, class Conflicts>
struct WrittenHeader {
  std::string graphText;
  const Problem& problem;
  Choices choices;
  Conflicts conflicts;
  std::optional<Engine> engine;
};

struct ReadHeader {
  std::string graphText;  ///< not read
  Problem problem;
  std::vector<Choice> choices;
  std::vector<ConflictRecord> conflicts;
  std::optional<Engine> engine;
};

}  // namespace

std::string toJsonText(const Trace& trace) {
  const auto problem = trace.problem();
  const MadeItems choices(trace.choiceCount(),
                          [&](std::size_t i) -> const Choice& { return trace.choice(ChoiceId(i)); });
  const MadeItems conflicts(trace.conflictCount(),
                            [&](std::size_t i) -> const ConflictRecord& { return trace.conflict(ConflictId(i)); });
  const WrittenHeader<decltype(choices), decltype(conflicts)> header{graph::toJson(*problem->graph), *problem, choices,
                                                                     conflicts, trace.engine()};
  JsonTree json;
  json.beginObject();
  schema::Writer v(json);
  headerFields(v, header);
  json.endObject();
  return jsonText(json.root());
}

Result<TraceTables> traceTablesFromJson(const std::string& text) {
  CLEAVE_TRY(const nlohmann::json document, parseJson(text, "The header of the trace", kHeaderLimits));
  CLEAVE_TRY(const JsonObject top, JsonObject::at(document, "header"));
  CLEAVE_TRY(const JsonObject graphFields, top.object("graph"));
  CLEAVE_TRY(Graph graph, graph::graphFromJson(graphFields.json()));
  ReadHeader header;
  header.problem.graph = std::make_shared<const Graph>(std::move(graph));
  schema::Reader v(top);
  headerFields(v, header);
  CLEAVE_TRY_VOID(std::move(v).finish());
  return TraceTables{header.engine, std::make_shared<const Problem>(std::move(header.problem)),
                     std::move(header.choices), std::move(header.conflicts)};
}

std::vector<schema::Row> traceHeaderRows() {
  ReadHeader header;
  header.problem.graph = std::make_shared<const Graph>();
  schema::Rows v;
  headerFields(v, header);
  return std::move(v).take();
}

}  // namespace cleave::solve
