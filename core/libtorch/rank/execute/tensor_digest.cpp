#include "libtorch/rank/execute/tensor_digest.h"

#include "base/digest.h"
#include "libtorch/bridge/types.h"

namespace cleave::torch_rank {

std::uint64_t digest(const at::Tensor& tensor) {
  const at::Tensor data = tensor.cpu().contiguous();
  Digest digest;
  digest.add(bridge::describe(data));
  digest.add({static_cast<const std::byte*>(data.data_ptr()), data.nbytes()});
  return digest.value();
}

}  // namespace cleave::torch_rank
