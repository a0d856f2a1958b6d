#include "libtorch/capture/recorder.h"

#include "graph/graph_builder.h"
#include "libtorch/capture/dropped_attention.h"

#include "libtorch/bridge/operators.h"
#include "libtorch/bridge/types.h"
#include "libtorch/capture/joins.h"
#include "libtorch/capture/mixtures.h"
#include "libtorch/capture/products.h"

#include <ATen/EmptyTensor.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/ops/alias_ops.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>

namespace cleave::torch_capture {
namespace {

using c10::DispatchKey;
using c10::IValue;
using graph::Argument;
using graph::GraphBuilder;
using graph::NodeId;
using graph::ScopeId;
using graph::TensorType;
using graph::ValueId;
using torch::jit::Stack;

constexpr DispatchKey kCapturedKey = DispatchKey::TESTING_ONLY_GenericMode;
constexpr DispatchKey kAtenKey = DispatchKey::Fake;

thread_local Recorder* t_recorder = nullptr;

TensorType typeOf(const at::Tensor& tensor) {
  const auto dtype = bridge::toDType(tensor.scalar_type());
  TORCH_CHECK(dtype, "element type ", tensor.scalar_type(), " is not supported in graphs");
  return {*dtype, tensor.sizes().vec()};
}

bool isWrappedNumber(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->is_wrapped_number(); }

Argument numberOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kLong: return *static_cast<const std::int64_t*>(tensor.const_data_ptr());
    case at::kDouble: return *static_cast<const double*>(tensor.const_data_ptr());
    case at::kBool: return *static_cast<const bool*>(tensor.const_data_ptr());
    default: TORCH_CHECK(false, "a number of type ", tensor.scalar_type(), " is not supported in graphs");
  }
}

at::Tensor functionalMeta(at::Tensor inner) { return at::functionalization::impl::to_functional_tensor(inner); }

at::Tensor innerOf(const at::Tensor& functional) {
  return at::functionalization::impl::from_functional_tensor(functional);
}

/// The same for an operand, including lists. A number in place of a tensor does not change.
IValue innerValueOf(const IValue& value) {
  const auto inner = [](const at::Tensor& tensor) {
    return at::functionalization::impl::isFunctionalTensor(tensor) ? innerOf(tensor) : tensor;
  };
  if (value.isTensor() && value.toTensor().defined()) return inner(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(inner(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec())
      list.push_back(tensor && tensor->defined() ? std::optional(inner(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

bool isStale(const at::Tensor& tensor) {
  return at::functionalization::impl::isFunctionalTensor(tensor) &&
         !at::functionalization::impl::unsafeGetFunctionalWrapper(tensor)->is_up_to_date();
}

template <class Visit>
void forEachTensorIn(c10::ArrayRef<IValue> values, Visit visit) {
  for (const IValue& value : values) bridge::forEachTensor(value, visit);
}

}  // namespace

const void* storageOf(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

/// Facts about an operator, looked up once per recording.
struct Recorder::OpInfo {
  std::string name;                       ///< "aten::sum.dim_IntList"
  std::size_t operands = 0, results = 0;  ///< number in the schema
  std::vector<bridge::SchemaKind> kinds;
  std::vector<std::size_t> written;  ///< indices of operands that it mutates
  ShapeFunction leaf = nullptr;
  Normaliser normaliser = nullptr;
};

/// Tensors are identified by their TensorImpl. They are kept alive so that addresses are not reused.
struct Recorder::Layer {
  explicit Layer(const std::string& name) : builder(name) {}

  bool tracks(const at::Tensor& tensor) const { return values.contains(tensor.unsafeGetTensorImpl()); }
  void track(const at::Tensor& tensor, ValueId value) {
    if (values.insert_or_assign(tensor.unsafeGetTensorImpl(), value).second) kept.push_back(tensor);
  }
  ValueId valueOf(const at::Tensor& tensor) const {
    const auto found = values.find(tensor.unsafeGetTensorImpl());
    return found == values.end() ? ValueId() : found->second;
  }
  Argument argumentOf(const at::Tensor& tensor) const {
    const ValueId value = valueOf(tensor);
    if (value.isValid()) return value;
    TORCH_CHECK(isWrappedNumber(tensor), "an operand is not computed from the model's inputs, parameters or constants");
    return numberOf(tensor);
  }
  std::vector<Argument> argumentsOf(const OpInfo& info, c10::ArrayRef<IValue> operands) const {
    std::vector<Argument> args;
    args.reserve(operands.size());
    const bridge::TensorToArgument convert = [this](const at::Tensor& tensor) { return argumentOf(tensor); };
    for (std::size_t i = 0; i < operands.size(); ++i)
      args.push_back(bridge::toArgument(operands[i], info.kinds[i], convert));
    return args;
  }

  GraphBuilder builder;
  std::unordered_map<const c10::TensorImpl*, ValueId> values;
  std::vector<at::Tensor> kept;
};

/// The two functions that LibTorch's dispatcher calls, registered once in the process. They have no effect on threads
/// that do not record, because only Recording includes their keys.
struct Recorder::Fallbacks {
  static void captured(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard once(kCapturedKey);
    t_recorder->recordCaptured(op, *stack);
  }
  static void aten(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard once(kAtenKey);
    t_recorder->recordAten(op, *stack);
  }
  static void registerOnce() {
    // They live as long as the process, because the dispatcher may be destroyed first.
    static const auto* const libraries = [] {
      auto* made = new std::pair(torch::Library(torch::Library::IMPL, "_", kCapturedKey, __FILE__, __LINE__),
                                 torch::Library(torch::Library::IMPL, "_", kAtenKey, __FILE__, __LINE__));
      made->first.fallback(torch::CppFunction::makeFromBoxedFunction<&captured>());
      made->second.fallback(torch::CppFunction::makeFromBoxedFunction<&aten>());
      return made;
    }();
    (void)libraries;
    registerMetaKernels();
  }
};

Recorder::Recorder(const std::string& graphName)
    : m_captured(std::make_unique<Layer>(graphName)),
      m_aten(std::make_unique<Layer>(graphName)),
      m_scopes{ScopeId(0)} {}
Recorder::~Recorder() = default;

const Recorder::OpInfo& Recorder::infoOf(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const auto [entry, isNew] = m_ops.try_emplace(&schema);
  OpInfo& info = entry->second;
  if (!isNew) return info;
  info.name = bridge::nameOf(schema.operator_name());
  info.operands = schema.arguments().size();
  info.results = schema.returns().size();
  for (std::size_t i = 0; i < info.operands; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    info.kinds.push_back(bridge::schemaKind(argument));
    if (argument.alias_info() && argument.alias_info()->isWrite()) info.written.push_back(i);
  }
  info.leaf = leafShapeFunction(info.name);
  info.normaliser = normaliserFor(info.name);
  return info;
}

at::Tensor Recorder::addSource(const TensorType& type, ValueId captured, ValueId aten) {
  const at::Tensor inner = at::detail::empty_meta(type.shape, bridge::toScalarType(type.dtype));
  at::Tensor tensor = functionalMeta(inner);
  m_captured->track(tensor, captured);
  m_aten->track(inner, aten);
  m_sources.emplace_back(captured, aten);
  return tensor;
}

at::Tensor Recorder::addInput(const std::string& name, const TensorType& type) {
  return addSource(type, m_captured->builder.addInput(name, type), m_aten->builder.addInput(name, type));
}

at::Tensor Recorder::addParameter(const std::string& name, const TensorType& type) {
  const ScopeId scope = m_scopes.back();
  return addSource(type, m_captured->builder.addParameter(name, type, scope),
                   m_aten->builder.addParameter(name, type, scope));
}

at::Tensor Recorder::addConstant(const std::string& name, const at::Tensor& cpuValue) {
  const Suspension unrecorded;
  const at::Tensor dense = cpuValue.contiguous();
  std::vector<std::byte> bytes(dense.nbytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), dense.const_data_ptr(), bytes.size());
  const TensorType type = typeOf(dense);
  const ScopeId scope = m_scopes.back();
  const ValueId captured = m_captured->builder.addConstant(name, type, bytes, scope);
  return addSource(type, captured, m_aten->builder.addConstant(name, type, std::move(bytes), scope));
}

void Recorder::addTiedName(const std::string& parameter, const std::string& otherName) {
  m_captured->builder.addTiedName(parameter, otherName);
  m_aten->builder.addTiedName(parameter, otherName);
}

void Recorder::freeze(const std::string& parameter) {
  m_captured->builder.freeze(parameter);
  m_aten->builder.freeze(parameter);
}

void Recorder::setStackedName(const std::string& parameter, const graph::StackedName& stored) {
  m_captured->builder.setStackedName(parameter, stored);
  m_aten->builder.setStackedName(parameter, stored);
}

void Recorder::addOutput(const std::string& name, const at::Tensor& tensor) {
  {
    const c10::impl::ExcludeDispatchKeyGuard below(kCapturedKey);
    recordPendingReplays(tensor);
  }
  const ValueId captured = m_captured->valueOf(tensor);
  const ValueId aten = m_aten->valueOf(innerOf(tensor));
  TORCH_CHECK(captured.isValid() && aten.isValid(), "output ", name, " is not computed by recorded operators");
  m_captured->builder.addOutput(name, captured);
  m_aten->builder.addOutput(name, aten);
}

void Recorder::enterModule(const std::string& path, std::string_view className) {
  const ScopeId scope = m_captured->builder.scope(path, className);
  const ScopeId below = m_aten->builder.scope(path, className);
  CLEAVE_CHECK(scope == below, "module {} has two ids", path);
  m_scopes.push_back(scope);
}

void Recorder::leaveModule() { m_scopes.pop_back(); }

void Recorder::setSource(const std::string& line) { m_captured->builder.setSource(line); }

std::string Recorder::currentPlace() const {
  if (!m_current) return {};
  const std::string& path = m_captured->builder.current().scope(m_currentScope).path;
  return path.empty() ? m_current->name : fmt::format("{} in module {}", m_current->name, path);
}

void Recorder::recordCaptured(const c10::OperatorHandle& op, Stack& stack) {
  const OpInfo& info = infoOf(op);
  m_current = &info;
  m_currentScope = m_scopes.back();
  const auto operands = torch::jit::last(stack, info.operands);
  syncOperands(info, stack);
  std::vector<Argument> args = m_captured->argumentsOf(info, operands);
  std::vector<at::Tensor> written;
  for (const std::size_t index : info.written)
    bridge::forEachTensor(operands[index], [&](const at::Tensor& tensor) { written.push_back(tensor); });
  std::vector<const void*> identities;
  forEachTensorIn(operands, [&](const at::Tensor& tensor) { identities.push_back(tensor.unsafeGetTensorImpl()); });

  m_origin = NodeId(m_captured->builder.current().nodes.size());
  m_atenScope = m_scopes.back();
  const std::size_t nodesBefore = m_aten->builder.current().nodes.size();
  const auto start = std::chrono::steady_clock::now();
  runBelow(info, op, stack);
  if (info.written.empty()) makeResultsFresh(info, identities, nodesBefore, stack);
  m_timeBelow += std::chrono::steady_clock::now() - start;

  std::vector<at::Tensor> results;
  forEachTensorIn(torch::jit::last(stack, info.results), [&](const at::Tensor& tensor) { results.push_back(tensor); });
  std::vector<TensorType> types;
  for (const at::Tensor& result : results) types.push_back(typeOf(result));
  const auto values = m_captured->builder.addCall(info.name, std::move(args), std::move(types), m_scopes.back());
  for (std::size_t i = 0; i < results.size(); ++i) m_captured->track(results[i], values[i]);
  for (const at::Tensor& tensor : written) m_mutators[storageOf(tensor)] = {m_origin, m_scopes.back()};
  m_current = nullptr;
}

void Recorder::syncOperands(const OpInfo& info, const Stack& stack) {
  forEachTensorIn(torch::jit::last(stack, info.operands),
                  [&](const at::Tensor& tensor) { recordPendingReplays(tensor); });
}

/// Records pending replays of functionalization in the ATen graph. They belong to the last writer.
void Recorder::recordPendingReplays(const at::Tensor& tensor) {
  if (!isStale(tensor)) return;
  if (const auto mutator = m_mutators.find(storageOf(tensor)); mutator != m_mutators.end())
    std::tie(m_origin, m_atenScope) = mutator->second;
  at::functionalization::impl::sync(tensor);
}

void Recorder::runBelow(const OpInfo& info, const c10::OperatorHandle& op, Stack& stack) {
  if (m_wholeResults) {
    runWhole(info, stack, [&](const std::vector<IValue>&) {
      MetaTensors results;
      for (const TensorType& type : *m_wholeResults)
        results.push_back(at::detail::empty_meta(type.shape, bridge::toScalarType(type.dtype)));
      return results;
    });
  } else if (isDroppedAttention(info.name, torch::jit::last(stack, info.operands))) {
    const Stack operands = torch::jit::pop(stack, info.operands);
    stack.emplace_back(droppedAttention(operands, [this](const at::Tensor& x, double chance) {
      static const auto dropout = c10::Dispatcher::singleton().findSchemaOrThrow("aten::dropout", "");
      Stack call{x, chance, true};
      runLeaf(infoOf(dropout), call);
      return call.back().toTensor();
    }));
  } else if (info.leaf) {
    runLeaf(info, stack);
  } else {
    op.callBoxed(&stack);
  }
}

void Recorder::callWhole(const c10::OperatorHandle& op, const std::vector<TensorType>& results, Stack& stack) {
  m_wholeResults = &results;
  const c10::impl::ExcludeDispatchKeyGuard once(kCapturedKey);
  try {
    recordCaptured(op, stack);
  } catch (...) {
    m_wholeResults = nullptr;
    throw;
  }
  m_wholeResults = nullptr;
}

/// A leaf's result is a fresh functional tensor from the shape function, so that its internals are never recorded.
void Recorder::runLeaf(const OpInfo& info, Stack& stack) {
  runWhole(info, stack, [&](const std::vector<IValue>& operands) { return info.leaf(operands); });
}

void Recorder::runWhole(const OpInfo& info, Stack& stack,
                        const std::function<MetaTensors(const std::vector<IValue>&)>& makeResults) {
  std::vector<IValue> inner = torch::jit::pop(stack, info.operands);
  for (IValue& value : inner) value = innerValueOf(value);
  std::vector<Argument> args = m_aten->argumentsOf(info, inner);
  std::vector<IValue> results;
  for (at::Tensor& result : makeResults(inner)) results.emplace_back(std::move(result));
  appendAten(info, args, results);
  for (const IValue& result : results) stack.emplace_back(functionalMeta(result.toTensor()));
}

/// An operator without effect (a cast to the same type, dropout in evaluation) returns its own operand, or runs nothing
/// below. An alias keeps it in the ATen graph, so that every captured node has a counterpart.
void Recorder::makeResultsFresh(const OpInfo& info, const std::vector<const void*>& operands, std::size_t nodesBefore,
                                Stack& stack) {
  const bool didNothing = m_aten->builder.current().nodes.size() == nodesBefore;
  for (std::size_t i = stack.size() - info.results; i < stack.size(); ++i) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    const at::Tensor& result = stack[i].toTensor();
    if (didNothing || std::ranges::find(operands, result.unsafeGetTensorImpl()) != operands.end())
      stack[i] = at::_ops::alias::call(result);
  }
}

void Recorder::recordAten(const c10::OperatorHandle& op, Stack& stack) {
  const OpInfo& info = infoOf(op);
  const auto operands = torch::jit::last(stack, info.operands);
  bool isTracked = true;
  forEachTensorIn(operands, [&](const at::Tensor& tensor) {
    isTracked = isTracked && (m_aten->tracks(tensor) || isWrappedNumber(tensor));
  });
  if (!isTracked) return op.callBoxed(&stack);
  std::vector<Argument> args = m_aten->argumentsOf(info, operands);
  op.callBoxed(&stack);
  appendAten(info, args, torch::jit::last(stack, info.results));
}

void Recorder::appendAten(const OpInfo& info, std::vector<Argument>& args, c10::ArrayRef<IValue> results) {
  std::vector<TensorType> types;
  forEachTensorIn(results, [&](const at::Tensor& tensor) { types.push_back(typeOf(tensor)); });
  const auto values = info.normaliser({m_aten->builder, info.name, args, types, m_atenScope, m_origin});
  std::size_t next = 0;
  forEachTensorIn(results, [&](const at::Tensor& tensor) { m_aten->track(tensor, values[next++]); });
}

Result<RecordedGraphs> Recorder::finish() && {
  RecordedGraphs graphs;
  CLEAVE_TRY(graphs.captured, std::move(m_captured->builder).finish());
  CLEAVE_TRY(graphs.aten, std::move(m_aten->builder).finish());
  for (const auto& [captured, aten] : m_sources) {
    graphs.aten.nodes[graphs.aten.value(aten).producer.index()].origin = graphs.captured.value(captured).producer;
  }
  graphs.aten.sources = graphs.captured.sources;
  for (graph::Node& node : graphs.aten.nodes) {
    if (node.origin.isValid()) node.source = graphs.captured.node(node.origin).source;
  }
  makeJoins(graphs.aten);
  makeLinear(graphs.aten);
  makeExperts(graphs.aten);
  return graphs;
}

struct Recorder::Recording::Guards {
  Recorder* outer = t_recorder;
  // Autograd's keys stay on, because composite operators decompose there, above functionalization.
  c10::NoGradGuard noGrad;
  c10::impl::IncludeDispatchKeyGuard captured{kCapturedKey}, aten{kAtenKey}, functional{DispatchKey::Functionalize};
  at::functionalization::impl::FunctionalizationReapplyViewsGuard views{/*reapply_views=*/true};
};

Recorder::Recording::Recording(Recorder& recorder) {
  Fallbacks::registerOnce();
  m_guards = std::make_unique<Guards>();
  t_recorder = &recorder;
}
Recorder::Recording::~Recording() { t_recorder = m_guards->outer; }

struct Recorder::Suspension::Guards {
  c10::impl::ExcludeDispatchKeyGuard excluded{
      c10::DispatchKeySet({kCapturedKey, kAtenKey, DispatchKey::Functionalize})};
};
Recorder::Suspension::Suspension() : m_guards(std::make_unique<Guards>()) {}
Recorder::Suspension::~Suspension() = default;

}  // namespace cleave::torch_capture
