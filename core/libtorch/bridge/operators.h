#pragma once
/// LibTorch's operators by name, "aten::sum.dim_IntList". Uses LibTorch.
#include "base/result.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::bridge {

/// nullopt if LibTorch has no operator with this name.
std::optional<c10::OperatorHandle> findOperator(std::string_view name);
/// The name under which `findOperator` finds the operator.
std::string nameOf(const c10::OperatorName& name);

/// An ATen operator that a functional program may call. BadInput, in a sentence, for an operator that LibTorch does not
/// have, that overwrites its arguments, or that reads files.
Result<c10::OperatorHandle> findForProgram(const std::string& name);

/// Runs the operator and returns its results, with lists flattened. Passes exceptions on. `stack` is consumed.
Result<std::vector<at::Tensor>> call(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack);

}  // namespace cleave::bridge
