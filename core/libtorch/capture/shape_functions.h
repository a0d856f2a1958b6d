#pragma once
/// Shapes without values: result shapes for the leaves, and meta kernels for operators without one in LibTorch.
///
/// A shape function gets an operator's arguments in schema order, with tensors on the meta device, and returns fresh
/// meta tensors. It throws c10::Error with a sentence if the operands do not fit. It never uses the dispatcher.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <string_view>

namespace cleave::torch_capture {

using ShapeArguments = c10::ArrayRef<c10::IValue>;
using MetaTensors = c10::SmallVector<at::Tensor, 3>;
using ShapeFunction = MetaTensors (*)(ShapeArguments);

/// The shape function of a leaf, an operator that the ATen graph keeps although LibTorch would decompose it. Null for
/// others. Names include the overload if there is one: "aten::sum.dim_IntList".
ShapeFunction leafShapeFunction(std::string_view op);

/// Registers the missing meta kernels with LibTorch's dispatcher, once in the process. Thread-safe. Does not change CPU
/// kernels or autograd.
void registerMetaKernels();

/// The operators that `registerMetaKernels` covers, for tests.
std::vector<std::string> registeredMetaKernels();

}  // namespace cleave::torch_capture
