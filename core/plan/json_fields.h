#pragma once
/// Typed access to the fields of a foreign JSON object; every error names the field's path. Internal to this room.
///
///     Fields fields(json, "plan.layers[3]");
///     CLEAVE_TRY(std::string name, fields.text("name"));  // "plan.layers[3].name is missing."
#include "base/femtoseconds.h"
#include "base/result.h"
#include "graph/types.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace cleave::plan {

using Json = nlohmann::ordered_json;

/// Largest size, count or offset accepted from a file: leaves room for sums of a few.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 60;

/// Parses a text of at most kMaxPlanBytes, nested at most kMaxPlanDepth deep. `what` names it in errors.
Result<Json> parseBounded(std::string_view text, std::string_view what);

/// The start of a foreign text, for error messages.
std::string clipped(std::string_view text);

class Fields {
 public:
  Fields(const Json& json, std::string path) : m_json(&json), m_path(std::move(path)) {}
  const Json& json() const { return *m_json; }
  const std::string& path() const { return m_path; }

  Result<Fields> object(const char* key) const;
  Result<const Json*> array(const char* key) const;
  Result<std::string> text(const char* key) const;
  Result<std::string> textOrNull(const char* key) const;  ///< "" for null
  Result<bool> boolean(const char* key) const;
  Result<std::int64_t> integer(const char* key, std::int64_t lowest, std::int64_t highest) const;
  Result<std::uint64_t> count(const char* key) const;  ///< any unsigned 64-bit number
  Result<double> real(const char* key) const;
  Result<Femtoseconds> time(const char* key) const;  ///< not negative
  Result<graph::Shape> sizes(const char* key) const;

 private:
  Result<const Json*> find(const char* key) const;
  tl::unexpected<Error> wrong(const char* key, const Json& found, std::string_view expected) const;
  const Json* m_json;
  std::string m_path;
};

}  // namespace cleave::plan
