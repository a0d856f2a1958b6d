#pragma once
/// What the running program is made of, as it is found at run time: for `--version`, and for a report of a problem.
/// Neither CUDA nor a device is touched to find out.
#include <string>
#include <vector>

namespace cleave::about {

/// `version`: or, in words, why there is none.
struct Component {
  std::string name, version;
};

/// LibTorch, CUDA and NCCL, then `own` of the program (Qt, ...), the compiler and the C library.
std::vector<Component> components(const std::vector<Component>& own = {});

/// "cleave-cli 0.1.0", and a line "LibTorch: 2.11.0+cu130" for each component.
std::string versionText(const std::string& program, const std::vector<Component>& own = {});

}  // namespace cleave::about
