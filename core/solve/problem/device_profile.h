#pragma once
/// Reads and writes device profiles, schema "cleave.device/1". The input is untrusted, so its size is limited and every
/// field is checked.
///
///     {"schema": "cleave.device/1", "name": "h100", "title": "...", "memory_bytes": 85899345920,
///      "flops_per_second": {"half": 9.89e14, "float32": 6.7e13, "float64": 3.4e13},
///      "memory_bytes_per_second": 3.35e12, "link": {"bytes_per_second": 4.5e11, "latency_seconds": 1e-5},
///      "sources": [{"what": "peak rates", "address": "https://..."}]}
#include "base/json.h"
#include "solve/problem/cost_settings.h"

#include <string_view>

namespace cleave::solve {

inline constexpr std::string_view kDeviceSchema = "cleave.device/1";

/// BadInput names the field, its value and its range.
Result<DeviceProfile> parseDeviceProfile(std::string_view text);
/// The same for a part of a document, such as a plan or a trace.
Result<DeviceProfile> readDeviceProfile(const JsonObject& fields);
nlohmann::ordered_json toJson(const DeviceProfile& profile);

}  // namespace cleave::solve
