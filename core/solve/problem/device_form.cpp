#include "solve/problem/device_form.h"

#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

namespace cleave::solve {

Result<DeviceProfile> DeviceForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const JsonObject device, object.object(key));
  return readDeviceProfile(device);
}

std::string DeviceForm::text(const DeviceProfile& profile) { return jsonText(toJson(profile)); }

}  // namespace cleave::solve
