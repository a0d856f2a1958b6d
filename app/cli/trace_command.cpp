#include "cli/commands.h"
#include "cli/console.h"

#include "base/json.h"
#include "base/quantities.h"
#include "pipeline/source/source.h"
#include "settings/option_types.h"
#include "solve/engine.h"
#include "solve/trace/cursor.h"

#include <nlohmann/json.hpp>

#include <charconv>

namespace cleave::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kChunkEvents = 1 << 14;

struct TraceCommand {
  std::string file;
  std::optional<std::string> at;
  bool stats = false, text = false, json = false;

  Result<int> printText(const solve::Trace& trace, const Progress& progress) const {
    std::vector<solve::Event> events(kChunkEvents);
    for (solve::StepId first = 0; first < trace.size(); first += events.size()) {
      if (progress.cancelled()) return progress.cancelledError("printing the trace");
      const std::size_t count = trace.read(first, events);
      std::string lines;
      for (std::size_t i = 0; i < count; ++i) lines += solve::toText(trace, first + i + 1, events[i]) + "\n";
      CLEAVE_TRY_VOID(writeOutput("-", lines));
    }
    return 0;
  }

  /// --at as a position in the trace; what was typed is named as it was, be it larger than any number here.
  Result<solve::StepId> stepIn(const solve::Trace& trace) const {
    solve::StepId step = 0;
    const auto [end, error] = std::from_chars(at->data(), at->data() + at->size(), step);
    const bool isNumber = !at->empty() && end == at->data() + at->size();
    if (!isNumber) return fail(ErrorCode::BadUsage, "--at is \"{}\": write a step from 0 to {}.", *at, trace.size());
    if (error != std::errc() || step > trace.size()) {
      return fail(ErrorCode::BadUsage, "--at is {}, but the trace has {}.", *at,
                  counted(static_cast<std::int64_t>(trace.size()), "step"));
    }
    return step;
  }

  Result<int> printState(const std::shared_ptr<const solve::Trace>& trace) const {
    CLEAVE_TRY(const solve::StepId step, stepIn(*trace));
    solve::Cursor cursor(trace);
    cursor.seek(step);
    const graph::Graph& graph = *trace->problem()->graph;
    Json values = Json::object();
    auto& members = values.get_ref<Json::object_t&>();  // appended to: its own insertion searches linearly
    for (graph::ValueId value : idRange<graph::ValueId>(graph.values.size())) {
      if (const auto placement = cursor.placementOf(value))
        members.emplace_back(graph.value(value).name, placement->text());
    }
    const auto event = cursor.lastEvent();
    const std::string words = event ? solve::describe(*trace, *event) : "Before the first step.";
    if (json) {
      const Json state{{"step", cursor.step()},
                       {"steps", trace->size()},
                       {"event", words},
                       {"assigned", cursor.assignedCount()},
                       {"values", std::move(values)}};
      CLEAVE_TRY_VOID(writeOutput("-", jsonText(state, 1) + "\n"));
      return 0;
    }
    std::string lines = fmt::format("step {} of {}: {}\n", cursor.step(), trace->size(), words);
    for (const auto& [name, placement] : values.items())
      lines += fmt::format("  {:<40} {}\n", name, placement.get<std::string>());
    CLEAVE_TRY_VOID(writeOutput("-", lines));
    return 0;
  }

  Result<int> printStats(const solve::Trace& trace) const {
    const solve::SearchStats counts = trace.stats();
    const std::string engine(trace.engine() ? solve::toText(*trace.engine()) : "");
    if (json) {
      const Json figures{{"engine", engine.empty() ? Json() : Json(engine)},
                         {"ranks", trace.problem()->context.worldSize},
                         {"events", counts.events},
                         {"visits", counts.visits},
                         {"tries", counts.tries},
                         {"conflicts", counts.conflicts},
                         {"backtracks", counts.backtracks}};
      CLEAVE_TRY_VOID(writeOutput("-", jsonText(figures, 1) + "\n"));
    } else {
      CLEAVE_TRY_VOID(writeOutput(
          "-", fmt::format("engine {}\nranks {}\nevents {}\nvisits {}\ntries {}\nconflicts {}\nbacktracks {}\n",
                           engine.empty() ? "not known" : engine, trace.problem()->context.worldSize, counts.events,
                           counts.visits, counts.tries, counts.conflicts, counts.backtracks)));
    }
    return 0;
  }

  Result<int> run() const {
    const Progress progress = consoleProgress();
    CLEAVE_TRY_VOID(pipeline::requireKind(pipeline::SourceKind::Trace, file));
    CLEAVE_TRY(const auto trace, solve::openTrace(file));
    if (at) return printState(trace);
    if (text) return printText(*trace, progress);
    return printStats(*trace);
  }
};

}  // namespace

void addTraceCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<TraceCommand>();
  CLI::App* command = app.add_subcommand("trace", "Print a recorded search");
  command->add_option("FILE", state->file, "Trace written by plan --trace")->type_name(option_types::kFile)->required();
  CLI::Option* stats = command->add_flag("--stats", state->stats, "Counts (the default)");
  CLI::Option* text = command->add_flag("--text", state->text, "Print every event on a line, with its step for --at");
  CLI::Option* at = command->add_option("--at", state->at, "Print the state after STEP events");
  CLI::Option* json = command->add_flag("--json", state->json, "JSON instead of text, with --at or --stats");
  text->excludes(stats, at, json);
  at->excludes(stats);
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
