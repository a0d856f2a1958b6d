#pragma once
/// The device profile in a session file (pipeline/session/session_file.h has the whole format).
///
/// This is a unit of its own because the flags that a session stores may name a file to read a device from.
#include "base/json.h"
#include "base/result.h"
#include "solve/problem/device_profile.h"

#include <span>
#include <string_view>

namespace cleave::pipeline {

inline constexpr std::string_view kSessionSchema = "cleave.session/1";
inline constexpr JsonLimits kSessionLimits{.bytes = 16 << 20, .depth = 16, .elements = 200'000};
inline constexpr std::size_t kMostSessionArguments = 20'000;

/// BadInput if `root` has another schema; `file` is for the message.
Result<void> checkSessionSchema(const JsonObject& root, const fs::path& file);
/// The profile in the session's settings: the one in `device`, or the bundled one that the arguments name. `bundled`:
/// the default first.
Result<solve::DeviceProfile> readSessionDevice(const fs::path& file, std::span<const solve::DeviceProfile> bundled);

}  // namespace cleave::pipeline
