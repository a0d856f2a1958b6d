#pragma once
/// The fields of the header of a trace file, in the order of the file (base/schema.h). Internal to this room:
/// trace_json.cpp writes and reads them.
#include "base/schema.h"
#include "rules/placement_form.h"
#include "solve/problem/device_form.h"
#include "solve/trace/trace.h"
#include "solve/trace/trace_forms.h"

#include <optional>

namespace cleave::solve {

using schema::field;
using schema::newer;
using schema::nullable;
using schema::omitted;

inline constexpr int kMostTracedRanks = 1 << 20;

inline std::optional<rules::CollectiveKind> parseCollective(std::string_view word) {
  using enum rules::CollectiveKind;
  for (const rules::CollectiveKind kind : {AllReduce, AllGather, ReduceScatter}) {
    if (rules::toText(kind) == word) return kind;
  }
  return std::nullopt;
}

template <class V>
void fields(V& v, schema::Of<CostSettings> auto& m) {
  v(field("training", "Cost of a training step; otherwise of a forward pass"), m.isTraining);
  v(field("optimizer", "Optimizer of the training"), m.optimizer, schema::word(parseOptimizer));
  v(newer("checkpoints_activations", "Blocks run again before their backward pass"), m.checkpointsActivations);
  v(nullable("budget_bytes", "Memory budget per rank; null: the memory of the device"), m.memoryBudget, kPositive);
  v(field("slack_percent", "Extra step time that a plan with less memory may take"), m.slackPercent,
    schema::NumberBetween{0, kMostSlackPercent});
  v(newer("device", "Device profile, `cleave.device/1`"), m.profile, DeviceForm{});
}

template <class V>
void fields(V& v, schema::Of<Problem> auto& m) {
  v(field("ranks", "Number of ranks"), m.context.worldSize, IntegerRange{1, kMostTracedRanks});
  v(field("menu", "Candidate set"), m.context.candidateSet, schema::word(rules::parseCandidateSet));
  v(field("sequence_parallel", "Sequence parallelism"), m.context.sequenceParallel,
    schema::word(rules::parseSequenceParallel));
  v(field("pins", "Pins, as the user wrote them"), m.pins, PinsForm{});
  v(field("rules_off", "Patterns of operators whose rules are off"), m.rulesOff);
  v(field("redistributable", "Patterns of values that may be redistributed"), m.redistributable);
  v.object(newer("cost", "Settings of the costs"), [&](auto& v) { fields(v, m.cost); });
}

template <class V>
void fields(V& v, schema::Of<rules::LayerStrategy> auto& m) {
  v(field("name", "Name of the strategy"), m.strategy, schema::word(rules::parseStrategy));
  v(field("input", "Placement of the input"), m.input, rules::PlacementForm{});
  v(field("weight", "Placement of the weight"), m.weight, rules::PlacementForm{});
  v(field("bias", "Placement of the bias"), m.bias, rules::PlacementForm{});
  v(field("result", "Placement of the result"), m.result, rules::PlacementForm{});
  v(nullable("before", "Collective before the layer"), m.before, schema::word(parseCollective));
  v(nullable("after", "Collective after the layer"), m.after, schema::word(parseCollective));
  v(field("reason", "Why the sizes allow it"), m.reason);
  v(omitted("down", "Placement of the second weight of experts"), m.down, rules::PlacementForm{});
}

template <class V>
void fields(V& v, schema::Of<Choice> auto& m) {
  v(field("results", "Placements of the node's results"), m.results, rules::PlacementsForm{});
  v(field("reason", "Why the node may have them"), m.reason);
  v.optional(omitted("strategy", "Strategy of a layer"), m.strategy,
             [](auto& v, auto& strategy) { fields(v, strategy); });
  v(omitted("computed_as", "Placements before redistribution"), m.computedAs, rules::PlacementsForm{});
  v.check([&](const auto& object) -> Result<void> {
    if (!object.has("computed_as") || m.computedAs.size() == m.results.size()) return {};
    return object.wrong("computed_as", "as long as results");
  });
}

template <class V>
void fields(V& v, schema::Of<ConflictRecord> auto& m, const Graph& graph) {
  v(field("node", "Index of the node in the graph"), m.node, IdForm<NodeId>{graph.nodes.size()});
  v(field("reason", "Why no candidate is left"), m.reason);
  v(field("culprits", "Indices of the values whose placements cause it"), m.culprits,
    IdsForm<ValueId>{graph.values.size()});
  v(field("pins", "Pins that cause it"), m.pins);
}

/// `header`: graphText, problem, choices, conflicts and engine.
void headerFields(auto& v, auto& header) {
  const Graph& graph = *header.problem.graph;
  v.writtenOnly(
      [&](auto& v) { v(field("graph", "The ATen graph (`core/graph/json.cpp`)"), header.graphText, schema::Raw{}); });
  v.object(field("problem", "The problem that the search solves"), [&](auto& v) { fields(v, header.problem); });
  v.list(field("choices", "Choices of the steps"), header.choices, [](auto& v, auto& choice) { fields(v, choice); });
  v.list(field("conflicts", "Conflicts of steps without a choice"), header.conflicts,
         [&](auto& v, auto& conflict) { fields(v, conflict, graph); });
  v(omitted("engine", "The requested engine"), header.engine, schema::word(parseEngine));
}

}  // namespace cleave::solve
