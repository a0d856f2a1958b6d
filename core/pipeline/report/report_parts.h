#pragma once
/// The fields of the parts of a run's report, in the order of the file (base/schema.h). Internal to this room.
#include "base/schema.h"
#include "pipeline/report/past_run.h"
#include "pipeline/report/report_forms.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

using schema::field;
using schema::newer;
using schema::nullable;
using schema::omitted;

/// Operators and nodes are named by their values in the plan's graph.
struct RankEntry {
  int rank = 0;
  protocol::RankResult result;
  std::optional<std::string> storages;
};
struct NodeEntry {
  std::string value;
  std::int64_t measured = 0, predicted = 0;
};
struct MemoryEntry {
  int rank = 0;
  MemoryComparison memory;
  std::vector<NodeEntry> largest;
};
struct OperatorEntry {
  std::string value, op, scope;
  std::int64_t computeNs = 0;
  double predictedUs = 0;
};

template <class V>
void fields(V& v, schema::Of<protocol::TrainingStep> auto& m) {
  v(newer("loss", "Mean loss of its micro-batches before the update"), m.loss, kNanIfNull);
  v(newer("step_us", "Microseconds of the step"), m.microseconds, kCount);
  v.flagged(m.hasNorm, field("gradient_norm", "Norm of all gradients before clipping"), m.gradientNorm, kNanIfNull);
}

template <class V>
void fields(V& v, schema::Of<GenerationReport> auto& m) {
  v(field("prompt_tokens", "Tokens of the prompt"), m.promptLength);
  v(field("new_tokens", "Generated tokens per row"), m.tokens.length - m.promptLength);
  v(field("asked_tokens", "Requested tokens per row"), m.asked.tokens);
  v(field("end_tokens", "Tokens that end a row"), m.asked.endTokens);
  v(field("prefill_us", "Microseconds of the prefill"), m.figures.prefillMicroseconds);
  v(field("decode_steps", "Decode steps"), m.figures.steps);
  v(field("decode_us", "Microseconds of all decode steps"), m.figures.decodeMicroseconds);
  v(field("tokens_per_second", "Rate of the decode steps over all rows"), m.tokensPerSecond());
  v(nullable("first_difference", "First token that differs from the expected ones"), m.firstDifference);
  v.object(field("kv_cache", "KV cache per rank"), [&](auto& v) {
    v(field("positions", "Positions with room"), m.cachePositions);
    v(field("heads", "Heads per rank; empty if layers differ"), m.cacheHeads);
    v(field("predicted_bytes", "Predicted bytes per rank"), m.predictedCacheBytes);
    v(field("measured_bytes", "Measured bytes, by rank"), m.cacheBytes);
  });
}

/// `ranks`: number of ranks in the run.
template <class V>
void fields(V& v, schema::Of<OutputDifference> auto& m, int ranks) {
  v(field("name", "Name of the output"), m.name);
  v(newer("rank", "0, or a rank whose output differs from that of rank 0"), m.rank, RankForm{ranks});
  v(newer("max_abs_diff", "Largest absolute difference of an element"), m.maxAbs, kInfiniteIfNull);
  v(newer("max_rel_diff", "Largest relative difference of an element"), m.maxRel, kInfiniteIfNull);
  v(newer("of_tolerance", "Largest difference, divided by the allowed one"), m.ofTolerance, kInfiniteIfNull);
  v(newer("outside", "Elements beyond the tolerance"), m.outside, kCount);
  v(newer("not_a_number", "Elements that are NaN on either side"), m.notANumber, kCount);
  v(newer("positions", "Token positions, if a mask marks padding"), m.positions, kCount);
  v(newer("padding", "Padding positions, which are not compared"), m.padding, kCount);
  v(newer("undetermined", "Elements of a parameter whose gradient is only rounding"), m.undetermined, kCount);
  v.writtenOnly([&](auto& v) { v(field("within", "All elements are within the tolerance"), m.within()); });
  v(newer("unit", "Relative rounding error that the tolerance allows"), m.rounding.unit);
  v(nullable("ruler", "Largest change of an element when the unsplit run reorders its sums"), m.rounding.moves,
    RulerForm{});
  v(omitted("jumped", "Elements beyond the tolerance that also jump in the unsplit run"), m.jumped, kCount);
  const bool hasFarthest = !m.place.empty() || m.ofTolerance != 0;
  v.object(omitted("farthest", "The element that decides", hasFarthest), [&](auto& v) {
    v(field("place", "Its index"), m.place);
    v(newer("actual", "Its value"), m.actual, kInfiniteIfNull);
    v(newer("expected", "Its expected value"), m.expected, kInfiniteIfNull);
    v(newer("allowed", "The allowed difference"), m.allowed, kInfiniteIfNull);
  });
}

template <class V>
void fields(V& v, schema::Of<RankEntry> auto& m, int ranks) {
  v(field("rank", "Number of the rank"), m.rank, RankForm{ranks});
  v(newer("bytes_read", "Bytes of weights it read"), m.result.bytesRead, kCount);
  v(newer("shard_bytes", "Bytes of its parameters"), m.result.shardBytes, kCount);
  v(newer("largest_parameter_allocation", "Bytes of its largest allocation for a parameter"),
    m.result.largestParameterAllocation, kCount);
  v(newer("peak_memory", "Peak bytes of the program: what a plan predicts"), m.result.peak.program, kCount);
  v(newer("peak_rss", "Peak bytes of the process, on its device"), m.result.peak.process, kCount);
  v(newer("allocator_rounding", "Extra bytes in peak_memory because a GPU's allocator gives larger blocks"),
    m.result.peak.rounding, kCount);
  v.object(newer("collectives", "Executed collectives"), [&](auto& v) {
    v(newer("all_reduce", "All-reduces"), m.result.allReduce, kCount);
    v(newer("all_gather", "All-gathers"), m.result.allGather, kCount);
    v(newer("reduce_scatter", "Reduce-scatters"), m.result.reduceScatter, kCount);
  });
  v(newer("step_us", "Microseconds of the last step"), m.result.stepMicroseconds, kCount);
  v.flagged(m.result.hasLoss, field("loss", "Loss of the forward pass"), m.result.loss, kNanIfNull);
  v.writtenOnly([&](auto& v) { v(omitted("storages", "Digest of the addresses of its parameters"), m.storages); });
}

template <class V>
void fields(V& v, schema::Of<LaneSum> auto& m) {
  v(newer("compute_us", "Microseconds of compute"), m.compute, NanosecondForm{});
  v(newer("collective_us", "Microseconds of communication"), m.collective, NanosecondForm{});
  v(newer("waiting_us", "Microseconds of waiting in collectives"), m.waiting, NanosecondForm{});
  v(newer("total_us", "Microseconds from its begin to its end"), m.total, NanosecondForm{});
  v(newer("made_others_wait_us", "Waiting time of other ranks where this rank came last"), m.madeOthersWait,
    NanosecondForm{});
}

template <class V>
void fields(V& v, schema::Of<MemoryLine> auto& m) {
  v(field("name", "Name of the part"), m.name, PartForm{});
  v(newer("measured", "Measured bytes"), m.measured, kCount);
  v(nullable("predicted", "Predicted bytes"), m.predicted, kCount);
}

template <class V>
void fields(V& v, schema::Of<MemoryEntry> auto& m, int ranks) {
  v(field("rank", "Number of the rank"), m.rank, RankForm{ranks});
  v.object(field("peak", "Peak memory"), [&](auto& v) { fields(v, m.memory.peak); });
  v.list(
      newer("parts", "Its parts"), m.memory.lines, [](auto& v, auto& line) { fields(v, line); },
      std::size_t{2 * protocol::kMemoryKinds});
  v.writtenOnly([&](auto& v) {
    v.list(field("farthest_off", "Nodes with the largest differences in saved activations"), m.largest,
           [](auto& v, auto& node) {
             v(field("value", "Value of the graph"), node.value);
             v(field("measured", "Measured bytes"), node.measured);
             v(field("predicted", "Predicted bytes"), node.predicted);
           });
  });
}

template <class V>
void fields(V& v, schema::Of<launch::RankExit> auto& m, int ranks) {
  v(field("rank", "The rank that failed first"), m.rank, RankForm{ranks});
  v(newer("code", "Exit code of its class"), m.code, ExitCodeForm{});
  v(field("what", "What happened to it"), m.what);
  v(newer("last_words", "Its last message"), m.lastMessage);
}

}  // namespace cleave::pipeline
