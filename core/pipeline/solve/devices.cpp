#include "pipeline/solve/devices.h"

#include "base/files.h"
#include "pipeline/solve/session_device.h"
#include "pipeline/source/plan_file.h"
#include "pipeline/source/resources.h"
#include "pipeline/source/source.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace cleave::pipeline {
namespace {

constexpr std::int64_t kMaxProfileBytes = 1 << 20;

Result<solve::DeviceProfile> readOwnProfile(const fs::path& file) {
  CLEAVE_TRY(const std::string text, readTextFile(file, kMaxProfileBytes));
  return withContext(solve::parseDeviceProfile(text), file.string());
}

/// The profile in a file: a JSON profile, a plan or a session.
Result<solve::DeviceProfile> readProfile(const fs::path& file, const std::vector<solve::DeviceProfile>& bundled) {
  const auto source = recognise(file.string());
  if (source && source->kind == SourceKind::Plan) {
    CLEAVE_TRY(const auto plan, readUnalteredPlan(file));
    return plan->spec.cost.profile;
  }
  if (source && source->kind == SourceKind::Session) {
    return readSessionDevice(file, bundled);
  }
  return readOwnProfile(file);
}

std::string namesOf(const std::vector<solve::DeviceProfile>& profiles) {
  std::vector<std::string> names;
  for (const auto& profile : profiles) names.push_back(profile.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<std::vector<solve::DeviceProfile>> deviceProfiles() {
  const fs::path folder = resourcesFolder() / "devices";
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  if (error)
    return fail(ErrorCode::Environment, "The device profiles in {} cannot be listed: {}.", folder.string(),
                error.message());
  std::sort(files.begin(), files.end());
  std::vector<solve::DeviceProfile> profiles;
  for (const fs::path& file : files) {
    CLEAVE_TRY(auto profile, readOwnProfile(file));
    profiles.push_back(std::move(profile));
  }
  std::stable_partition(profiles.begin(), profiles.end(),
                        [](const auto& profile) { return profile.name == kDefaultDevice; });
  return profiles;
}

Result<solve::DeviceProfile> deviceProfile(const std::string& nameOrFile) {
  CLEAVE_TRY(const auto profiles, deviceProfiles());
  for (const auto& profile : profiles) {
    if (profile.name == nameOrFile) return profile;
  }
  std::error_code ignored;
  if (fs::is_regular_file(nameOrFile, ignored)) return readProfile(nameOrFile, profiles);
  if (fs::exists(nameOrFile, ignored))
    return fail(ErrorCode::BadUsage, "{} is not a regular file. Use a JSON profile, or one of {}.", nameOrFile,
                namesOf(profiles));
  return fail(ErrorCode::BadUsage,
              "There is no device profile \"{}\". Use one of {}, or the path of a JSON profile or a plan.", nameOrFile,
              namesOf(profiles));
}

bool isBundled(const solve::DeviceProfile& profile) {
  const auto profiles = deviceProfiles();
  return profiles && std::find(profiles->begin(), profiles->end(), profile) != profiles->end();
}

}  // namespace cleave::pipeline
