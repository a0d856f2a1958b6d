#include "plan/json_fields.h"

#include "plan/schema.h"

namespace cleave::plan {
namespace {

constexpr std::size_t kMaxShapeDims = 64;

/// Deepest nesting of brackets outside strings; the parser itself has no limit.
int depthOf(std::string_view text) {
  int depth = 0, deepest = 0;
  bool inString = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      if (c == '\\') ++i;
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

std::string clipped(std::string_view text) {
  constexpr std::size_t kMaxBytes = 60;
  return text.size() <= kMaxBytes ? std::string(text) : std::string(text.substr(0, kMaxBytes)) + "...";
}

Result<Json> parseBounded(std::string_view text, std::string_view what) {
  if (text.size() > kMaxPlanBytes) {
    return fail(ErrorCode::BadInput, "The {} has {} bytes; at most {} are accepted.", what, text.size(), kMaxPlanBytes);
  }
  if (const int depth = depthOf(text); depth > kMaxPlanDepth) {
    return fail(ErrorCode::BadInput, "The {} is nested {} deep; at most {} are accepted.", what, depth, kMaxPlanDepth);
  }
  try {
    Json json = Json::parse(text);
    if (!json.is_object()) return fail(ErrorCode::BadInput, "The {} is not a JSON object.", what);
    return json;
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::BadInput, "The {} is not valid JSON: {}.", what, clipped(error.what()));
  }
}

Result<const Json*> Fields::find(const char* key) const {
  if (!m_json->is_object()) return fail(ErrorCode::BadInput, "{} must be an object, not {}.", m_path, m_json->type_name());
  const auto found = m_json->find(key);
  if (found == m_json->end()) return fail(ErrorCode::BadInput, "{}.{} is missing.", m_path, key);
  return &*found;
}

tl::unexpected<Error> Fields::wrong(const char* key, const Json& found, std::string_view expected) const {
  const std::string shown = found.is_primitive() ? clipped(found.dump(-1, ' ', false, Json::error_handler_t::replace)) : found.type_name();
  return fail(ErrorCode::BadInput, "{}.{} must be {}, not {}.", m_path, key, expected, shown);
}

Result<Fields> Fields::object(const char* key) const {
  CLEAVE_TRY(const Json* found, find(key));
  if (!found->is_object()) return wrong(key, *found, "an object");
  return Fields(*found, fmt::format("{}.{}", m_path, key));
}

Result<const Json*> Fields::array(const char* key) const {
  CLEAVE_TRY(const Json* found, find(key));
  if (!found->is_array()) return wrong(key, *found, "a list");
  return found;
}

Result<std::string> Fields::text(const char* key) const {
  CLEAVE_TRY(const Json* found, find(key));
  if (!found->is_string()) return wrong(key, *found, "a text");
  return found->get<std::string>();
}

Result<std::string> Fields::textOrNull(const char* key) const {
  CLEAVE_TRY(const Json* found, find(key));
  if (found->is_null()) return std::string();
  return text(key);
}

Result<bool> Fields::boolean(const char* key) const {
  CLEAVE_TRY(const Json* found, find(key));
  if (!found->is_boolean()) return wrong(key, *found, "true or false");
  return found->get<bool>();
}

Result<std::int64_t> Fields::integer(const char* key, std::int64_t lowest, std::int64_t highest) const {
  CLEAVE_TRY(const Json* found, find(key));
  // An unsigned number above 2^63 would wrap into the range when read as a signed one.
  const bool isHuge = found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  const std::int64_t number = found->is_number_integer() && !isHuge ? found->get<std::int64_t>() : 0;
  if (!found->is_number_integer() || isHuge || number < lowest || number > highest) {
    return wrong(key, *found, fmt::format("an integer from {} to {}", lowest, highest));
  }
  return number;
}

Result<std::uint64_t> Fields::count(const char* key) const {
  CLEAVE_TRY(const Json* found, find(key));
  if (!found->is_number_unsigned()) return wrong(key, *found, "an integer from 0 on");
  return found->get<std::uint64_t>();
}

Result<double> Fields::real(const char* key) const {
  CLEAVE_TRY(const Json* found, find(key));
  if (!found->is_number()) return wrong(key, *found, "a number");
  return found->get<double>();
}

Result<Femtoseconds> Fields::time(const char* key) const {
  constexpr double kMost = 1e35;  // so many femtoseconds fit
  CLEAVE_TRY(const Json* found, find(key));
  if (found->is_number_integer() && !found->is_number_unsigned()) return wrong(key, *found, "a time in femtoseconds");
  if (found->is_number_unsigned()) return Femtoseconds(found->get<std::uint64_t>());
  const double count = found->is_number() ? found->get<double>() : -1;
  if (!(count >= 0 && count <= kMost)) return wrong(key, *found, "a time in femtoseconds");
  return Femtoseconds(static_cast<Wide>(count));
}

Result<graph::Shape> Fields::sizes(const char* key) const {
  CLEAVE_TRY(const Json* found, array(key));
  if (found->size() > kMaxShapeDims) return wrong(key, *found, fmt::format("a list of at most {} sizes", kMaxShapeDims));
  graph::Shape shape;
  for (const Json& size : *found) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxSize)) return wrong(key, *found, "a list of sizes");
    shape.push_back(size.get<std::int64_t>());
  }
  return shape;
}

}  // namespace cleave::plan
