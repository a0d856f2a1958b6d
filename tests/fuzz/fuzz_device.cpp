// Device profiles. An accepted profile has rates that costs can be divided by.
#include "solve/problem/device_profile.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cleave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto profile = solve::parseDeviceProfile({reinterpret_cast<const char*>(data), size});
  wasAccepted = profile.has_value();
  if (!profile) {
    CLEAVE_CHECK(!profile.error().message.empty(), "an error says something");
    return 0;
  }
  CLEAVE_CHECK(!profile->name.empty() && profile->memoryBytes > 0, "a name and memory");
  for (const double rate : {profile->halfFlopsPerSecond, profile->floatFlopsPerSecond, profile->doubleFlopsPerSecond,
                            profile->memoryBytesPerSecond, profile->linkBytesPerSecond}) {
    CLEAVE_CHECK(rate > 0 && rate < 1e30, "a rate to divide by");
  }
  CLEAVE_CHECK(profile->linkLatencySeconds >= 0, "a latency");
  return 0;
}
