#include "libtorch/capture/dropped_attention.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <cmath>

namespace cleave::torch_capture {
namespace {

constexpr std::size_t kMask = 3, kChance = 4, kIsCausal = 5, kScale = 6, kGrouped = 7;
constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Repeats each head for the queries that read it.
at::Tensor repeated(const at::Tensor& heads, std::int64_t wanted) {
  if (heads.dim() < 3 || heads.size(-3) == wanted) return heads;
  std::vector<std::int64_t> each = heads.sizes().vec(), all = each;
  each.insert(each.end() - 2, wanted / heads.size(-3));
  all[all.size() - 3] = wanted;
  return heads.unsqueeze(-3).expand(each).reshape(all);
}

}  // namespace

bool isDroppedAttention(std::string_view op, ShapeArguments args) {
  return op == "aten::scaled_dot_product_attention" && args[kChance].toScalar().toDouble() > 0;
}

at::Tensor droppedAttention(ShapeArguments args, const std::function<at::Tensor(const at::Tensor&, double)>& drop) {
  const at::Tensor query = args[0].toTensor();
  at::Tensor key = args[1].toTensor(), value = args[2].toTensor();
  if (args[kGrouped].toBool()) {
    key = repeated(key, query.size(-3));
    value = repeated(value, query.size(-3));
  }
  const double scale =
      args[kScale].isNone() ? 1 / std::sqrt(static_cast<double>(query.size(-1))) : args[kScale].toScalar().toDouble();
  at::Tensor scores = at::matmul(query, key.transpose(-2, -1)) * scale;
  if (args[kIsCausal].toBool()) {
    const at::Tensor isBefore = at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(isBefore.logical_not(), kNever);
  }
  if (!args[kMask].isNone()) {
    const at::Tensor& mask = args[kMask].toTensor();
    scores = mask.scalar_type() == at::kBool ? scores.masked_fill(mask.logical_not(), kNever) : scores + mask;
  }
  return at::matmul(drop(at::softmax(scores, -1), args[kChance].toScalar().toDouble()), value);
}

}  // namespace cleave::torch_capture
