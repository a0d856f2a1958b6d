#include "libtorch/bridge/arguments.h"

#include "libtorch/bridge/dtypes.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>

namespace cleave::torch_capture {
namespace {

using c10::IValue;
using c10::TypeKind;
using graph::Argument;

const c10::Type& withoutOptional(const c10::Type& type) {
  const auto* optional = type.castRaw<c10::OptionalType>();
  return optional ? *optional->getElementType() : type;
}

graph::DType elementTypeOf(const IValue& value) {
  const auto dtype = models::toDType(static_cast<at::ScalarType>(value.toInt()));
  TORCH_CHECK(dtype, "element type ", static_cast<at::ScalarType>(value.toInt()), " cannot be held by a graph");
  return *dtype;
}

graph::ValueList toValueList(const IValue& list, const TensorToArgument& tensor) {
  graph::ValueList values;
  const auto append = [&](const at::Tensor& item) {
    const Argument argument = item.defined() ? tensor(item) : Argument{};
    TORCH_CHECK(argument.index() <= 1, "a number stands in a list of tensors");
    values.push_back(argument.index() == 1 ? std::get<graph::ValueId>(argument) : graph::ValueId());
  };
  if (list.isTensorList()) {
    for (const at::Tensor& item : list.toTensorVector()) append(item);
  } else {
    for (const IValue& item : list.toListRef()) append(item.isNone() ? at::Tensor() : item.toTensor());
  }
  return values;
}

}  // namespace

ArgumentKind argumentKind(const c10::Argument& argument) {
  const c10::Type& type = withoutOptional(*argument.real_type());
  if (type.kind() == TypeKind::TensorType) return ArgumentKind::Tensor;
  if (type.kind() == TypeKind::ScalarTypeType) return ArgumentKind::ElementType;
  if (const auto* list = type.castRaw<c10::ListType>()) {
    if (withoutOptional(*list->getElementType()).kind() == TypeKind::TensorType) return ArgumentKind::TensorList;
  }
  return ArgumentKind::Plain;
}

Argument toArgument(const IValue& value, ArgumentKind kind, const TensorToArgument& tensor) {
  if (value.isNone()) return {};
  switch (kind) {
    case ArgumentKind::Tensor: return value.toTensor().defined() ? tensor(value.toTensor()) : Argument{};
    case ArgumentKind::TensorList: return toValueList(value, tensor);
    case ArgumentKind::ElementType: return elementTypeOf(value);
    case ArgumentKind::Plain: break;
  }
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  if (value.isIntList()) return value.toIntVector();
  if (value.isDoubleList()) return value.toDoubleVector();
  if (value.isBoolList()) {
    const auto list = value.toBoolList();
    return std::vector<bool>(list.begin(), list.end());
  }
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return graph::DeviceArgument{};
  TORCH_CHECK(false, "an argument of type ", value.tagKind(), " cannot be held by a graph");
}

namespace {

/// Converts one Argument for one schema type; fails with nullopt where the two do not fit.
class Converter {
 public:
  Converter(const std::vector<at::Tensor>& tensors) : m_tensors(tensors) {}

  std::optional<IValue> convert(const Argument& argument, const c10::Type& type) const {
    if (const auto* optional = type.castRaw<c10::OptionalType>()) {
      if (std::holds_alternative<std::monostate>(argument)) return IValue();
      return convert(argument, *optional->getElementType());
    }
    switch (type.kind()) {
      case TypeKind::TensorType: return tensor(argument);
      case TypeKind::ListType: return list(argument, *type.castRaw<c10::ListType>()->getElementType());
      case TypeKind::ScalarTypeType: return elementType(argument);
      case TypeKind::DeviceObjType: return IValue(at::Device(at::kMeta));
      case TypeKind::NumberType: return number(argument);
      case TypeKind::FloatType: {
        const auto value = real(argument);
        return value ? std::optional<IValue>(*value) : std::nullopt;
      }
      case TypeKind::BoolType: return held<bool>(argument);
      case TypeKind::StringType: return held<std::string>(argument);
      case TypeKind::IntType:
      case TypeKind::SymIntType:
      case TypeKind::LayoutType:
      case TypeKind::MemoryFormatType: return held<std::int64_t>(argument);
      default: return std::nullopt;
    }
  }

 private:
  template <class T>
  static std::optional<IValue> held(const Argument& argument) {
    const T* value = std::get_if<T>(&argument);
    return value ? std::optional<IValue>(*value) : std::nullopt;
  }

  static std::optional<double> real(const Argument& argument) {
    if (const auto* value = std::get_if<double>(&argument)) return *value;
    if (const auto* value = std::get_if<std::int64_t>(&argument)) return static_cast<double>(*value);
    return std::nullopt;
  }

  static std::optional<IValue> number(const Argument& argument) {
    if (std::holds_alternative<bool>(argument)) return held<bool>(argument);
    if (std::holds_alternative<double>(argument)) return held<double>(argument);
    return held<std::int64_t>(argument);
  }

  static std::optional<IValue> elementType(const Argument& argument) {
    if (const auto* dtype = std::get_if<graph::DType>(&argument))
      return IValue(static_cast<std::int64_t>(models::toScalarType(*dtype)));
    if (const auto* text = std::get_if<std::string>(&argument)) {
      if (const auto dtype = graph::parseDType(*text))
        return IValue(static_cast<std::int64_t>(models::toScalarType(*dtype)));
    }
    return std::nullopt;
  }

  std::optional<at::Tensor> operand(graph::ValueId id) const {
    return id.isValid() && id.index() < m_tensors.size() ? std::optional(m_tensors[id.index()]) : std::nullopt;
  }

  std::optional<IValue> tensor(const Argument& argument) const {
    if (const auto* id = std::get_if<graph::ValueId>(&argument)) {
      const auto found = operand(*id);
      return found ? std::optional<IValue>(*found) : std::nullopt;
    }
    const auto value = number(argument);
    if (!value) return std::nullopt;
    at::Tensor wrapped = at::scalar_to_tensor(value->toScalar());
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
    return IValue(std::move(wrapped));
  }

  /// A lone number stands for a list of one, as in `int[1] dim`; an empty list of integers for any empty list.
  std::optional<IValue> list(const Argument& argument, const c10::Type& element) const {
    const auto* integers = std::get_if<std::vector<std::int64_t>>(&argument);
    switch (element.kind()) {
      case TypeKind::TensorType: {
        c10::List<at::Tensor> items;
        if (!fillTensors(
                argument, [&](std::optional<at::Tensor> item) { items.push_back(*item); }, /*mayBeAbsent=*/false))
          return std::nullopt;
        return IValue(std::move(items));
      }
      case TypeKind::OptionalType: {
        c10::List<std::optional<at::Tensor>> items;
        if (!fillTensors(
                argument, [&](std::optional<at::Tensor> item) { items.push_back(std::move(item)); }, true))
          return std::nullopt;
        return IValue(std::move(items));
      }
      case TypeKind::FloatType: {
        if (const auto* reals = std::get_if<std::vector<double>>(&argument)) return IValue(*reals);
        if (integers) return IValue(std::vector<double>(integers->begin(), integers->end()));
        const auto value = real(argument);
        return value ? std::optional<IValue>(std::vector<double>{*value}) : std::nullopt;
      }
      case TypeKind::BoolType: {
        c10::List<bool> items;
        if (const auto* flags = std::get_if<std::vector<bool>>(&argument)) {
          for (const bool flag : *flags) items.push_back(flag);
        } else if (!integers || !integers->empty()) {
          return std::nullopt;
        }
        return IValue(std::move(items));
      }
      case TypeKind::IntType:
      case TypeKind::SymIntType: {
        if (integers) return IValue(*integers);
        if (const auto* value = std::get_if<std::int64_t>(&argument)) return IValue(std::vector<std::int64_t>{*value});
        return std::nullopt;
      }
      default: return std::nullopt;
    }
  }

  template <class Append>
  bool fillTensors(const Argument& argument, Append append, bool mayBeAbsent) const {
    const auto* integers = std::get_if<std::vector<std::int64_t>>(&argument);
    if (integers && integers->empty()) return true;
    const auto* ids = std::get_if<graph::ValueList>(&argument);
    if (!ids) return false;
    for (const graph::ValueId id : *ids) {
      std::optional<at::Tensor> item = operand(id);
      if (!item && (!mayBeAbsent || id.isValid())) return false;
      append(std::move(item));
    }
    return true;
  }

  const std::vector<at::Tensor>& m_tensors;
};

}  // namespace

Result<IValue> toIValue(const Argument& argument, const c10::Argument& schema, const std::vector<at::Tensor>& tensors) {
  auto value = Converter(tensors).convert(argument, *schema.real_type());
  if (value) return std::move(*value);
  return fail(ErrorCode::BadInput, "argument {} must be of type {}", schema.name(), schema.real_type()->str());
}

}  // namespace cleave::torch_capture
