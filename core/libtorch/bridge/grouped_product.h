#pragma once
/// Products of groups of rows, each with a matrix of its own (graph::kGroupedProduct): what sorted tokens and their
/// experts' weights are multiplied by. LibTorch inside.
#include "base/result.h"

#include <ATen/core/Tensor.h>

namespace cleave::bridge {

/// As graph::ParallelOp::GroupedProduct says. BadInput where groups end before they begin, or behind the last row.
Result<at::Tensor> groupedProduct(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& ends);

/// Makes LibTorch's dispatcher know `cleave::grouped_product`, once in the process, for programs that are replayed.
/// The third argument has the name of the operator of transformers that it stands for, `offs`. Thread-safe.
void registerGroupedProduct();

}  // namespace cleave::bridge
