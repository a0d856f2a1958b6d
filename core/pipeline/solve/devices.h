#pragma once
/// Device profiles: bundled ones by name, and others from files.
#include "base/result.h"
#include "solve/problem/device_profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::pipeline {

inline constexpr std::string_view kDefaultDevice = "h100";
/// The bundled profiles (resources/devices/*.json) by name; the first is the default.
Result<std::vector<solve::DeviceProfile>> deviceProfiles();
/// A bundled profile by name, or the profile in a JSON file, a plan or a session by path. BadUsage lists the names.
Result<solve::DeviceProfile> deviceProfile(const std::string& nameOrFile);
/// Returns true if the name of a profile is enough to find it in every installation of this version.
bool isBundled(const solve::DeviceProfile& profile);

}  // namespace cleave::pipeline
