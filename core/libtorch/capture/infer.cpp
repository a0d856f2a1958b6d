#include "base/edit_distance.h"
#include "libtorch/bridge/arguments.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/operators.h"
#include "libtorch/bridge/types.h"
#include "libtorch/capture/capture.h"
#include "libtorch/capture/shape_functions.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace cleave::torch_capture {
namespace {

using c10::IValue;
using graph::Argument;
using graph::TensorType;

constexpr std::string_view kNamespace = "aten::";
constexpr std::size_t kMostSuggestions = 3;

/// Operators that a graph may contain: no in-place or out variants, no private ones, no named dimensions.
bool isSuggestible(const c10::FunctionSchema& schema) {
  return !schema.is_mutable() && schema.name().find("::_") == std::string::npos &&
         schema.overload_name().find("Dimname") == std::string::npos;
}

/// The operators with the most similar names, the other overloads of `op` first.
std::string suggestions(std::string_view op) {
  const std::string_view base = op.substr(0, op.find('.'));
  std::vector<std::pair<std::size_t, std::string>> known;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle || name.name.rfind(kNamespace, 0) != 0 || !isSuggestible(handle->schema())) continue;
    std::string full = bridge::nameOf(name);
    const std::size_t distance = name.name == base ? 0 : editDistance(op, full);
    known.emplace_back(distance, std::move(full));
  }
  const std::size_t count = std::min(kMostSuggestions, known.size());
  std::partial_sort(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(count), known.end());
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + known[i].second;
  return text;
}

Result<c10::OperatorHandle> findKnown(std::string_view op) {
  constexpr std::size_t kLongestName = 200;
  if (op.size() <= kLongestName && op.starts_with(kNamespace)) {
    if (const auto handle = bridge::findOperator(op)) return *handle;
  }
  const std::string_view shown = op.substr(0, kLongestName);
  return fail(ErrorCode::BadInput, "unknown operator {}: did you mean {}?", shown, suggestions(shown));
}

/// True for a None argument that the schema does not allow.
bool isRefusedNone(const Argument& argument, const c10::Argument& wanted) {
  return std::holds_alternative<std::monostate>(argument) && wanted.real_type()->kind() != c10::TypeKind::OptionalType;
}

/// Completes `args` with the schema's defaults.
Result<bridge::BoundArguments> completeArguments(std::string_view op, const c10::FunctionSchema& schema,
                                                 std::vector<Argument>& args) {
  const auto& wanted = schema.arguments();
  if (args.size() > wanted.size()) {
    return fail(ErrorCode::BadInput, "{} accepts {} arguments, but the call has {}", op, wanted.size(), args.size());
  }
  bridge::BoundArguments bound(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i == args.size()) {
      if (!wanted[i].default_value())
        return fail(ErrorCode::BadInput, "{} needs argument {} ({})", op, wanted[i].name(),
                    wanted[i].real_type()->str());
      // Defaults do not contain tensors, so no lookup is needed.
      args.push_back(bridge::toArgument(*wanted[i].default_value(), bridge::schemaKind(wanted[i]), {}));
    }
    if (!isRefusedNone(args[i], wanted[i]) && bridge::bindArgument(args[i], wanted[i], at::kMeta, i, bound)) continue;
    return fail(ErrorCode::BadInput, "{}: argument {} must be of type {}", op, wanted[i].name(),
                wanted[i].real_type()->str());
  }
  return bound;
}

/// Makes the result of an operator without tensors on the meta device, so that nothing is computed.
void makeOnMeta(const c10::FunctionSchema& schema, std::vector<IValue>& stack) {
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (schema.arguments()[i].name() == "device" && stack[i].isNone()) stack[i] = at::Device(at::kMeta);
  }
}

Result<std::vector<TensorType>> typesOf(std::string_view op, const std::vector<IValue>& results) {
  std::vector<TensorType> types;
  for (const IValue& result : results) {
    std::vector<at::Tensor> tensors;
    bridge::forEachTensor(result, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
    for (const at::Tensor& tensor : tensors) {
      const auto dtype = bridge::toDType(tensor.scalar_type());
      if (!dtype)
        return fail(ErrorCode::BadInput, "{} returns a tensor of type {}, which graphs do not support", op,
                    c10::toString(tensor.scalar_type()));
      types.push_back({*dtype, tensor.sizes().vec()});
    }
  }
  return types;
}

std::vector<IValue> run(const c10::OperatorHandle& op, std::string_view name, std::vector<IValue> stack) {
  if (const ShapeFunction leaf = leafShapeFunction(name)) {
    std::vector<IValue> results;
    for (at::Tensor& tensor : leaf(stack)) results.emplace_back(std::move(tensor));
    return results;
  }
  const c10::NoGradGuard noGrad;
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  op.callBoxed(&stack);
  return stack;
}

}  // namespace

Result<std::vector<TensorType>> inferResults(std::string_view op, std::vector<Argument>& args,
                                             const std::vector<TensorType>& valueTypes) {
  const auto infer = [&]() -> Result<std::vector<TensorType>> {
    registerMetaKernels();
    CLEAVE_TRY(const c10::OperatorHandle handle, findKnown(op));
    std::vector<at::Tensor> tensors;
    for (const TensorType& type : valueTypes)
      tensors.push_back(at::detail::empty_meta(type.shape, bridge::toScalarType(type.dtype)));
    CLEAVE_TRY(const bridge::BoundArguments bound, completeArguments(op, handle.schema(), args));
    std::vector<IValue> stack = bound.with([&](graph::ValueId value) { return tensors.at(value.index()); });
    if (tensors.empty()) makeOnMeta(handle.schema(), stack);
    return typesOf(op, run(handle, op, std::move(stack)));
  };
  try {
    return infer();
  } catch (const std::exception&) {
    const Error error = bridge::currentError(ErrorCode::BadInput, bridge::Wording::Phrase);
    return fail(error.code, "{}: {}", op, error.message);
  }
}

}  // namespace cleave::torch_capture
