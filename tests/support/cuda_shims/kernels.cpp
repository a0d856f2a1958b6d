#include "kernels.h"

#include "settings.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cleave::shims {
namespace {

using Work = std::function<void()>;

struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, const char*> names;
};
Kernels& kernels() {
  static Kernels* const all = new Kernels;
  return *all;
}
std::atomic<std::int64_t> launches{0}, carriedOut{0};

bool has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

template <class T>
T argument(void** arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}

/// Bytes of the type whose mangled name starts `type`; 0: not supported.
std::size_t sizeOfMangled(std::string_view type) {
  switch (type.front()) {
    case 'a':
    case 'b':
    case 'h': return 1;
    case 's':
    case 't': return 2;
    case 'f':
    case 'i':
    case 'j': return 4;
    case 'd':
    case 'l':
    case 'm': return 8;
    default: return type.starts_with("N3c104Half") || type.starts_with("N3c108BFloat16") ? 2 : 0;
  }
}

/// (int count, FillFunctor{T value}, std::array<char*, 1>)
Work fill(std::string_view name, void** arguments) {
  constexpr std::string_view kFunctor = "FillFunctorI";
  const std::size_t size = sizeOfMangled(name.substr(name.find(kFunctor) + kFunctor.size()));
  if (size == 0) return {};
  const int count = argument<int>(arguments, 0);
  std::array<char, 8> value{};
  std::memcpy(value.data(), arguments[1], size);
  char* const out = argument<char*>(arguments, 2);
  return [=] {
    for (int i = 0; i < count; ++i) std::memcpy(out + static_cast<std::size_t>(i) * size, value.data(), size);
  };
}

/// (int count, CUDAFunctorOnSelf_add{float other, float alpha}, std::array<char*, 2>{out, in})
Work addNumber(void** arguments) {
  const int count = argument<int>(arguments, 0);
  const auto functor = argument<std::array<float, 2>>(arguments, 1);
  const auto data = argument<std::array<float*, 2>>(arguments, 2);
  return [=] {
    for (int i = 0; i < count; ++i) data[0][i] = data[1][i] + functor[0] * functor[1];
  };
}

/// at::native::ReduceOp<float, func_wrapper_t<float, ...>, unsigned, float, 4, 4> of ATen/native/cuda/Reduce.cuh.
struct SumOfFloats {
  template <int kArguments>
  struct Offsets {
    int dimensions;
    struct {
      unsigned divisor, magic, shift;
    } sizes[25];
    unsigned strides[25][kArguments];
  };
  char operation;
  float identity;
  int elementBytes, inputs, outputs;
  int steps[3], inputFactors[3], outputFactors[2], block[3];
  bool isVectorized;
  int outputVector;
  Offsets<1> inputOffsets;
  Offsets<2> outputOffsets;
  const float* source;
  float* target[2];
};

Work sumAll(void** arguments) {
  const auto sum = argument<SumOfFloats>(arguments, 0);
  if (sum.outputs != 1) return {};
  return [source = sum.source, target = sum.target[0], count = sum.inputs] {
    double total = 0;
    for (int i = 0; i < count; ++i) total += source[i];
    *target = static_cast<float>(total);
  };
}

Work workNamed(std::string_view name, void** arguments) {
  if (has(name, "vectorized_elementwise_kernel") || has(name, "unrolled_elementwise_kernel")) {
    if (has(name, "LoadWithCast")) return {};
    if (has(name, "FillFunctorI")) return fill(name, arguments);
    if (has(name, "CUDAFunctorOnSelf_addIfE")) return addNumber(arguments);
  }
  if (has(name, "13reduce_kernelILi512ELi1E") && has(name, "sum_functorIfff")) return sumAll(arguments);
  return {};
}

__attribute__((constructor)) void begin() {
  atEnd([] {
    if (launches > 0)
      logLine("launches count=" + std::to_string(launches) + " carried_out=" + std::to_string(carriedOut));
  });
}

}  // namespace

void registerKernel(const void* function, const char* mangledName) {
  const std::lock_guard lock(kernels().mutex);
  kernels().names[function] = mangledName;
}

std::function<void()> workOf(const void* function, void** arguments) {
  ++launches;
  const char* name = nullptr;
  {
    const std::lock_guard lock(kernels().mutex);
    const auto found = kernels().names.find(function);
    if (found != kernels().names.end()) name = found->second;
  }
  Work work = name ? workNamed(name, arguments) : Work();
  if (work) ++carriedOut;
  return work;
}

}  // namespace cleave::shims
