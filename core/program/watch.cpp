#include "program/watch.h"

#include "base/json.h"
#include "program/rank_program.h"

#include <nlohmann/json.hpp>

namespace cleave::program {
namespace {

constexpr std::string_view kSchema = "cleave.watch/1";
constexpr JsonLimits kLimits{.bytes = std::int64_t{256} << 20, .depth = 5, .elements = 8'000'000};
constexpr std::size_t kMostDimensions = 64;

Result<WatchedValue> readValue(const JsonObject& fields, int ranks) {
  WatchedValue value;
  CLEAVE_TRY(value.name, fields.text("name"));
  CLEAVE_TRY(value.shape, fields.integers("shape", {0, kMaxSize}, kMostDimensions));
  CLEAVE_TRY(value.placement, readPlacement(fields, "placement", value.shape, ranks));
  CLEAVE_TRY(value.isKept, fields.flag("keep", false));
  return value;
}

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::string toJson(const std::vector<WatchedValue>& values) {
  nlohmann::ordered_json json{{"schema", kSchema}, {"values", nlohmann::ordered_json::array()}};
  for (const WatchedValue& value : values) {
    json["values"].push_back(
        {{"name", value.name}, {"shape", value.shape}, {"placement", value.placement.text()}, {"keep", value.isKept}});
  }
  return jsonText(json, -1);
}

Result<std::vector<WatchedValue>> readWatch(const fs::path& file, int ranks) {
  CLEAVE_TRY(const nlohmann::json json, readJsonFile(file, kLimits));
  CLEAVE_TRY(const JsonObject root, JsonObject::of(json, file.string()));
  CLEAVE_TRY(const std::string schema, root.text("schema"));
  if (schema != kSchema) return root.wrong("schema", fmt::format("\"{}\"", kSchema));
  CLEAVE_TRY(const JsonArray list, root.array("values"));
  std::vector<WatchedValue> values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CLEAVE_TRY(const JsonObject fields, list.object(i));
    CLEAVE_TRY(values.emplace_back(), readValue(fields, ranks));
  }
  return values;
}

float signOf(int projection, int dim, std::int64_t index) {
  const auto stream = mixed(static_cast<std::uint64_t>(projection) << 8 | static_cast<std::uint64_t>(dim));
  return mixed(stream ^ static_cast<std::uint64_t>(index)) >> 63 ? 1.0F : -1.0F;
}

}  // namespace cleave::program
