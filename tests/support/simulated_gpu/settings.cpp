#include "tests/support/simulated_gpu/settings.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace simulated_gpu {
namespace {

[[noreturn]] void refuse(std::string_view what) {
  std::fprintf(stderr, "SIMULATED_GPU: \"%.*s\" is not a known setting.\n", static_cast<int>(what.size()), what.data());
  std::_Exit(2);
}

template <class Number>
void assign(Number& to, const std::string& value) {
  to = static_cast<Number>(std::atoll(value.c_str()));
}
void assign(std::optional<Fault>& to, const std::string& value) {
  const auto colon = value.find(':');
  if (colon == std::string::npos) refuse(value);
  to = Fault{std::atoi(value.c_str()), std::atoll(value.c_str() + colon + 1)};
}

bool take(Settings& to, const std::string& name, const std::string& value) {
  const auto one = [&](const char* known, auto& field) {
    if (name != known) return false;
    assign(field, value);
    return true;
  };
  return one("devices", to.devices) || one("memory_mib", to.memoryMib) || one("capability", to.capability) ||
         one("driver", to.driver) || one("runtime", to.runtime) || one("delay_us", to.delayUs) ||
         one("workspace_mib", to.workspaceMib) || one("slow_probe", to.slowProbe) || one("same_gpu", to.sameGpu) ||
         one("mig", to.mig) || one("no_peer_access", to.noPeerAccess) || one("out_of_memory", to.outOfMemory) ||
         one("fail", to.fail) || one("hang", to.hang) || one("nccl_out_of_memory", to.ncclOutOfMemory) ||
         one("slow_teardown", to.slowTeardown);
}

Settings read() {
  Settings result;
  const char* text = std::getenv("SIMULATED_GPU");
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const std::string entry(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const auto equals = entry.find('=');
    if (equals == std::string::npos || !take(result, entry.substr(0, equals), entry.substr(equals + 1))) refuse(entry);
  }
  if (result.mig) result.devices = 1;
  return result;
}

}  // namespace

Settings& settings() {
  static Settings one = read();
  return one;
}

}  // namespace simulated_gpu
