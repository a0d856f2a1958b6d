#include "plan/file/replication_json.h"

#include "plan/file/schema.h"
#include "plan/text/reason_text.h"

#include <algorithm>
#include <array>

namespace cleave::plan {
namespace {

using solve::Change;
using solve::ChangeKind;

constexpr IntegerRange kBytesMore{-program::kMaxSize, program::kMaxSize};

constexpr std::array<std::pair<ChangeKind, std::string_view>, 8> kChangeWords{{
    {ChangeKind::AddPin, "add_pin"},
    {ChangeKind::LiftPin, "lift_pin"},
    {ChangeKind::RuleOn, "rule_on"},
    {ChangeKind::Redistribute, "redistribute"},
    {ChangeKind::FullCandidateSet, "full_menu"},
    {ChangeKind::SequenceParallel, "sequence_parallel"},
    {ChangeKind::Ranks, "ranks"},
    {ChangeKind::LiftBudget, "lift_budget"},
}};

constexpr std::array<std::pair<BudgetFit, std::string_view>, 3> kFitWords{{
    {BudgetFit::Fits, "fits"},
    {BudgetFit::Over, "over"},
    {BudgetFit::NotKnown, "not_known"},
}};

/// The text of a value in a table of all values.
template <class Value, std::size_t kCount>
std::string_view wordIn(const std::array<std::pair<Value, std::string_view>, kCount>& words, Value value) {
  return std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.first == value; })->second;
}

template <class Value, std::size_t kCount>
std::optional<Value> valueIn(const std::array<std::pair<Value, std::string_view>, kCount>& words,
                             std::string_view text) {
  const auto known = std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.second == text; });
  return known == words.end() ? std::nullopt : std::optional(known->first);
}

std::optional<ChangeKind> parseChange(std::string_view text) { return valueIn(kChangeWords, text); }
std::optional<BudgetFit> parseFit(std::string_view text) { return valueIn(kFitWords, text); }

void writeChanges(JsonWriter& json, std::string_view key, const std::vector<Change>& changes) {
  json.key(key).beginArray();
  for (const Change& change : changes) {
    json.beginObject();
    json.key("kind").value(wordIn(kChangeWords, change.kind));
    json.key("argument").value(change.argument);
    json.endObject();
  }
  json.endArray();
}

Result<std::vector<Change>> readChanges(const JsonObject& fields, const char* key) {
  CLEAVE_TRY(const JsonArray list, fields.array(key));
  std::vector<Change> changes;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CLEAVE_TRY(const JsonObject change, list.object(i));
    CLEAVE_TRY(const ChangeKind kind, change.word("kind", parseChange));
    CLEAVE_TRY(std::string argument, change.text("argument"));
    changes.push_back({kind, std::move(argument)});
  }
  return changes;
}

}  // namespace

void writeReplication(JsonWriter& json, const ReplicationReason& replication) {
  json.beginObject();
  json.key("kind").value(kindOf(replication));
  if (const auto* cannot = std::get_if<Cannot>(&replication)) {
    json.key("why").value(cannot->why);
    json.key("unless_redistributed").value(cannot->isUnlessRedistributed);
    writeChanges(json, "with_redistribution", cannot->withThat);
  }
  if (const auto* costs = std::get_if<DoesNotPay>(&replication)) {
    json.key("extra_fs").value(costs->extraFs);
    json.key("extra_bytes").value(costs->extraBytes);
    json.key("fast_enough").value(costs->isFastEnough);
    json.key("over_budget").value(costs->isOverBudget);
    json.key("proved").value(costs->isProved);
  }
  if (const auto* setting = std::get_if<NotAskedFor>(&replication)) {
    writeChanges(json, "changes", setting->changes);
    json.key("extra_fs").value(setting->extraFs);
    json.key("why").value(setting->why);
    json.key("budget").value(wordIn(kFitWords, setting->fit));
    if (setting->extraWithinFs) json.key("extra_within_fs").value(*setting->extraWithinFs);
    json.key("of_optimal").value(setting->isOfOptimal);
  }
  json.endObject();
}

Result<ReplicationReason> readReplication(const JsonObject& fields) {
  if (!fields.has("standing")) return NotKnown{};
  CLEAVE_TRY(const JsonObject replication, fields.object("standing"));
  CLEAVE_TRY(const std::string kind, replication.text("kind"));
  if (kind == kindOf(Split{})) return Split{};
  if (kind == kindOf(NotKnown{})) return NotKnown{};
  if (kind == kindOf(Cannot{})) {
    Cannot cannot;
    CLEAVE_TRY(cannot.why, replication.text("why"));
    if (replication.has("unless_redistributed")) {
      CLEAVE_TRY(cannot.isUnlessRedistributed, replication.flag("unless_redistributed"));
    }
    if (replication.has("with_redistribution")) {
      CLEAVE_TRY(cannot.withThat, readChanges(replication, "with_redistribution"));
    }
    return cannot;
  }
  if (kind == kindOf(DoesNotPay{})) {
    DoesNotPay costs;
    CLEAVE_TRY(costs.extraFs, replication.timeDifference("extra_fs"));
    CLEAVE_TRY(costs.extraBytes, replication.integer("extra_bytes", kBytesMore));
    CLEAVE_TRY(costs.isFastEnough, replication.flag("fast_enough"));
    if (replication.has("over_budget")) {
      CLEAVE_TRY(costs.isOverBudget, replication.flag("over_budget"));
    }
    if (replication.has("proved")) {
      CLEAVE_TRY(costs.isProved, replication.flag("proved"));
    }
    return costs;
  }
  if (kind == kindOf(NotAskedFor{})) {
    NotAskedFor setting;
    CLEAVE_TRY(setting.changes, readChanges(replication, "changes"));
    CLEAVE_TRY(setting.extraFs, replication.timeDifference("extra_fs"));
    CLEAVE_TRY(setting.why, replication.text("why"));
    if (replication.has("budget")) {
      CLEAVE_TRY(setting.fit, replication.word("budget", parseFit));
    }
    if (replication.has("extra_within_fs")) {
      CLEAVE_TRY(setting.extraWithinFs, replication.timeDifference("extra_within_fs"));
    }
    if (replication.has("of_optimal")) {
      CLEAVE_TRY(setting.isOfOptimal, replication.flag("of_optimal"));
    }
    return setting;
  }
  return replication.wrong("kind", "split, cannot, does_not_pay, not_asked_for or not_known");
}

void writeShares(JsonWriter& json, const Shares& shares, const graph::Graph& graph) {
  json.key("shares").beginObject();
  json.key("split_layers").value(shares.layers.split);
  json.key("gathered_layers").value(shares.layers.gathered);
  json.key("layers").value(shares.layers.layers);
  json.key("flops").value(shares.flops);
  json.key("rank_flops").value(shares.rankFlops);
  json.key("flops_share").real(shares.flopsShare());
  json.key("weight_bytes").value(shares.weightBytes);
  json.key("rank_weight_bytes").value(shares.rankWeightBytes);
  json.key("weight_share").real(shares.weightShare());
  if (const auto& whole = shares.largestWhole) {
    json.key("largest_replicated").beginObject();
    json.key("modules").value(whole->pattern);
    json.key("parameters").value(whole->count);
    json.key("bytes").value(whole->bytes);
    json.key("first").value(graph.value(whole->first).name);
    json.key("standing");
    writeReplication(json, whole->why);
    json.key("why").value(toText(whole->why));
    json.endObject();
  }
  json.key("compute_fs").value(shares.computeFs);
  json.key("replicated_fs").value(shares.replicatedFs);
  json.key("replicated").beginArray();
  for (const ReplicatedWork& work : shares.replicated) {
    json.beginObject();
    json.key("modules").value(work.pattern);
    json.key("ops").beginArray();
    for (const std::string& op : work.ops) json.value(op);
    json.endArray();
    json.key("count").value(work.count);
    json.key("module_count").value(work.modules);
    json.key("modules_like").value(work.modulesLike);
    json.key("flops").value(work.flops);
    json.key("femtoseconds").value(work.femtoseconds);
    json.key("first").value(graph.value(graph.node(work.first).results.front()).name);
    json.key("standing");
    writeReplication(json, work.why);
    json.endObject();
  }
  json.endArray();
  json.endObject();
}

Result<void> readReplicated(const JsonObject& root, const graph::Graph& graph, Shares& shares) {
  if (!root.has("shares")) return {};
  CLEAVE_TRY(const JsonObject fields, root.object("shares"));
  if (shares.largestWhole && fields.has("largest_replicated")) {
    CLEAVE_TRY(const JsonObject whole, fields.object("largest_replicated"));
    CLEAVE_TRY(shares.largestWhole->why, readReplication(whole));
  }
  CLEAVE_TRY(const JsonArray list, fields.array("replicated"));
  std::vector<ReplicatedWork> known;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CLEAVE_TRY(const JsonObject work, list.object(i));
    ReplicatedWork& read = known.emplace_back();
    CLEAVE_TRY(read.pattern, work.text("modules"));
    CLEAVE_TRY(read.count, work.count("count"));
    if (work.has("module_count")) {
      CLEAVE_TRY(read.modules, work.count("module_count"));
      CLEAVE_TRY(read.modulesLike, work.count("modules_like"));
    }
    CLEAVE_TRY(read.flops, work.wide("flops", "a number of FLOPs"));
    CLEAVE_TRY(read.femtoseconds, work.time("femtoseconds"));
    CLEAVE_TRY(const std::string first, work.text("first"));
    const graph::ValueId value = graph.findValue(first);
    if (!value.isValid()) return work.wrong("first", "a value of plan.graph");
    read.first = graph.value(value).producer;
    CLEAVE_TRY(read.ops, work.texts("ops"));
    CLEAVE_TRY(read.why, readReplication(work));
  }
  shares.replicated = std::move(known);
  return {};
}

}  // namespace cleave::plan
