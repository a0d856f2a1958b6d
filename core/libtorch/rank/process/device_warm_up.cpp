#include "libtorch/rank/process/device_warm_up.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace cleave::torch_rank {
namespace {

/// A product on autograd's thread.
struct ProductOnEngine final : torch::autograd::Node {
  explicit ProductOnEngine(const at::Tensor& like) { add_input_metadata(like); }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const c10::AutoGradMode off(false);
    const at::Tensor product = gradients[0].mm(gradients[0]);
    at::addmm(product.select(0, 0), product, product);
    return {};
  }
};

}  // namespace

void warmUpLibraries(c10::Device device) {
  constexpr std::int64_t kSide = 16;
  const at::Tensor ones = at::ones({kSide, kSide}, device);
  const c10::AutoGradMode off(false);
  at::addmm(ones.select(0, 0), ones.mm(ones), ones);  // cublasLt adds the bias
  const auto product = std::make_shared<ProductOnEngine>(ones);
  torch::autograd::variable_list gradients{ones};
  torch::autograd::Engine::get_default_engine().execute({torch::autograd::Edge(product, 0)}, gradients,
                                                        /*keep_graph=*/false, /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
  ones.sum().item<float>();  // waits for the device
}

}  // namespace cleave::torch_rank
