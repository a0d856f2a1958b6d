#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cleave::solve {
namespace {

constexpr JsonLimits kProfileLimits{.bytes = 1 << 20, .depth = 8, .elements = 10'000};
constexpr std::int64_t kMostMemory = std::int64_t{1} << 60;
constexpr std::size_t kMaxTextBytes = 1000, kMaxSources = 100;

struct Range {
  double lowest, highest;
};
/// These ranges include any machine and exclude values with which times of large models overflow.
constexpr Range kRate{1e6, 1e21};
constexpr Range kBandwidth{1e3, 1e18};
constexpr Range kLatency{0, 10};

Result<double> number(const JsonObject& fields, const char* key, Range range) {
  CLEAVE_TRY(const double value, fields.number(key));
  if (std::isfinite(value) && range.lowest <= value && value <= range.highest) return value;
  return fail(ErrorCode::BadInput, "{} is {}, but must be between {} and {}.", fields.nameOf(key), value, range.lowest,
              range.highest);
}

Result<std::string> line(const JsonObject& fields, const char* key) {
  CLEAVE_TRY(std::string value, fields.text(key));
  const bool isLine = std::none_of(value.begin(), value.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!value.empty() && value.size() <= kMaxTextBytes && isLine) return value;
  return fail(ErrorCode::BadInput, "{} is {}, but must be one line of 1 to {} bytes.", fields.nameOf(key),
              isLine ? quotedText(value) : "a text with control characters", kMaxTextBytes);
}

/// A name that users can type after --device-profile and that is not a path.
Result<std::string> profileName(const JsonObject& fields) {
  CLEAVE_TRY(std::string name, line(fields, "name"));
  const bool isPlain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  if (isPlain) return name;
  return fail(ErrorCode::BadInput, "{} is {}, but may only have lowercase letters, digits, \"-\", \"_\" and \".\".",
              fields.nameOf("name"), quotedText(name));
}

Result<std::vector<DeviceProfile::Citation>> readSources(const JsonObject& fields) {
  CLEAVE_TRY(const JsonArray list, fields.array("sources"));
  if (list.size() > kMaxSources) return fields.wrong("sources", fmt::format("a list of at most {} items", kMaxSources));
  std::vector<DeviceProfile::Citation> sources;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CLEAVE_TRY(const JsonObject source, list.object(i));
    CLEAVE_TRY(std::string what, line(source, "what"));
    CLEAVE_TRY(std::string address, line(source, "address"));
    sources.push_back({std::move(what), std::move(address)});
  }
  return sources;
}

}  // namespace

Result<DeviceProfile> parseDeviceProfile(std::string_view text) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(text, "The device profile", kProfileLimits));
  CLEAVE_TRY(const JsonObject fields, JsonObject::at(json, "profile"));
  return readDeviceProfile(fields);
}

Result<DeviceProfile> readDeviceProfile(const JsonObject& fields) {
  CLEAVE_TRY(const std::string schema, fields.text("schema"));
  if (schema != kDeviceSchema) {
    return fail(ErrorCode::BadInput, "{} is {}, but this program reads \"{}\".", fields.nameOf("schema"),
                quotedText(schema), kDeviceSchema);
  }
  DeviceProfile profile;
  CLEAVE_TRY(profile.name, profileName(fields));
  CLEAVE_TRY(profile.title, line(fields, "title"));
  CLEAVE_TRY(profile.memoryBytes, fields.integer("memory_bytes", {1, kMostMemory}));
  CLEAVE_TRY(const JsonObject flops, fields.object("flops_per_second"));
  CLEAVE_TRY(profile.halfFlopsPerSecond, number(flops, "half", kRate));
  CLEAVE_TRY(profile.floatFlopsPerSecond, number(flops, "float32", kRate));
  CLEAVE_TRY(profile.doubleFlopsPerSecond, number(flops, "float64", kRate));
  CLEAVE_TRY(profile.memoryBytesPerSecond, number(fields, "memory_bytes_per_second", kBandwidth));
  CLEAVE_TRY(const JsonObject link, fields.object("link"));
  CLEAVE_TRY(profile.linkBytesPerSecond, number(link, "bytes_per_second", kBandwidth));
  CLEAVE_TRY(profile.linkLatencySeconds, number(link, "latency_seconds", kLatency));
  CLEAVE_TRY(profile.sources, readSources(fields));
  return profile;
}

nlohmann::ordered_json toJson(const DeviceProfile& profile) {
  nlohmann::ordered_json json{
      {"schema", kDeviceSchema},
      {"name", profile.name},
      {"title", profile.title},
      {"memory_bytes", profile.memoryBytes},
      {"flops_per_second",
       {{"half", profile.halfFlopsPerSecond},
        {"float32", profile.floatFlopsPerSecond},
        {"float64", profile.doubleFlopsPerSecond}}},
      {"memory_bytes_per_second", profile.memoryBytesPerSecond},
      {"link", {{"bytes_per_second", profile.linkBytesPerSecond}, {"latency_seconds", profile.linkLatencySeconds}}},
      {"sources", nlohmann::ordered_json::array()}};
  for (const auto& source : profile.sources)
    json["sources"].push_back({{"what", source.what}, {"address", source.address}});
  return json;
}

}  // namespace cleave::solve
