#include "plan/file/replication_json.h"

#include "base/schema_reader.h"
#include "plan/file/replication_schema.h"

namespace cleave::plan {

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
