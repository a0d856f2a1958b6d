#include "libtorch/capture/shape_functions.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/result_type_native.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

namespace cleave::torch_capture {
namespace {

using at::Tensor;
using Sizes = c10::SmallVector<std::int64_t, 6>;

Sizes sizesOf(const Tensor& tensor) { return {tensor.sizes().begin(), tensor.sizes().end()}; }
Tensor empty(at::IntArrayRef sizes, at::ScalarType dtype) { return at::detail::empty_meta(sizes, dtype); }
Tensor emptyLike(const Tensor& like) { return empty(like.sizes(), like.scalar_type()); }

std::int64_t dimension(std::int64_t dim, const Tensor& tensor) { return at::maybe_wrap_dim(dim, tensor.dim()); }

/// linear(input [..., in], weight [out, in] or [in], bias?)
MetaTensors linear(ShapeArguments args) {
  const Tensor& input = args[0].toTensor();
  const Tensor& weight = args[1].toTensor();
  TORCH_CHECK(input.dim() >= 1 && (weight.dim() == 1 || weight.dim() == 2),
              "linear needs an input of at least 1 dimension and a weight of 1 or 2, but they have ", input.dim(),
              " and ", weight.dim());
  TORCH_CHECK(input.size(-1) == weight.size(-1), "linear's input ", input.sizes(), " does not fit its weight ",
              weight.sizes(), ": their last dimensions differ");
  Sizes sizes = sizesOf(input);
  sizes.pop_back();
  if (weight.dim() == 2) sizes.push_back(weight.size(0));
  if (!args[2].isNone()) {
    const Tensor& bias = args[2].toTensor();
    TORCH_CHECK(at::is_expandable_to(bias.sizes(), sizes), "linear's bias ", bias.sizes(), " does not fit its result ",
                at::IntArrayRef(sizes));
  }
  return {empty(sizes, input.scalar_type())};
}

/// embedding(weight [vocab, hidden], indices)
MetaTensors embedding(ShapeArguments args) {
  const Tensor& weight = args[0].toTensor();
  const Tensor& indices = args[1].toTensor();
  TORCH_CHECK(weight.dim() == 2, "embedding needs a weight of 2 dimensions, but it has ", weight.dim());
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
              "embedding needs integer indices, but they are ", indices.scalar_type());
  Sizes sizes = sizesOf(indices);
  sizes.push_back(weight.size(1));
  return {empty(sizes, weight.scalar_type())};
}

/// The fused kernels store [batch, heads, sequence, head] as [batch, sequence, heads, head], so that merging heads is
/// free.
Tensor emptyWithSequenceOutside(at::IntArrayRef sizes, at::ScalarType dtype) {
  if (sizes.size() != 4) return empty(sizes, dtype);
  const std::int64_t heads = sizes[1], sequence = sizes[2], head = sizes[3];
  return at::detail::empty_strided_meta(sizes, {sequence * heads * head, head, heads * head, 1}, dtype);
}

/// scaled_dot_product_attention(query [..., L, E], key [..., S, E], value [..., S, Ev], mask?, ...)
MetaTensors attention(ShapeArguments args) {
  const Tensor& query = args[0].toTensor();
  const Tensor& key = args[1].toTensor();
  const Tensor& value = args[2].toTensor();
  TORCH_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
              "attention needs query, key and value of at least 2 dimensions");
  TORCH_CHECK(query.size(-1) == key.size(-1) && key.size(-2) == value.size(-2), "attention's query ", query.sizes(),
              ", key ", key.sizes(), " and value ", value.sizes(), " do not fit");
  const bool isGrouped = args.size() > 7 && args[7].isBool() && args[7].toBool();
  Sizes sizes = sizesOf(query);
  if (!isGrouped) {
    const auto batchOf = [](const Tensor& tensor) { return tensor.sizes().slice(0, tensor.dim() - 2); };
    const auto batch = at::infer_size(at::infer_size(batchOf(query), batchOf(key)), batchOf(value));
    sizes.assign(batch.begin(), batch.end());
    sizes.push_back(query.size(-2));
    sizes.push_back(query.size(-1));
  }
  sizes.back() = value.size(-1);
  if (!args[3].isNone()) {
    Sizes scores = sizes;
    scores.back() = key.size(-2);
    TORCH_CHECK(at::is_expandable_to(args[3].toTensor().sizes(), scores), "attention's mask ",
                args[3].toTensor().sizes(), " does not fit its scores ", at::IntArrayRef(scores));
  }
  return {emptyWithSequenceOutside(sizes, query.scalar_type())};
}

/// cross_entropy_loss(logits [N, C, d...] or [C], target (indices without C, or probabilities like logits), weight?,
/// reduction, ...)
MetaTensors crossEntropy(ShapeArguments args) {
  const Tensor& logits = args[0].toTensor();
  const Tensor& target = args[1].toTensor();
  TORCH_CHECK(logits.dim() >= 1, "cross entropy needs logits of at least 1 dimension");
  Sizes expected = sizesOf(logits);
  expected.erase(expected.begin() + (logits.dim() == 1 ? 0 : 1));
  const bool isProbabilities = target.sizes() == logits.sizes() && at::isFloatingType(target.scalar_type());
  TORCH_CHECK(isProbabilities || target.sizes() == at::IntArrayRef(expected), "cross entropy's target ", target.sizes(),
              " does not fit its logits ", logits.sizes());
  if (args[3].toInt() == at::Reduction::None) return {empty(expected, logits.scalar_type())};
  return {empty({}, logits.scalar_type())};
}

/// Element-wise: keeps the strides if they are dense.
MetaTensors sameAsFirst(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  if (!self.is_non_overlapping_and_dense()) return {emptyLike(self)};
  return {at::detail::empty_strided_meta(self.sizes(), self.strides(), self.scalar_type())};
}

/// The same, but integers become floats.
MetaTensors sameAsFirstFloat(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  if (!at::isIntegralType(self.scalar_type(), /*includeBool=*/true)) return sameAsFirst(args);
  return {empty(self.sizes(), at::kFloat)};
}

MetaTensors sameAsFirstBool(ShapeArguments args) { return {empty(args[0].toTensor().sizes(), at::kBool)}; }

MetaTensors broadcastPromoted(ShapeArguments args) {
  const Tensor &first = args[0].toTensor(), &second = args[1].toTensor();
  return {empty(at::infer_size(first.sizes(), second.sizes()), at::native::result_type(first, second))};
}

/// Results: output and buffer.
MetaTensors logSigmoid(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  return {emptyLike(self), emptyLike(self)};
}

MetaTensors broadcastBool(ShapeArguments args) {
  return {empty(at::infer_size(args[0].toTensor().sizes(), args[1].toTensor().sizes()), at::kBool)};
}

MetaTensors where(ShapeArguments args) {
  const Tensor& condition = args[0].toTensor();
  const Tensor& first = args[1].toTensor();
  const Tensor& second = args[2].toTensor();
  const auto sizes = at::infer_size(at::infer_size(condition.sizes(), first.sizes()), second.sizes());
  return {empty(sizes, at::native::result_type(first, second))};
}

/// index_select(self, dim, index [n] or [])
MetaTensors indexSelect(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  const Tensor& index = args[2].toTensor();
  TORCH_CHECK(index.dim() <= 1, "index_select needs an index of at most 1 dimension, but it has ", index.dim());
  Sizes sizes = sizesOf(self);
  if (!sizes.empty()) sizes[static_cast<std::size_t>(dimension(args[1].toInt(), self))] = index.numel();
  return {empty(sizes, self.scalar_type())};
}

MetaTensors flip(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  for (const std::int64_t dim : args[1].toIntVector()) dimension(dim, self);
  return {emptyLike(self)};
}

/// prod(self, *, dtype) over all elements. Integers give 64 bits.
MetaTensors productOfAll(ShapeArguments args) {
  const at::ScalarType self = args[0].toTensor().scalar_type();
  const at::ScalarType promoted = at::isIntegralType(self, /*includeBool=*/true) ? at::kLong : self;
  return {empty({}, args[1].isNone() ? promoted : static_cast<at::ScalarType>(args[1].toInt()))};
}

Sizes reducedSizes(const Tensor& self, const c10::IValue& dims, bool keepsDim) {
  std::vector<bool> isReduced(static_cast<std::size_t>(self.dim()), dims.isNone() || dims.toIntVector().empty());
  if (!dims.isNone()) {
    for (const std::int64_t dim : dims.toIntVector()) {
      if (self.dim() > 0) isReduced[static_cast<std::size_t>(dimension(dim, self))] = true;
    }
  }
  Sizes sizes;
  for (std::size_t i = 0; i < isReduced.size(); ++i) {
    if (!isReduced[i])
      sizes.push_back(self.size(static_cast<std::int64_t>(i)));
    else if (keepsDim)
      sizes.push_back(1);
  }
  return sizes;
}

/// var.correction, std.correction(self, dim?, *, correction?, keepdim)
MetaTensors variance(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  return {empty(reducedSizes(self, args[1], args[3].toBool()), self.scalar_type())};
}

/// logsumexp(self, dim, keepdim)
MetaTensors logSumExp(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  const at::ScalarType dtype =
      at::isIntegralType(self.scalar_type(), /*includeBool=*/true) ? at::kFloat : self.scalar_type();
  return {empty(reducedSizes(self, args[1], args[2].toBool()), dtype)};
}

/// max(self), min(self) over all elements.
MetaTensors extremeOfAll(ShapeArguments args) { return {empty({}, args[0].toTensor().scalar_type())}; }

/// convolution(input [N, Cin, d...], weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
MetaTensors convolution(ShapeArguments args) {
  const Tensor& input = args[0].toTensor();
  const Tensor& weight = args[1].toTensor();
  TORCH_CHECK(input.dim() >= 3 && weight.dim() == input.dim(), "convolution of an input ", input.sizes(),
              " with a weight ", weight.sizes(), " is not defined");
  const auto at = [&](std::size_t index, std::size_t dim) {
    const auto list = args[index].toIntVector();
    TORCH_CHECK(!list.empty(), "convolution's lists may not be empty");
    return list.size() == 1 ? list[0] : list.at(dim);
  };
  const bool isTransposed = args[6].toBool();
  const std::int64_t groups = args[8].toInt();
  TORCH_CHECK(groups > 0 && input.size(1) == (isTransposed ? weight.size(0) : weight.size(1) * groups),
              "convolution's input ", input.sizes(), " does not fit its weight ", weight.sizes(), " in ", groups,
              " groups");
  Sizes sizes{input.size(0), isTransposed ? weight.size(1) * groups : weight.size(0)};
  for (std::size_t dim = 0; dim + 2 < static_cast<std::size_t>(input.dim()); ++dim) {
    const std::int64_t length = input.size(static_cast<std::int64_t>(dim) + 2);
    const std::int64_t reach = at(5, dim) * (weight.size(static_cast<std::int64_t>(dim) + 2) - 1);
    TORCH_CHECK(at(3, dim) > 0, "convolution's stride must be positive");
    if (isTransposed)
      sizes.push_back((length - 1) * at(3, dim) - 2 * at(4, dim) + reach + at(7, dim) + 1);
    else
      sizes.push_back((length + 2 * at(4, dim) - reach - 1) / at(3, dim) + 1);
  }
  return {empty(sizes, input.scalar_type())};
}

/// randperm(n, dtype?, layout?, device?, pin_memory?)
MetaTensors permutation(ShapeArguments args) {
  return {empty({args[0].toInt()}, args[1].isNone() ? at::kLong : args[1].toScalarType())};
}

/// native_dropout(input, p, train?) → (output, mask)
MetaTensors dropout(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  return {emptyLike(self), empty(self.sizes(), at::kBool)};
}

/// native_layer_norm(input, normalized_shape, weight?, bias?, eps) → (output, mean, rstd); the latter keep the
/// normalized dimensions as 1
MetaTensors layerNorm(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  const auto normalized = args[1].toIntVector();
  TORCH_CHECK(self.dim() >= static_cast<std::int64_t>(normalized.size()) &&
                  std::ranges::equal(normalized, self.sizes().slice(self.dim() - normalized.size())),
              "layer norm over ", normalized, " does not fit an input of shape ", self.sizes());
  Sizes statistics = sizesOf(self);
  std::fill(statistics.end() - static_cast<std::ptrdiff_t>(normalized.size()), statistics.end(), 1);
  return {emptyLike(self), empty(statistics, self.scalar_type()), empty(statistics, self.scalar_type())};
}

/// native_group_norm(input, weight?, bias?, N, C, HxW, group, eps) → (output, mean, rstd)
MetaTensors groupNorm(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  const Sizes statistics{args[3].toInt(), args[6].toInt()};
  return {emptyLike(self), empty(statistics, self.scalar_type()), empty(statistics, self.scalar_type())};
}

/// Pooling to a given size of the last dimensions.
MetaTensors adaptivePool(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  const auto output = args[1].toIntVector();
  TORCH_CHECK(self.dim() > static_cast<std::int64_t>(output.size()), "pooling to ", output,
              " does not fit an input of shape ", self.sizes());
  Sizes sizes = sizesOf(self);
  std::ranges::copy(output, sizes.end() - static_cast<std::ptrdiff_t>(output.size()));
  return {empty(sizes, self.scalar_type())};
}

/// reflection_pad2d(self, [left, right, top, bottom])
MetaTensors reflectionPad2d(ShapeArguments args) {
  const Tensor& self = args[0].toTensor();
  const auto padding = args[1].toIntVector();
  TORCH_CHECK(self.dim() >= 3 && padding.size() == 4, "padding ", padding, " does not fit an input of shape ",
              self.sizes());
  Sizes sizes = sizesOf(self);
  sizes[sizes.size() - 1] += padding[0] + padding[1];
  sizes[sizes.size() - 2] += padding[2] + padding[3];
  return {empty(sizes, self.scalar_type())};
}

/// _cdist_forward(x1 [..., P, M], x2 [..., R, M], ...) → [..., P, R]
MetaTensors pairwiseDistance(ShapeArguments args) {
  const Tensor& first = args[0].toTensor();
  const Tensor& second = args[1].toTensor();
  TORCH_CHECK(first.dim() >= 2 && second.dim() >= 2 && first.size(-1) == second.size(-1), "distances between ",
              first.sizes(), " and ", second.sizes(), " are not defined");
  const auto batch = at::infer_size(first.sizes().slice(0, first.dim() - 2), second.sizes().slice(0, second.dim() - 2));
  Sizes sizes(batch.begin(), batch.end());
  sizes.push_back(first.size(-2));
  sizes.push_back(second.size(-2));
  return {empty(sizes, first.scalar_type())};
}

/// embedding_dense_backward(grad [..., hidden], indices, rows, ...) → [rows, hidden]
MetaTensors embeddingBackward(ShapeArguments args) {
  const Tensor& gradient = args[0].toTensor();
  return {empty({args[2].toInt(), gradient.size(-1)}, gradient.scalar_type())};
}

/// input [rows, in], weight [groups, in, out], offs [groups], ... → [rows, out]
MetaTensors groupedProduct(ShapeArguments args) {
  const Tensor& input = args[0].toTensor();
  const Tensor& weight = args[1].toTensor();
  TORCH_CHECK(input.dim() == 2 && weight.dim() == 3 && input.size(1) == weight.size(1), "grouped products of ",
              input.sizes(), " and ", weight.sizes(), " are not supported");
  return {empty({input.size(0), weight.size(2)}, input.scalar_type())};
}

MetaTensors dependsOnValues(ShapeArguments) {
  TORCH_CHECK(false, "its result depends on the tensor's values, which are unknown during planning");
}

struct Entry {
  const char* op;
  ShapeFunction function;
};

constexpr Entry kLeaves[] = {
    {"aten::dropout", sameAsFirst},
    {"aten::linear", linear},
    {"aten::embedding", embedding},
    {"aten::scaled_dot_product_attention", attention},
    {"aten::cross_entropy_loss", crossEntropy},
    {"cleave::moe_experts", sameAsFirst},
    {"cleave::grouped_product", groupedProduct},
    {"aten::_grouped_mm", groupedProduct},
};

constexpr Entry kMetaKernels[] = {
    {"aten::relu", sameAsFirst},
    {"aten::abs", sameAsFirst},
    {"aten::roll", sameAsFirst},
    {"aten::isinf", sameAsFirstBool},
    {"aten::logsumexp", logSumExp},
    {"aten::max", extremeOfAll},
    {"aten::min", extremeOfAll},
    {"aten::convolution", convolution},
    {"aten::std.correction", variance},
    {"aten::hardtanh", sameAsFirst},
    {"aten::hardswish", sameAsFirst},
    {"aten::nan_to_num", sameAsFirst},
    {"aten::log_sigmoid_forward", logSigmoid},
    {"aten::floor_divide", broadcastPromoted},
    {"aten::rsub.Tensor", broadcastPromoted},
    {"aten::logit", sameAsFirstFloat},
    {"aten::isnan", sameAsFirstBool},
    {"aten::logical_and", broadcastBool},
    {"aten::logical_or", broadcastBool},
    {"aten::logical_xor", broadcastBool},
    {"aten::logical_not", sameAsFirstBool},
    {"aten::where.self", where},
    {"aten::index_select", indexSelect},
    {"aten::flip", flip},
    {"aten::prod", productOfAll},
    {"aten::var.correction", variance},
    {"aten::native_dropout", dropout},
    {"aten::randperm", permutation},
    {"aten::native_layer_norm", layerNorm},
    {"aten::native_group_norm", groupNorm},
    {"aten::_adaptive_avg_pool2d", adaptivePool},
    {"aten::_adaptive_avg_pool3d", adaptivePool},
    {"aten::reflection_pad2d", reflectionPad2d},
    {"aten::_cdist_forward", pairwiseDistance},
    {"aten::embedding_dense_backward", embeddingBackward},
    {"aten::nonzero", dependsOnValues},
    {"aten::_local_scalar_dense", dependsOnValues},
};

void runMetaKernel(ShapeFunction function, const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  MetaTensors results = function(torch::jit::last(*stack, count));
  torch::jit::drop(*stack, count);
  for (Tensor& result : results) stack->emplace_back(std::move(result));
}

/// One boxed kernel per entry, because the dispatcher requires a stateless function.
template <std::size_t index>
void boxedKernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  runMetaKernel(kMetaKernels[index].function, op, stack);
}

template <std::size_t... indices>
void registerAll(torch::Library& library, std::index_sequence<indices...>) {
  (library.impl(kMetaKernels[indices].op, torch::CppFunction::makeFromBoxedFunction<&boxedKernel<indices>>()), ...);
}

}  // namespace

ShapeFunction leafShapeFunction(std::string_view op) {
  const auto* entry = std::ranges::find(kLeaves, op, [](const Entry& row) { return std::string_view(row.op); });
  return entry == std::end(kLeaves) ? nullptr : entry->function;
}

void registerMetaKernels() {
  // Lives as long as the process, because the dispatcher may be destroyed first.
  static torch::Library* const library = [] {
    auto* made = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
    registerAll(*made, std::make_index_sequence<std::size(kMetaKernels)>());
    return made;
  }();
  (void)library;
}

std::vector<std::string> registeredMetaKernels() {
  std::vector<std::string> names;
  for (const Entry& entry : kMetaKernels) names.emplace_back(entry.op);
  return names;
}

}  // namespace cleave::torch_capture
