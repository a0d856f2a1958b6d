#include "tests/support/simulated_gpu/operators.h"

#include "tests/support/simulated_gpu/memory.h"
#include "tests/support/simulated_gpu/stream.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <map>
#include <set>

namespace simulated_gpu {

c10::IValue withTensors(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& replace) {
  const auto replaced = [&](const at::Tensor& tensor) { return tensor.defined() ? replace(tensor) : tensor; };
  if (value.isTensor()) return replaced(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(replaced(tensor));
    return list;
  }
  if (value.isList() && value.toList().elementType()->kind() == c10::TypeKind::OptionalType) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& element : value.toListRef()) {
      const bool isTensor = element.isTensor() && element.toTensor().defined();
      list.push_back(isTensor ? std::optional<at::Tensor>(replace(element.toTensor())) : std::nullopt);
    }
    return list;
  }
  return value;
}

void eachTensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  withTensors(value, [&](const at::Tensor& tensor) {
    visit(tensor);
    return tensor;
  });
}

namespace {

using Stack = torch::jit::Stack;

bool isProduct(const std::string& name) {
  static const std::set<std::string> products{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"};
  return products.contains(name);
}

/// One call of an operator whose operands are on the device.
class DeviceCall {
 public:
  DeviceCall(const c10::OperatorHandle& op, Stack& stack)
      : m_op(op), m_stack(stack), m_arguments(stack.end() - static_cast<std::ptrdiff_t>(count()), stack.end()) {}

  void run() {
    checkDevices();
    if (isProduct(m_op.schema().name())) reserveWorkspace();
    auto results = writes() ? writtenResults() : newResults();
    if (results)
      queue(*results);
    else
      runAndWait();
  }

 private:
  std::size_t count() const { return m_op.schema().arguments().size(); }
  bool isWritten(std::size_t argument) const {
    const auto* alias = m_op.schema().arguments()[argument].alias_info();
    return alias && alias->isWrite();
  }
  bool writes() const {
    for (std::size_t i = 0; i < count(); ++i) {
      if (isWritten(i)) return true;
    }
    return false;
  }

  /// CUDA's kernels accept numbers and indices on the host.
  void checkDevices() const {
    const std::string& name = m_op.schema().name();
    for (const c10::IValue& argument : m_arguments) {
      eachTensor(argument, [&](const at::Tensor& tensor) {
        if (isOnDevice(tensor) || tensor.device().is_meta()) return;
        const bool isIndex = name.find("index") != std::string::npos && tensor.scalar_type() == at::kLong;
        TORCH_CHECK(tensor.dim() == 0 || isIndex,
                    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and ",
                    tensor.device(), "! (in ", name, ")");
      });
    }
  }

  at::TensorOptions onDevice(const at::Tensor& like) const {
    return at::TensorOptions(c10::impl::getDeviceGuardImpl(kDevice)->getDevice()).dtype(like.scalar_type());
  }
  at::Tensor emptyLike(const at::Tensor& like) const {
    return at::empty_strided(like.sizes(), like.strides(), onDevice(like));
  }

  /// Allocates results with the shapes of the meta kernel. nullopt if it has no shapes, or if some results are not
  /// tensors.
  std::optional<Stack> newResults() const {
    for (const c10::Argument& result : m_op.schema().returns()) {
      const auto& type = *result.type();
      const bool isList = type.kind() == c10::TypeKind::ListType &&
                          type.castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::TensorType;
      if (type.kind() != c10::TypeKind::TensorType && !isList) return std::nullopt;
      TORCH_CHECK(!result.alias_info(), "the simulated GPU lacks the view ", m_op.schema().name());
    }
    Stack meta;
    try {
      for (const c10::IValue& argument : m_arguments) meta.push_back(onMeta(argument));
      const c10::impl::ExcludeDispatchKeyGuard noGradients(c10::autograd_dispatch_keyset);
      m_op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &meta);
    } catch (const std::exception&) {
      return std::nullopt;
    }
    Stack results;
    for (const c10::IValue& result : meta)
      results.push_back(withTensors(result, [this](const at::Tensor& like) { return emptyLike(like); }));
    return results;
  }
  static c10::IValue onMeta(const c10::IValue& argument) {
    if (argument.isDevice()) return at::Device(at::kMeta);
    return withTensors(argument, [](const at::Tensor& tensor) {
      const at::TensorOptions options = at::TensorOptions(tensor.scalar_type()).device(at::kMeta);
      at::Tensor meta = at::empty_strided(tensor.sizes(), tensor.strides(), options);
      if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) meta.unsafeGetTensorImpl()->set_wrapped_number(true);
      return meta;
    });
  }

  /// The arguments that are written; nullopt if `out` is empty and gets its size from the operator.
  std::optional<Stack> writtenResults() const {
    Stack results;
    bool isSized = true;
    for (const c10::Argument& result : m_op.schema().returns()) {
      for (std::size_t i = 0; i < count(); ++i) {
        if (!isWritten(i) || !result.alias_info() ||
            m_op.schema().arguments()[i].alias_info()->beforeSet() != result.alias_info()->beforeSet())
          continue;
        results.push_back(m_arguments[i]);
        break;
      }
    }
    TORCH_CHECK(results.size() == m_op.schema().returns().size(), "the simulated GPU cannot return what ",
                m_op.schema().name(), " writes");
    if (m_op.schema().overload_name().find("out") != std::string::npos) {
      for (const c10::IValue& result : results)
        eachTensor(result, [&](const at::Tensor& tensor) { isSized = isSized && tensor.numel() > 0; });
    }
    return isSized ? std::optional(results) : std::nullopt;
  }

  Stack kernelArguments() const {
    Stack arguments;
    for (const c10::IValue& argument : m_arguments) {
      if (argument.isDevice() && argument.toDevice().type() == kDevice)
        arguments.emplace_back(at::Device(at::kCPU));
      else
        arguments.push_back(withTensors(
            argument, [](const at::Tensor& tensor) { return isOnDevice(tensor) ? forKernels(tensor) : tensor; }));
    }
    return arguments;
  }

  void queue(Stack& results) {
    std::vector<at::Tensor> outputs;
    if (!writes()) {
      for (const c10::IValue& result : results)
        eachTensor(result, [&](const at::Tensor& tensor) { outputs.push_back(forKernels(tensor)); });
    }
    currentStream().push(
        [op = m_op, arguments = kernelArguments(), outputs, isInPlace = writes()]() mutable {
          Stack stack = arguments;  // boxed calls still read operands after they dropped them
          op.callBoxed(stack);
          if (!isInPlace) copyResults(op, stack, outputs);
        },
        true);
    torch::jit::drop(m_stack, count());
    for (c10::IValue& result : results) m_stack.push_back(std::move(result));
  }

  static void copyResults(const c10::OperatorHandle& op, const Stack& results, std::vector<at::Tensor>& outputs) {
    std::size_t next = 0;
    for (const c10::IValue& result : results) {
      eachTensor(result, [&](const at::Tensor& tensor) {
        TORCH_CHECK(next < outputs.size() && tensor.sizes() == outputs[next].sizes() &&
                        tensor.scalar_type() == outputs[next].scalar_type(),
                    op.schema().name(), ": the result differs from its meta kernel");
        outputs[next++].copy_(tensor);
      });
    }
  }

  /// If the result's shape is unknown, the host must wait, as on a GPU (nonzero, unique, equal).
  void runAndWait() {
    currentStream().synchronize();
    const at::AutoDispatchBelowADInplaceOrView below;
    std::vector<std::pair<at::Tensor, at::Tensor>> written;  // on the host, on the device
    Stack stack;
    for (std::size_t i = 0; i < count(); ++i) {
      if (m_arguments[i].isDevice() && m_arguments[i].toDevice().type() == kDevice) {
        stack.emplace_back(at::Device(at::kCPU));
        continue;
      }
      stack.push_back(withTensors(m_arguments[i], [&](const at::Tensor& tensor) {
        if (!isOnDevice(tensor)) return tensor;
        at::Tensor host = forKernels(tensor).clone();
        if (isWritten(i)) written.emplace_back(host, tensor);
        return host;
      }));
    }
    const Stack kept = stack;
    m_op.callBoxed(stack);
    for (auto& [host, device] : written) {
      if (host.sizes() != device.sizes()) device.resize_(host.sizes());
      device.copy_(host);
    }
    torch::jit::drop(m_stack, count());
    for (const c10::IValue& result : stack)
      m_stack.push_back(withTensors(result, [&](const at::Tensor& tensor) {
        for (const auto& [host, device] : written) {
          if (host.is_same(tensor)) return device;
        }
        at::Tensor moved = emptyLike(tensor);
        moved.copy_(tensor);
        return moved;
      }));
  }

  const c10::OperatorHandle& m_op;
  Stack& m_stack;
  const Stack m_arguments;
};

void runOnDevice(const c10::OperatorHandle& op, Stack* stack) { DeviceCall(op, *stack).run(); }

}  // namespace
}  // namespace simulated_gpu

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&simulated_gpu::runOnDevice>());
}
