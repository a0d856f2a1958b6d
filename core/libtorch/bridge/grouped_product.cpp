#include "libtorch/bridge/grouped_product.h"

#include <ATen/ATen.h>
#include <torch/library.h>

namespace cleave::bridge {
namespace {

at::Tensor dispatched(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offs) {
  auto result = groupedProduct(input, weight, offs);
  TORCH_CHECK(result.has_value(), result.error().message);
  return *std::move(result);
}

}  // namespace

Result<at::Tensor> groupedProduct(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& ends) {
  const at::Tensor known = ends.to(at::kCPU, at::kLong).contiguous();
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (std::int64_t group = 0; group < known.size(0); ++group) {
    const std::int64_t end = known.const_data_ptr<std::int64_t>()[group];
    if (end < begin || end > input.size(0)) {
      return fail(ErrorCode::BadInput, "group {} has rows {} to {}, but the input has {} rows.", group, begin, end,
                  input.size(0));
    }
    if (end > begin) parts.push_back(at::mm(input.slice(0, begin, end), weight[group]));
    begin = end;
  }
  if (begin < input.size(0)) parts.push_back(at::zeros({input.size(0) - begin, weight.size(2)}, input.options()));
  return parts.empty() ? at::zeros({0, weight.size(2)}, input.options()) : at::cat(parts);
}

void registerGroupedProduct() {
  // Lives as long as the process, because the dispatcher may be destroyed first.
  static auto* const library = [] {
    auto* made = new torch::Library(torch::Library::FRAGMENT, "cleave", std::nullopt, __FILE__, __LINE__);
    made->def("grouped_product(Tensor input, Tensor weight, Tensor offs) -> Tensor",
              torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(dispatched)));
    return made;
  }();
  (void)library;
}

}  // namespace cleave::bridge
