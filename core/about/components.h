#pragma once
/// Versions of what the running program is made of, found at run time, for `--version` and for problem reports. Finding
/// them touches neither CUDA nor a device.
#include <string>
#include <vector>

namespace cleave::about {

/// `version` is the version, or why it is not known.
struct Component {
  std::string name, version;
};

/// LibTorch, CUDA and NCCL, then the program's `own` components (Qt, ...), the compiler and the C library.
std::vector<Component> components(const std::vector<Component>& own = {});

/// "cleave-cli 0.1.0", and a line "LibTorch: 2.11.0+cu130" for each component.
std::string versionText(const std::string& program, const std::vector<Component>& own = {});

}  // namespace cleave::about
