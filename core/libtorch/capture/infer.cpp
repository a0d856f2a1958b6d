#include "libtorch/bridge/arguments.h"
#include "libtorch/bridge/dtypes.h"
#include "libtorch/capture/capture.h"
#include "libtorch/capture/shape_functions.h"
#include "libtorch/capture/torch_errors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

namespace cleave::torch_capture {
namespace {

using c10::IValue;
using graph::Argument;
using graph::TensorType;

constexpr std::string_view kNamespace = "aten::";
constexpr std::size_t kMostSuggestions = 3;

/// Levenshtein's distance.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// Operators that a graph may hold: no in-place or out variants, no private ones, no named dimensions.
bool isSuggestible(const c10::FunctionSchema& schema) {
  return !schema.is_mutable() && schema.name().find("::_") == std::string::npos &&
         schema.overload_name().find("Dimname") == std::string::npos;
}

/// The known operators whose names are nearest to `op`: its own overloads first.
std::string suggestions(std::string_view op) {
  const std::string_view base = op.substr(0, op.find('.'));
  std::vector<std::pair<std::size_t, std::string>> known;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle || name.name.rfind(kNamespace, 0) != 0 || !isSuggestible(handle->schema())) continue;
    std::string full = name.overload_name.empty() ? name.name : name.name + '.' + name.overload_name;
    const std::size_t distance = name.name == base ? 0 : editDistance(op, full);
    known.emplace_back(distance, std::move(full));
  }
  const std::size_t count = std::min(kMostSuggestions, known.size());
  std::partial_sort(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(count), known.end());
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + known[i].second;
  return text;
}

Result<c10::OperatorHandle> findOperator(std::string_view op) {
  constexpr std::size_t kLongestName = 200;
  const std::string_view base = op.substr(0, op.find('.'));
  const std::string_view overload = base.size() == op.size() ? std::string_view() : op.substr(base.size() + 1);
  if (op.size() <= kLongestName && op.starts_with(kNamespace)) {
    const auto handle = c10::Dispatcher::singleton().findSchema({std::string(base), std::string(overload)});
    if (handle) return *handle;
  }
  const std::string_view shown = op.substr(0, kLongestName);
  return fail(ErrorCode::BadInput, "unknown operator {}: did you mean {}?", shown, suggestions(shown));
}

/// Arguments as LibTorch wants them; `args` is completed with the schema's defaults on the way.
Result<std::vector<IValue>> completeArguments(std::string_view op, const c10::FunctionSchema& schema,
                                              std::vector<Argument>& args, const std::vector<at::Tensor>& tensors) {
  const auto& wanted = schema.arguments();
  if (args.size() > wanted.size()) {
    return fail(ErrorCode::BadInput, "{} takes {} arguments, but {} are given", op, wanted.size(), args.size());
  }
  std::vector<IValue> stack;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool isGiven = i < args.size();
    if (isGiven) {
      CLEAVE_TRY(IValue value, withContext(toIValue(args[i], wanted[i], tensors), op));
      stack.push_back(std::move(value));
      continue;
    }
    if (!wanted[i].default_value())
      return fail(ErrorCode::BadInput, "{} needs its argument {} ({})", op, wanted[i].name(),
                  wanted[i].real_type()->str());
    stack.push_back(*wanted[i].default_value());
    args.push_back(toArgument(stack.back(), argumentKind(wanted[i]), [](const at::Tensor&) { return Argument{}; }));
  }
  return stack;
}

/// An operator without tensors makes its result on a device: the meta device, so that nothing is computed.
void makeOnMeta(const c10::FunctionSchema& schema, std::vector<IValue>& stack) {
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (schema.arguments()[i].name() == "device" && stack[i].isNone()) stack[i] = at::Device(at::kMeta);
  }
}

Result<std::vector<TensorType>> typesOf(std::string_view op, const std::vector<IValue>& results) {
  std::vector<TensorType> types;
  for (const IValue& result : results) {
    std::vector<at::Tensor> tensors;
    forEachTensor(result, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
    for (const at::Tensor& tensor : tensors) {
      const auto dtype = models::toDType(tensor.scalar_type());
      if (!dtype)
        return fail(ErrorCode::BadInput, "{} gives a tensor of type {}, which a graph cannot hold", op,
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
  try {
    registerMetaKernels();
    CLEAVE_TRY(const c10::OperatorHandle handle, findOperator(op));
    const c10::FunctionSchema& schema = handle.schema();
    std::vector<at::Tensor> tensors;
    for (const TensorType& type : valueTypes)
      tensors.push_back(at::detail::empty_meta(type.shape, models::toScalarType(type.dtype)));
    CLEAVE_TRY(std::vector<IValue> stack, completeArguments(op, schema, args, tensors));
    if (tensors.empty()) makeOnMeta(schema, stack);
    return typesOf(op, run(handle, op, std::move(stack)));
  } catch (const std::exception& exception) {
    return fail(ErrorCode::BadInput, "{}: {}", op, sentenceOf(exception));
  }
}

}  // namespace cleave::torch_capture
