#include "plan/file/replication_json.h"

#include "base/schema_reader.h"
#include "base/schema_writer.h"
#include "plan/file/plan_file.h"
#include "plan/file/replication_schema.h"

#include <algorithm>
#include <array>

namespace cleave::plan {
namespace {

using solve::ChangeKind;

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

template <class Reason>
Result<ReplicationReason> readAs(const JsonObject& object) {
  Reason reason;
  schema::Reader v(object);
  fields(v, reason);
  CLEAVE_TRY_VOID(std::move(v).finish());
  return reason;
}

}  // namespace

std::string_view changeText(ChangeKind kind) { return wordIn(kChangeWords, kind); }
std::optional<ChangeKind> parseChange(std::string_view text) { return valueIn(kChangeWords, text); }
std::string_view fitText(BudgetFit fit) { return wordIn(kFitWords, fit); }
std::optional<BudgetFit> parseFit(std::string_view text) { return valueIn(kFitWords, text); }

void writeReplication(JsonWriter& json, const ReplicationReason& replication) {
  json.beginObject();
  json.key("kind").value(kindOf(replication));
  schema::Writer v(json);
  std::visit([&v](const auto& reason) { fields(v, reason); }, replication);
  json.endObject();
}

Result<ReplicationReason> readReplication(const JsonObject& object) {
  CLEAVE_TRY(const std::string kind, object.text("kind"));
  if (kind == kindOf(Split{})) return Split{};
  if (kind == kindOf(NotKnown{})) return NotKnown{};
  if (kind == kindOf(Cannot{})) return readAs<Cannot>(object);
  if (kind == kindOf(DoesNotPay{})) return readAs<DoesNotPay>(object);
  if (kind == kindOf(NotAskedFor{})) return readAs<NotAskedFor>(object);
  return object.wrong("kind", "split, cannot, does_not_pay, not_asked_for or not_known");
}

Result<ReplicationReason> ReplicationForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const JsonObject standing, object.object(key));
  return readReplication(standing);
}

std::vector<schema::Row> standingRows() {
  schema::Rows v;
  v.object(field("standing", "Why a part is replicated"), [](auto& v) {
    v(field("kind", "`split`, `cannot`, `does_not_pay`, `not_asked_for` or `not_known`"), std::string());
    const ReplicationReason cannot = Cannot(), doesNotPay = DoesNotPay(), notAskedFor = NotAskedFor();
    for (const auto* reason : {&cannot, &doesNotPay, &notAskedFor})
      std::visit([&v](const auto& each) { fields(v, each); }, *reason);
  });
  return std::move(v).take();
}

Result<void> readReplicated(const JsonObject& root, const graph::Graph& graph, Shares& shares) {
  if (!root.has("shares")) return {};
  CLEAVE_TRY(const JsonObject object, root.object("shares"));
  if (shares.largestWhole && object.has("largest_replicated")) {
    CLEAVE_TRY(const JsonObject whole, object.object("largest_replicated"));
    shares.largestWhole->why = NotKnown{};
    if (whole.has("standing")) {
      CLEAVE_TRY(shares.largestWhole->why, ReplicationForm().read(whole, "standing"));
    }
  }
  shares.replicated.clear();
  schema::Reader v(object);
  fields(v, shares, &graph);
  return std::move(v).finish();
}

}  // namespace cleave::plan
