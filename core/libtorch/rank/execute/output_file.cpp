#include "libtorch/rank/execute/output_file.h"

#include "formats/safetensors.h"
#include "libtorch/bridge/types.h"

namespace cleave::torch_rank {

Result<void> writeOutputs(const NamedTensors& outputs, const std::filesystem::path& file) {
  std::vector<at::Tensor> kept;
  std::vector<formats::TensorView> views;
  for (const auto& [name, tensor] : outputs) {
    const auto dtype = bridge::toDType(tensor.scalar_type());
    if (!dtype)
      return fail(ErrorCode::BadInput, "The output {} is {}, which safetensors does not support.", name,
                  bridge::describe(tensor));
    kept.push_back(tensor.cpu().contiguous());
    views.push_back({name,
                     {*dtype, tensor.sizes().vec()},
                     {static_cast<const std::byte*>(kept.back().data_ptr()), kept.back().nbytes()}});
  }
  return formats::writeSafetensors(file, views);
}

}  // namespace cleave::torch_rank
