/// Operators that create, inspect and copy tensors of the simulated GPU without a CPU kernel.
#include "tests/support/simulated_gpu/memory.h"
#include "tests/support/simulated_gpu/stream.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/view_cpu_dispatch.h>
#include <torch/library.h>

namespace simulated_gpu {
namespace {

using Sizes = c10::IntArrayRef;
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(Sizes size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>, std::optional<at::Device>,
                 std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pinned.value_or(false));
  return at::detail::empty_generic(size, &Memory::get(), kKeys, c10::dtype_or_default(dtype), format);
}
at::Tensor emptyStrided(Sizes size, Sizes stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                        std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &Memory::get(), kKeys, c10::dtype_or_default(dtype));
}

at::Tensor asStrided(const at::Tensor& self, Sizes size, Sizes stride, std::optional<std::int64_t> offset) {
  return at::cpu::as_strided(self, size, stride, offset);
}
at::Tensor view(const at::Tensor& self, Sizes size) { return at::cpu::view(self, size); }
at::Tensor reshapeAlias(const at::Tensor& self, Sizes size, Sizes stride) {
  return at::native::_reshape_alias(self, size, stride);
}
at::Tensor unfold(const at::Tensor& self, std::int64_t dim, std::int64_t length, std::int64_t step) {
  if (self.dim() == 0) return at::native::_reshape_alias(self, {1}, {1});
  const auto at = static_cast<std::size_t>(dim < 0 ? dim + self.dim() : dim);
  auto sizes = self.sizes().vec(), strides = self.strides().vec();
  sizes.push_back(length);
  strides.push_back(strides[at]);
  sizes[at] = (sizes[at] - length) / step + 1;
  strides[at] *= step;
  return asStrided(self, sizes, strides, self.storage_offset());
}

const at::Tensor& resize(const at::Tensor& self, Sizes size, std::optional<at::MemoryFormat>) {
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  const auto bytes = static_cast<std::size_t>(self.numel() + self.storage_offset()) * self.element_size();
  if (bytes > self.storage().nbytes()) at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), bytes);
  return self;
}
at::Tensor& setStorage(at::Tensor& self, at::Storage storage, std::int64_t offset, Sizes size, Sizes stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  if (stride.data())
    impl->set_sizes_and_strides(size, stride);
  else
    impl->set_sizes_contiguous(size);
  return self;
}

at::Tensor copyFrom(const at::Tensor& from, const at::Tensor& to, bool isNonBlocking) {
  if (from.numel() == 0) return to;
  const bool isFromDevice = isOnDevice(from), isToDevice = isOnDevice(to);
  const at::Tensor source = isFromDevice ? forKernels(from) : from;
  at::Tensor target = isToDevice ? forKernels(to) : to;
  currentStream().push([source, target]() mutable { target.copy_(source.expand(target.sizes())); }, true);
  if (!(isFromDevice && isToDevice) && !isNonBlocking) currentStream().synchronize();
  return to;
}
at::Tensor copyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copyFrom(from, to, false);
}

at::Scalar localScalar(const at::Tensor& self) {
  currentStream().synchronize();
  return forKernels(self).item();
}

/// PyTorch calls this function on devices with their own convolution.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       Sizes stride, Sizes padding, Sizes dilation, bool isTransposed, Sizes outputPadding,
                       std::int64_t groups) {
  currentStream().synchronize();
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::optional<at::Tensor> added =
      bias && bias->defined() ? std::optional(forKernels(*bias)) : std::optional<at::Tensor>();
  const at::Tensor result = at::convolution(forKernels(input), forKernels(weight), added, stride, padding, dilation,
                                            isTransposed, outputPadding, groups);
  return at::empty_like(result, at::TensorOptions(input.device())).copy_(result);
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolutionBackward(const at::Tensor& gradient, const at::Tensor& input,
                                                                   const at::Tensor& weight, Sizes stride,
                                                                   Sizes padding, Sizes dilation, bool isTransposed,
                                                                   Sizes outputPadding, std::int64_t groups,
                                                                   std::array<bool, 3> wanted) {
  currentStream().synchronize();
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto of = at::convolution_backward(forKernels(gradient), forKernels(input), forKernels(weight),
                                           std::vector<std::int64_t>{weight.size(0)}, stride, padding, dilation,
                                           isTransposed, outputPadding, groups, wanted);
  const auto moved = [&](const at::Tensor& tensor) {
    return tensor.defined() ? at::empty_like(tensor, at::TensorOptions(input.device())).copy_(tensor) : tensor;
  };
  return {moved(std::get<0>(of)), moved(std::get<1>(of)), moved(std::get<2>(of))};
}

}  // namespace
}  // namespace simulated_gpu

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace simulated_gpu;
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", emptyStrided);
  library.impl("as_strided", asStrided);
  library.impl("view", view);
  library.impl("_reshape_alias", reshapeAlias);
  library.impl("unfold", unfold);
  library.impl("resize_", resize);
  library.impl("set_.source_Storage_storage_offset", setStorage);
  library.impl("_copy_from", copyFrom);
  library.impl("_copy_from_and_resize", copyFromAndResize);
  library.impl("_local_scalar_dense", localScalar);
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolutionBackward);
}
