#pragma once
/// Operator arguments: LibTorch's IValues and the graph's Arguments, both ways, guided by the operator's schema.
#include "graph/graph.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>

namespace cleave::torch_capture {

/// What kind of thing a schema's argument is, as far as its IValue does not say it (an element type is an int there).
enum class ArgumentKind : std::uint8_t { Plain, Tensor, TensorList, ElementType };
ArgumentKind argumentKind(const c10::Argument& argument);

/// What stands for a tensor operand; monostate or a number where it is no value of the graph.
using TensorToArgument = std::function<graph::Argument(const at::Tensor&)>;

/// Throws c10::Error for a kind of argument that graphs do not hold (generators, dictionaries, complex numbers).
graph::Argument toArgument(const c10::IValue& value, ArgumentKind kind, const TensorToArgument& tensor);

/// BadInput when the argument does not fit the schema's type. Devices become meta; numbers given for tensors become
/// zero-dimensional "wrapped numbers". `tensors` are indexed by ValueId.
Result<c10::IValue> toIValue(const graph::Argument& argument, const c10::Argument& schema,
                             const std::vector<at::Tensor>& tensors);

/// Calls `visit(tensor)` for each defined tensor in the value, lists included.
template <class Visit>
void forEachTensor(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& item : value.toTensorVector()) visit(item);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor() && item.toTensor().defined()) visit(item.toTensor());
    }
  }
}

}  // namespace cleave::torch_capture
