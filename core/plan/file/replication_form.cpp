#include "plan/file/replication_form.h"

#include "base/schema_reader.h"
#include "base/schema_rows.h"
#include "base/schema_writer.h"
#include "plan/file/plan_file.h"
#include "plan/file/reason_schema.h"
#include "plan/text/reason_text.h"

namespace cleave::plan {
namespace {

template <class Reason>
Result<ReplicationReason> readAs(const JsonObject& object) {
  Reason reason;
  schema::Reader v(object);
  fields(v, reason);
  CLEAVE_TRY_VOID(std::move(v).finish());
  return reason;
}

}  // namespace

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

}  // namespace cleave::plan
