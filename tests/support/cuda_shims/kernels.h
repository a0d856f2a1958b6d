#pragma once
/// The few kernels of LibTorch that the shims execute: float32 fills, the addition of a number and the sum of all
/// elements.
///
/// A rank's first all-reduce sums ones, and a probe checks the result of a product: these need right numbers. Kernels
/// are found by their mangled names. Layouts of arguments are those of LibTorch 2.11. All other kernels do nothing.
#include <functional>

namespace cleave::shims {

void registerKernel(const void* function, const char* mangledName);

/// The kernel's work, with its arguments copied. Empty if the kernel does nothing. Counts the launch.
std::function<void()> workOf(const void* function, void** arguments);

}  // namespace cleave::shims
