#pragma once
/// Shapes without values: result shapes for the leaves, and meta kernels for operators that LibTorch has none for.
///
/// A shape function gets an operator's arguments in schema order, tensors on the meta device, and answers fresh meta
/// tensors. It throws c10::Error with a sentence where the operands do not fit. None of them goes through the
/// dispatcher.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <string_view>

namespace cleave::torch_capture {

using ShapeArguments = c10::ArrayRef<c10::IValue>;
using MetaTensors = c10::SmallVector<at::Tensor, 3>;
using ShapeFunction = MetaTensors (*)(ShapeArguments);

/// Of a leaf: an operator that stays whole in the ATen graph though LibTorch would take it apart. Null for others.
/// Names carry the overload where there is one: "aten::sum.dim_IntList".
ShapeFunction leafShapeFunction(std::string_view op);

/// Registers the missing meta kernels with LibTorch's dispatcher, once in the process. Thread-safe. Neither CPU kernels
/// nor autograd are touched.
void registerMetaKernels();

/// The operators that `registerMetaKernels` covers, for tests.
std::vector<std::string> registeredMetaKernels();

}  // namespace cleave::torch_capture
