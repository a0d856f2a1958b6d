#pragma once
/// The form of a device profile in traces, plans and sessions (base/schema_forms.h).
#include "base/json.h"
#include "solve/problem/cost_settings.h"

#include <string>
#include <string_view>

namespace cleave::solve {

struct DeviceForm {
  std::string type() const { return "object"; }
  void write(auto& out, const DeviceProfile& profile) const { out.raw(text(profile)); }
  Result<DeviceProfile> read(const JsonObject& object, std::string_view key) const;
  static std::string text(const DeviceProfile& profile);
};

}  // namespace cleave::solve
