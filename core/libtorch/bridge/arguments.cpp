#include "libtorch/bridge/arguments.h"

#include "libtorch/bridge/types.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <type_traits>

namespace cleave::bridge {
namespace {

using c10::IValue;
using c10::TypeKind;
using graph::Argument;

const c10::Type& withoutOptional(const c10::Type& type) {
  const auto* optional = type.castRaw<c10::OptionalType>();
  return optional ? *optional->getElementType() : type;
}

graph::DType elementTypeOf(const IValue& value) {
  const auto dtype = toDType(static_cast<at::ScalarType>(value.toInt()));
  TORCH_CHECK(dtype, "element type ", static_cast<at::ScalarType>(value.toInt()), " is not supported in graphs");
  return *dtype;
}

graph::ValueList toValueList(const IValue& list, const TensorToArgument& tensor) {
  graph::ValueList values;
  const auto append = [&](const at::Tensor& item) {
    const Argument argument = item.defined() ? tensor(item) : Argument{};
    TORCH_CHECK(argument.index() <= 1, "a list of tensors contains a number");
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

SchemaKind schemaKind(const c10::Argument& argument) {
  const c10::Type& type = withoutOptional(*argument.real_type());
  if (type.kind() == TypeKind::TensorType) return SchemaKind::Tensor;
  if (type.kind() == TypeKind::ScalarTypeType) return SchemaKind::ElementType;
  if (type.kind() == TypeKind::DeviceObjType) return SchemaKind::Device;
  if (const auto* list = type.castRaw<c10::ListType>()) {
    if (withoutOptional(*list->getElementType()).kind() == TypeKind::TensorType) return SchemaKind::TensorList;
  }
  return SchemaKind::Plain;
}

Argument toArgument(const IValue& value, SchemaKind kind, const TensorToArgument& tensor) {
  if (value.isNone()) return {};
  switch (kind) {
    case SchemaKind::Tensor: return value.toTensor().defined() ? tensor(value.toTensor()) : Argument{};
    case SchemaKind::TensorList: return toValueList(value, tensor);
    case SchemaKind::ElementType: return elementTypeOf(value);
    case SchemaKind::Device: return graph::DeviceArgument{};
    case SchemaKind::Plain: break;
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
  TORCH_CHECK(false, "an argument of type ", value.tagKind(), " is not supported in graphs");
}

namespace {

/// Stores one argument in the form that the schema requires.
class ArgumentBinder {
 public:
  ArgumentBinder(BoundArguments& bound, std::size_t position, at::Device device)
      : m_bound(bound), m_position(position), m_device(device) {}

  /// Returns false if the argument does not fit the type.
  bool bind(const Argument& argument, const c10::Argument& wanted) {
    const c10::Type& type = *wanted.real_type();
    if (std::holds_alternative<std::monostate>(argument)) {
      if (wanted.default_value()) return put(*wanted.default_value());
      return type.kind() == TypeKind::OptionalType && put(IValue());
    }
    return bindAs(withoutOptional(type), argument);
  }

 private:
  bool bindAs(const c10::Type& type, const Argument& argument) {
    switch (type.kind()) {
      case TypeKind::TensorType: return bindTensor(argument);
      case TypeKind::ListType: return bindList(argument, *type.castRaw<c10::ListType>()->getElementType());
      case TypeKind::DeviceObjType: return std::holds_alternative<graph::DeviceArgument>(argument) && put(m_device);
      case TypeKind::StringType: return put<std::string>(argument);
      case TypeKind::BoolType: return put<bool>(argument);
      case TypeKind::NumberType: return put<bool>(argument) || put<std::int64_t>(argument) || put<double>(argument);
      case TypeKind::FloatType: {
        const auto* integer = std::get_if<std::int64_t>(&argument);
        return integer ? put(static_cast<double>(*integer)) : put<double>(argument);
      }
      case TypeKind::ScalarTypeType: {
        const auto* dtype = std::get_if<graph::DType>(&argument);
        return dtype && put(static_cast<std::int64_t>(toScalarType(*dtype)));
      }
      case TypeKind::IntType:
      case TypeKind::SymIntType:
      case TypeKind::LayoutType:
      case TypeKind::MemoryFormatType: return put<std::int64_t>(argument);
      default: return false;
    }
  }

  bool put(IValue value) {
    m_bound.values[m_position] = std::move(value);
    return true;
  }
  template <class T>
  bool put(const Argument& argument) {
    const T* value = std::get_if<T>(&argument);
    return value && put(IValue(*value));
  }

  bool bindTensor(const Argument& argument) {
    if (const auto* value = std::get_if<graph::ValueId>(&argument)) {
      m_bound.tensors.emplace_back(m_position, *value);
      return true;
    }
    // A number in place of a tensor (`x + 2`) keeps its weak type, as in PyTorch.
    std::optional<at::Scalar> number;
    if (const auto* integer = std::get_if<std::int64_t>(&argument)) number = *integer;
    if (const auto* real = std::get_if<double>(&argument)) number = *real;
    if (const auto* flag = std::get_if<bool>(&argument)) number = *flag;
    if (!number) return false;
    at::Tensor wrapped = at::scalar_to_tensor(*number);
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
    return put(std::move(wrapped));
  }

  bool bindList(const Argument& argument, const c10::Type& element) {
    switch (element.kind()) {
      case TypeKind::TensorType: return bindTensors(argument, c10::List<at::Tensor>(), /*mayBeAbsent=*/false);
      case TypeKind::OptionalType:
        return bindTensors(argument, c10::List<std::optional<at::Tensor>>(), /*mayBeAbsent=*/true);
      case TypeKind::IntType:
      case TypeKind::SymIntType: return bindNumbers<std::int64_t>(argument);
      case TypeKind::FloatType:
      case TypeKind::NumberType: return bindNumbers<double>(argument);
      case TypeKind::BoolType: return bindFlags(argument);
      default: return false;
    }
  }

  /// An empty list has no element type.
  static bool isEmptyList(const Argument& argument) {
    const auto* integers = std::get_if<std::vector<std::int64_t>>(&argument);
    const auto* values = std::get_if<graph::ValueList>(&argument);
    return (integers && integers->empty()) || (values && values->empty());
  }

  bool bindTensors(const Argument& argument, IValue empty, bool mayBeAbsent) {
    const auto* values = std::get_if<graph::ValueList>(&argument);
    if (!values && !isEmptyList(argument)) return false;
    if (values && !mayBeAbsent && !std::ranges::all_of(*values, &graph::ValueId::isValid)) return false;
    m_bound.lists.emplace_back(m_position, values ? *values : graph::ValueList());
    return put(std::move(empty));
  }

  template <class T>
  bool bindNumbers(const Argument& argument) {
    if (isEmptyList(argument)) return put(std::vector<T>());
    if (const auto* numbers = std::get_if<std::vector<T>>(&argument)) return put(*numbers);
    if (const auto* number = std::get_if<T>(&argument)) return put(std::vector<T>{*number});
    if constexpr (std::is_same_v<T, double>) {
      if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&argument))
        return put(std::vector<double>(integers->begin(), integers->end()));
      if (const auto* integer = std::get_if<std::int64_t>(&argument))
        return put(std::vector<double>{static_cast<double>(*integer)});
    }
    return false;
  }

  bool bindFlags(const Argument& argument) {
    const auto* flags = std::get_if<std::vector<bool>>(&argument);
    if (!flags && !isEmptyList(argument)) return false;
    c10::List<bool> list;
    for (std::size_t i = 0; flags && i < flags->size(); ++i) list.push_back((*flags)[i]);
    return put(std::move(list));
  }

  BoundArguments& m_bound;
  std::size_t m_position;
  at::Device m_device;
};

}  // namespace

bool bindArgument(const Argument& argument, const c10::Argument& wanted, at::Device device, std::size_t position,
                  BoundArguments& bound) {
  return ArgumentBinder(bound, position, device).bind(argument, wanted);
}

Result<BoundArguments> bindArguments(const std::vector<Argument>& arguments, const c10::FunctionSchema& schema,
                                     at::Device device) {
  const auto& wanted = schema.arguments();
  if (arguments.size() > wanted.size()) {
    return fail(ErrorCode::BadInput, "the operator accepts {} arguments, but the call has {}.", wanted.size(),
                arguments.size());
  }
  BoundArguments bound(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (bindArgument(i < arguments.size() ? arguments[i] : Argument(), wanted[i], device, i, bound)) continue;
    return fail(ErrorCode::BadInput, "argument {} must be of type {}.", wanted[i].name(),
                wanted[i].real_type()->annotation_str());
  }
  return bound;
}

}  // namespace cleave::bridge
