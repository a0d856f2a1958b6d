#include "libtorch/rank/operator_call.h"

#include "libtorch/bridge/torch_errors.h"
#include "libtorch/bridge/torch_types.h"

#include <ATen/core/jit_type.h>
#include <ATen/ops/scalar_tensor.h>

namespace cleave::torch_rank {
namespace {

using graph::Argument;
using graph::ValueId;
using graph::ValueList;

/// Turns one argument into an IValue of the type that the schema wants, or says in `wrong` what it wants instead.
class ArgumentBinder {
 public:
  ArgumentBinder(BoundCall& call, std::size_t position, at::Device device)
      : m_call(call), m_position(position), m_device(device) {}

  /// False when the argument does not fit the type.
  bool bind(const Argument& argument, const c10::Argument& schema) {
    c10::TypePtr type = schema.real_type();
    const bool isOptional = type->kind() == c10::TypeKind::OptionalType;
    if (isOptional) type = type->expectRef<c10::OptionalType>().getElementType();
    if (std::holds_alternative<std::monostate>(argument)) return bindAbsent(schema, isOptional);
    switch (type->kind()) {
      case c10::TypeKind::TensorType: return bindTensor(argument);
      case c10::TypeKind::ListType: return bindList(argument, *type->expectRef<c10::ListType>().getElementType());
      case c10::TypeKind::DeviceObjType:
        return std::holds_alternative<graph::DeviceArgument>(argument) && put(m_device);
      case c10::TypeKind::StringType: return bindAs<std::string>(argument);
      case c10::TypeKind::BoolType: return bindAs<bool>(argument);
      case c10::TypeKind::FloatType: return bindFloat(argument);
      case c10::TypeKind::NumberType:
        return bindAs<bool>(argument) || bindAs<std::int64_t>(argument) || bindAs<double>(argument);
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
      case c10::TypeKind::ScalarTypeType:
      case c10::TypeKind::LayoutType:
      case c10::TypeKind::MemoryFormatType: return bindInteger(argument);
      default: return false;
    }
  }

 private:
  bool put(c10::IValue value) {
    m_call.arguments[m_position] = std::move(value);
    return true;
  }
  template <class T>
  bool bindAs(const Argument& argument) {
    const auto* value = std::get_if<T>(&argument);
    return value && put(*value);
  }
  bool bindAbsent(const c10::Argument& schema, bool isOptional) {
    if (schema.default_value()) return put(*schema.default_value());
    return isOptional && put(c10::IValue());
  }
  bool bindFloat(const Argument& argument) {
    if (const auto* integer = std::get_if<std::int64_t>(&argument)) return put(static_cast<double>(*integer));
    return bindAs<double>(argument);
  }
  bool bindInteger(const Argument& argument) {
    if (const auto* dtype = std::get_if<graph::DType>(&argument))
      return put(static_cast<std::int64_t>(models::toScalarType(*dtype)));
    return bindAs<std::int64_t>(argument);
  }
  bool bindTensor(const Argument& argument) {
    if (const auto* value = std::get_if<ValueId>(&argument)) {
      m_call.tensors.emplace_back(m_position, *value);
      return true;
    }
    // A number in a tensor's place (`x + 2`) keeps its weak type, as in PyTorch.
    std::optional<at::Scalar> number;
    if (const auto* integer = std::get_if<std::int64_t>(&argument)) number = *integer;
    if (const auto* real = std::get_if<double>(&argument)) number = *real;
    if (const auto* flag = std::get_if<bool>(&argument)) number = *flag;
    if (!number) return false;
    at::Tensor tensor = at::scalar_tensor(*number, at::TensorOptions().dtype(number->type()));
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return put(tensor);
  }
  bool bindList(const Argument& argument, const c10::Type& element) {
    const auto kind = element.kind();
    if (kind == c10::TypeKind::TensorType || kind == c10::TypeKind::OptionalType) {
      const auto* values = std::get_if<ValueList>(&argument);
      if (!values) return false;
      if (kind == c10::TypeKind::TensorType) {
        for (ValueId value : *values) {
          if (!value.isValid()) return false;
        }
        put(c10::List<at::Tensor>());
      } else {
        put(c10::List<std::optional<at::Tensor>>());
      }
      m_call.lists.emplace_back(m_position, *values);
      return true;
    }
    // An empty list carries no element type of its own.
    if (const auto* values = std::get_if<ValueList>(&argument); values && values->empty()) return bindEmptyList(kind);
    if (kind == c10::TypeKind::IntType || kind == c10::TypeKind::SymIntType) {
      if (const auto* single = std::get_if<std::int64_t>(&argument)) return put(std::vector<std::int64_t>{*single});
      return bindAs<std::vector<std::int64_t>>(argument);
    }
    if (kind == c10::TypeKind::FloatType || kind == c10::TypeKind::NumberType) {
      if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&argument)) {
        return put(std::vector<double>(integers->begin(), integers->end()));
      }
      return bindAs<std::vector<double>>(argument);
    }
    if (kind == c10::TypeKind::BoolType) {
      const auto* flags = std::get_if<std::vector<bool>>(&argument);
      if (!flags) return false;
      c10::List<bool> list;
      for (bool flag : *flags) list.push_back(flag);
      return put(list);
    }
    return false;
  }
  bool bindEmptyList(c10::TypeKind kind) {
    if (kind == c10::TypeKind::BoolType) return put(c10::List<bool>());
    if (kind == c10::TypeKind::FloatType) return put(std::vector<double>());
    return put(std::vector<std::int64_t>());
  }

  BoundCall& m_call;
  std::size_t m_position;
  at::Device m_device;
};

/// A program is functional: an operator that writes to its arguments or reads files has no place in one.
Result<void> checkPure(const c10::FunctionSchema& schema) {
  if (schema.is_mutable())
    return fail(ErrorCode::BadInput, "the operator overwrites its arguments; programs are functional.");
  if (schema.name() == "aten::from_file") return fail(ErrorCode::BadInput, "the operator reads files.");
  return {};
}

Result<BoundCall> bindParallel(ParallelOp op, const graph::Node& node) {
  CLEAVE_TRY_VOID(checkArguments(op, node));
  BoundCall call{op, std::vector<c10::IValue>(node.args.size()), {}, {}};
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    if (const auto* value = std::get_if<ValueId>(&node.args[i])) call.tensors.emplace_back(i, *value);
    if (const auto* integer = std::get_if<std::int64_t>(&node.args[i])) call.arguments[i] = *integer;
    if (const auto* real = std::get_if<double>(&node.args[i])) call.arguments[i] = *real;
    if (const auto* text = std::get_if<std::string>(&node.args[i])) call.arguments[i] = *text;
  }
  return call;
}

Result<BoundCall> bindDispatched(const c10::OperatorHandle& handle, const graph::Node& node, at::Device device) {
  const auto& schema = handle.schema();
  const auto& wanted = schema.arguments();
  if (node.args.size() > wanted.size()) {
    return fail(ErrorCode::BadInput, "the operator takes {} arguments, not {}.", wanted.size(), node.args.size());
  }
  BoundCall call{handle, std::vector<c10::IValue>(wanted.size()), {}, {}};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Argument argument = i < node.args.size() ? node.args[i] : Argument{};
    if (!ArgumentBinder(call, i, device).bind(argument, wanted[i])) {
      return fail(ErrorCode::BadInput, "argument {} must be of type {}.", wanted[i].name(),
                  wanted[i].real_type()->annotation_str());
    }
  }
  return call;
}

std::optional<c10::OperatorHandle> findOperator(const std::string& name) {
  // `view` wants strides that fit; which strides a local tensor has depends on the plan. `reshape` is the same where
  // they do.
  const std::string actual = name == "aten::view" ? "aten::reshape" : name;
  const std::size_t dot = actual.find('.');
  const std::string base = actual.substr(0, dot);
  const std::string overload = dot == std::string::npos ? "" : actual.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema({base, overload == "default" ? "" : overload});
}

using Target = std::variant<c10::OperatorHandle, ParallelOp>;

Result<Target> findTarget(const std::string& name) {
  if (const auto parallel = parseParallelOp(name)) return Target(*parallel);
  if (!name.starts_with("aten::")) {
    return fail(ErrorCode::BadInput, "the operator is neither one of ATen's nor one that this version of Cleave runs.");
  }
  const auto handle = findOperator(name);
  if (!handle) return fail(ErrorCode::BadInput, "LibTorch knows no such operator.");
  CLEAVE_TRY_VOID(checkPure(handle->schema()));
  return Target(*handle);
}

}  // namespace

std::string nameOfNode(const graph::Graph& graph, graph::NodeId id) {
  const graph::Node& node = graph.node(id);
  const std::string& result = node.results.empty() ? graph.name : graph.value(node.results[0]).name;
  const std::string& scope = graph.scope(node.scope).path;
  return fmt::format("node {} ({} of {}{}{})", id.index(), graph.opName(node), result, scope.empty() ? "" : ", in ",
                     scope);
}

Result<std::vector<std::optional<BoundCall>>> bindCalls(const graph::Graph& graph, at::Device device) {
  std::vector<std::optional<BoundCall>> calls(graph.nodes.size());
  std::vector<std::optional<Result<Target>>> targets(graph.ops.size());
  for (auto id : idRange<graph::NodeId>(graph.nodes.size())) {
    const graph::Node& node = graph.node(id);
    if (node.kind != graph::NodeKind::Call) continue;
    auto& target = targets[node.op.index()];
    if (!target) target = findTarget(graph.opName(node));
    auto bound = translated(
        [&]() -> Result<BoundCall> {
          if (!*target) return tl::unexpected(target->error());
          if (const auto* parallel = std::get_if<ParallelOp>(&**target)) return bindParallel(*parallel, node);
          return bindDispatched(std::get<c10::OperatorHandle>(**target), node, device);
        },
        ErrorCode::BadInput);
    if (!bound)
      return fail(bound.error().code, "The program cannot be run: {}: {}", nameOfNode(graph, id),
                  bound.error().message);
    calls[id.index()] = std::move(*bound);
  }
  return calls;
}

}  // namespace cleave::torch_rank
