#pragma once
/// Converts operator arguments between LibTorch's IValues and the graph's Arguments, guided by the operator's schema.
/// Uses LibTorch.
///
///     BoundArguments bound(schema.arguments().size());
///     if (!bindArgument(node.args[0], schema.arguments()[0], device, 0, bound)) ...   // does not fit
///     std::vector<c10::IValue> stack = bound.with([&](graph::ValueId id) { return tensors[id.index()]; });
#include "graph/graph.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace cleave::bridge {

/// The kind of a schema's argument, if its IValue does not show it (an element type is an int there).
enum class SchemaKind : std::uint8_t { Plain, Tensor, TensorList, ElementType, Device };
SchemaKind schemaKind(const c10::Argument& argument);

/// The argument for a tensor operand; monostate or a number if it is not a value of the graph.
using TensorToArgument = std::function<graph::Argument(const at::Tensor&)>;

/// Throws c10::Error for kinds of arguments that graphs do not support (generators, dictionaries, complex numbers).
graph::Argument toArgument(const c10::IValue& value, SchemaKind kind, const TensorToArgument& tensor);

/// The arguments of one call, complete except for the tensors, which have slots.
struct BoundArguments {
  explicit BoundArguments(std::size_t count) : values(count) {}
  std::vector<c10::IValue> values;                              ///< in schema order
  std::vector<std::pair<std::size_t, graph::ValueId>> tensors;  ///< position → value
  std::vector<std::pair<std::size_t, graph::ValueList>> lists;  ///< position → values, some possibly invalid

  /// All arguments, with the slots filled by `tensorOf(ValueId)`. An invalid value is an absent tensor.
  template <class TensorOf>
  std::vector<c10::IValue> with(TensorOf&& tensorOf) const {
    std::vector<c10::IValue> filled = values;
    for (const auto& [position, value] : tensors)
      filled[position] = value.isValid() ? at::Tensor(tensorOf(value)) : at::Tensor();
    for (const auto& [position, of] : lists) {
      if (filled[position].isTensorList()) {
        c10::List<at::Tensor> list;
        for (const graph::ValueId value : of) list.push_back(tensorOf(value));
        filled[position] = std::move(list);
      } else {
        c10::List<std::optional<at::Tensor>> list;
        for (const graph::ValueId value : of)
          list.push_back(value.isValid() ? std::optional<at::Tensor>(tensorOf(value)) : std::nullopt);
        filled[position] = std::move(list);
      }
    }
    return filled;
  }
};

/// Stores `argument` at `position` in the form that the schema requires; false if it does not fit. An absent argument
/// becomes the schema's default, or None. A device becomes `device`, a number for a tensor becomes a zero-dimensional
/// "wrapped number", and a single number for a list becomes a list of one.
bool bindArgument(const graph::Argument& argument, const c10::Argument& wanted, at::Device device, std::size_t position,
                  BoundArguments& bound);

/// Converts all arguments of a call; missing trailing ones are absent. BadInput, in a sentence, names the argument that
/// does not fit.
Result<BoundArguments> bindArguments(const std::vector<graph::Argument>& arguments, const c10::FunctionSchema& schema,
                                     at::Device device);

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

}  // namespace cleave::bridge
