#include "libtorch/bridge/operators.h"

#include "graph/operators.h"
#include "libtorch/bridge/grouped_product.h"
#include "libtorch/bridge/types.h"

namespace cleave::bridge {

std::optional<c10::OperatorHandle> findOperator(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (name == graph::kGroupedProduct) registerGroupedProduct();
  const std::string_view overload = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema({std::string(name.substr(0, dot)), std::string(overload)});
}

std::string nameOf(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + '.' + name.overload_name;
}

Result<c10::OperatorHandle> findForProgram(const std::string& name) {
  // `view` requires matching strides, and the strides of a local tensor depend on the plan. `reshape` is the same if
  // they match.
  constexpr std::string_view kDefault = ".default";
  const std::string actual = name == "aten::view"       ? "aten::reshape"
                             : name.ends_with(kDefault) ? name.substr(0, name.size() - kDefault.size())
                                                        : name;
  const auto op = findOperator(actual);
  if (!op) return fail(ErrorCode::BadInput, "LibTorch does not have this operator.");
  if (op->schema().is_mutable())
    return fail(ErrorCode::BadInput, "the operator overwrites its arguments, but programs must be functional.");
  if (op->schema().name() == "aten::from_file") return fail(ErrorCode::BadInput, "the operator reads files.");
  return *op;
}

namespace {

/// ATen's kernels of weight norms read one length for each row of the weight without checking the count.
Result<void> checkLengths(const std::vector<c10::IValue>& stack) {
  const at::Tensor &weight = stack[0].toTensor(), &lengths = stack[1].toTensor();
  const std::int64_t dim = stack[2].toInt();
  const bool isOfRows = dim >= 0 && dim < weight.dim();
  if (!isOfRows || lengths.numel() == weight.size(dim)) return {};
  return fail(ErrorCode::BadInput, "weight_norm of {} along dimension {} needs one length per row, but has {}.",
              describe(weight), dim, lengths.numel());
}

}  // namespace

Result<std::vector<at::Tensor>> call(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack) {
  const std::string& name = op.operator_name().name;
  if (name == "aten::_weight_norm" || name == "aten::_weight_norm_interface") {
    CLEAVE_TRY_VOID(checkLengths(stack));
  }
  op.callBoxed(stack);
  std::vector<at::Tensor> results;
  for (c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) results.push_back(tensor);
    } else if (value.isTensor()) {
      results.push_back(std::move(value).toTensor());
    } else {
      return fail(ErrorCode::BadInput, "the operator returns a {}, not a tensor.", value.tagKind());
    }
  }
  return results;
}

}  // namespace cleave::bridge
