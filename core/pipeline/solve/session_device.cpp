#include "pipeline/solve/session_device.h"

#include "base/files.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::pipeline {
namespace {

/// The last value of --device-profile in `words`; without it, `name`.
std::string namedDevice(const std::vector<std::string>& words, std::string name) {
  constexpr std::string_view kFlag = "--device-profile";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kFlag && i + 1 < words.size()) name = words[i + 1];
    if (words[i].starts_with(kFlag) && words[i].substr(kFlag.size()).starts_with('='))
      name = words[i].substr(kFlag.size() + 1);
  }
  return name;
}

}  // namespace

Result<void> checkSessionSchema(const JsonObject& root, const fs::path& file) {
  CLEAVE_TRY(const std::string schema, root.text("schema"));
  if (schema == kSessionSchema) return {};
  return fail(ErrorCode::BadInput, "{} has the schema {}, but this version of Cleave reads {}.", file.string(),
              quotedText(schema), kSessionSchema);
}

Result<solve::DeviceProfile> readSessionDevice(const fs::path& file, std::span<const solve::DeviceProfile> bundled) {
  CLEAVE_TRY(const nlohmann::json json, readJsonFile(file, kSessionLimits));
  CLEAVE_TRY(const JsonObject root, JsonObject::of(json, file.string()));
  CLEAVE_TRY_VOID(checkSessionSchema(root, file));
  CLEAVE_TRY(const JsonObject settings, root.object("settings"));
  if (settings.has("device")) {
    CLEAVE_TRY(const JsonObject device, settings.object("device"));
    return solve::readDeviceProfile(device);
  }
  CLEAVE_TRY(const auto words, settings.texts("arguments", kMostSessionArguments));
  const std::string name = namedDevice(words, bundled.empty() ? std::string() : bundled.front().name);
  const auto found = std::ranges::find(bundled, name, &solve::DeviceProfile::name);
  if (found != bundled.end()) return *found;
  return fail(ErrorCode::BadInput,
              "{}: --device-profile is {}, which is not a bundled device. Write its figures in the field `device`.",
              settings.nameOf("arguments"), quotedText(name));
}

}  // namespace cleave::pipeline
