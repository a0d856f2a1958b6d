#include "libtorch/capture/operator_arguments.h"

#include "libtorch/bridge/arguments.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/operators.h"

namespace cleave::torch_capture {

std::optional<std::vector<OperatorArgument>> argumentsOf(std::string_view op) {
  const auto handle = bridge::findOperator(op);
  if (!handle) return std::nullopt;
  std::vector<OperatorArgument> arguments;
  for (const c10::Argument& wanted : handle->schema().arguments()) {
    OperatorArgument& argument = arguments.emplace_back();
    const bridge::SchemaKind kind = bridge::schemaKind(wanted);
    argument.name = wanted.name();
    argument.isElementType = kind == bridge::SchemaKind::ElementType;
    argument.isDevice = kind == bridge::SchemaKind::Device;
    if (!wanted.default_value()) continue;
    // Defaults do not contain tensors, so no lookup is needed. An argument whose default a graph cannot represent is
    // required.
    const auto byDefault = [&]() -> Result<graph::Argument> {
      return bridge::toArgument(*wanted.default_value(), kind, {});
    };
    if (auto held = bridge::translated(byDefault, ErrorCode::BadInput)) argument.byDefault = *std::move(held);
  }
  return arguments;
}

}  // namespace cleave::torch_capture
