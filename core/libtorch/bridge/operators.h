#pragma once
/// LibTorch's operators by their names, "aten::sum.dim_IntList". LibTorch inside.
#include "base/result.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::bridge {

/// nullopt when LibTorch knows no operator of this name.
std::optional<c10::OperatorHandle> findOperator(std::string_view name);
/// The name by which `findOperator` finds it.
std::string nameOf(const c10::OperatorName& name);

/// An operator of ATen's that a functional program may call. BadInput, a sentence, for one that LibTorch does not know,
/// that overwrites its arguments or reads files.
Result<c10::OperatorHandle> findForProgram(const std::string& name);

/// Runs the operator; its results, lists taken apart. Throws what it throws. `stack` is used up.
Result<std::vector<at::Tensor>> call(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack);

}  // namespace cleave::bridge
