#pragma once
/// The fields of reasons of replication in plan files, in the order of the file (base/schema.h). Internal to this room.
#include "base/schema.h"
#include "plan/file/model_schema.h"
#include "plan/file/words.h"
#include "plan/replication_reason.h"

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

}  // namespace cleave::plan
