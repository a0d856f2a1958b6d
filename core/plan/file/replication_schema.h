#pragma once
/// The fields of shares in plan files, in the order of the file (base/schema.h). Internal to this room.
#include "base/schema.h"
#include "plan/file/model_schema.h"
#include "plan/file/plan_forms.h"
#include "plan/file/replication_form.h"
#include "plan/text/reason_text.h"

#include <string>

namespace cleave::plan {

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
