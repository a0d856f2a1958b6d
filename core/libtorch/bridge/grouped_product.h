#pragma once
/// Products of groups of rows with one matrix per group (graph::kGroupedProduct), for sorted tokens and their experts'
/// weights. Uses LibTorch.
#include "base/result.h"

#include <ATen/core/Tensor.h>

namespace cleave::bridge {

/// Computes graph::ParallelOp::GroupedProduct. BadInput if a group ends before it begins or after the last row.
Result<at::Tensor> groupedProduct(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& ends);

/// Registers `cleave::grouped_product` with LibTorch's dispatcher, once in the process, for replayed programs. The
/// third argument has the name `offs`, as in transformers' operator. Thread-safe.
void registerGroupedProduct();

}  // namespace cleave::bridge
