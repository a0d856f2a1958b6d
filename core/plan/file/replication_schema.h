#pragma once
/// The fields of reasons and shares in plan files, in the order of the file (base/schema.h). Internal to this room.
#include "base/schema.h"
#include "plan/file/model_schema.h"
#include "plan/file/plan_forms.h"
#include "plan/file/replication_json.h"
#include "plan/text/reason_text.h"

#include <string>

namespace cleave::plan {

template <class V>
void fields(V& v, schema::Of<solve::Change> auto& m) {
  v(field("kind", "Kind of the change"), m.kind, schema::word(parseChange, changeText));
  v(field("argument", "What it changes"), m.argument);
}

template <class V>
void fields(V&, schema::Of<Split> auto&) {}
template <class V>
void fields(V&, schema::Of<NotKnown> auto&) {}

template <class V>
void fields(V& v, schema::Of<Cannot> auto& m) {
  v(field("why", "`cannot`: why it cannot be split"), m.why);
  v(newer("unless_redistributed", "`cannot`: a plan that redistributes values may split it"), m.isUnlessRedistributed);
  v.list(newer("with_redistribution", "`cannot`: other changes that such a plan needs"), m.withThat,
         [](auto& v, auto& change) { fields(v, change); });
}

template <class V>
void fields(V& v, schema::Of<DoesNotPay> auto& m) {
  v(field("extra_fs", "`does_not_pay`: extra time per step of the fastest plan that splits it"), m.extraFs,
    schema::TimeDifference{});
  v(field("extra_bytes", "`does_not_pay`: extra memory per rank of the smallest such plan that is fast enough"),
    m.extraBytes, IntegerRange{-program::kMaxSize, program::kMaxSize});
  v(field("fast_enough", "`does_not_pay`: the slack allows that time"), m.isFastEnough);
  v(newer("over_budget", "`does_not_pay`: plans that split it and are as fast are over the budget"), m.isOverBudget);
  v(newer("proved", "`does_not_pay`: all such plans were searched"), m.isProved);
}

template <class V>
void fields(V& v, schema::Of<NotAskedFor> auto& m) {
  v.list(field("changes", "`not_asked_for`: with all of these a plan splits it"), m.changes,
         [](auto& v, auto& change) { fields(v, change); });
  v(field("extra_fs", "`not_asked_for`: extra time per step of the fastest such plan"), m.extraFs,
    schema::TimeDifference{});
  v(field("why", "`not_asked_for`: why it is replicated here"), m.why);
  v(newer("budget", "`not_asked_for`: `fits`, `over` or `not_known`, for that plan"), m.fit,
    schema::word(parseFit, fitText));
  v(omitted("extra_within_fs", "`not_asked_for`: extra time of the fastest such plan within the budget"),
    m.extraWithinFs, schema::TimeDifference{});
  v(newer("of_optimal", "`not_asked_for`: only the engine `optimal` finds that plan"), m.isOfOptimal);
}

/// `graph`: the ATen graph; null to list the fields.
template <class V>
void fields(V& v, schema::Of<ReplicatedWork> auto& m, const graph::Graph* graph) {
  v(field("modules", "Pattern of the modules; empty outside of modules"), m.pattern);
  v(field("ops", "Operators, the most expensive first"), m.ops);
  v(field("count", "Number of operators"), m.count);
  v(newer("module_count", "Modules that are replicated for this reason"), m.modules);
  v(newer("modules_like", "Modules of the pattern"), m.modulesLike);
  v(field("flops", "FLOPs on each rank"), m.flops, schema::WideInteger{"a number of FLOPs"});
  v(field("femtoseconds", "Time per step on each rank"), m.femtoseconds);
  v(field("first", "Value of the most expensive operator"), m.first, ResultForm{graph});
  v(newer("standing", "Why that operator is replicated: see standing"), m.why, ReplicationForm{});
}

template <class V>
void fields(V& v, schema::Of<Shares> auto& m, const graph::Graph* graph) {
  v.writtenOnly([&](auto& v) {
    v(field("split_layers", "Split layers"), m.layers.split);
    v(field("gathered_layers", "Layers that are split and gather their results"), m.layers.gathered);
    v(field("layers", "Layers"), m.layers.layers);
    const schema::WideInteger flops{"a number of FLOPs"};
    v(field("flops", "FLOPs per step of the model"), m.flops, flops);
    v(field("rank_flops", "FLOPs per step of a rank"), m.rankFlops, flops);
    v(field("flops_share", "1: a rank computes its even share; 0: it computes all"), m.flopsShare());
    v(field("weight_bytes", "Bytes of the parameters"), m.weightBytes);
    v(field("rank_weight_bytes", "Bytes of the parameters on a rank"), m.rankWeightBytes);
    v(field("weight_share", "1: a rank has its even share; 0: it has all"), m.weightShare());
    v.optional(omitted("largest_replicated", "Replicated parameters of one kind of module, the largest"),
               m.largestWhole, [&](auto& v, auto& weights) {
                 v(field("modules", "Pattern of the modules"), weights.pattern);
                 v(field("parameters", "Number of parameters"), weights.count);
                 v(field("bytes", "Their bytes on each rank"), weights.bytes);
                 v(field("first", "The largest"), graph ? graph->value(weights.first).name : std::string());
                 v(field("standing", "Why it is replicated: see standing"), weights.why, ReplicationForm{});
                 v(field("why", "The same as a clause"), toText(weights.why));
               });
    v(field("compute_fs", "Time of a rank's step, without collectives"), m.computeFs);
    v(field("replicated_fs", "Part of compute_fs for replicated work"), m.replicatedFs);
  });
  v.list(field("replicated", "Replicated work, the most expensive first"), m.replicated,
         [&](auto& v, auto& work) { fields(v, work, graph); });
}

}  // namespace cleave::plan
