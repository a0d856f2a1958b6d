#include "libtorch/capture/exported_replay.h"

#include "base/json.h"
#include "base/quantities.h"
#include "graph/operators.h"
#include "libtorch/bridge/operators.h"
#include "libtorch/bridge/types.h"

#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <unordered_set>

namespace cleave::torch_capture {
namespace {

using c10::IValue;
using formats::ExportedArgument;
using formats::ExportedId;
using formats::ExportedInput;
using formats::ExportedInputKind;
using formats::ExportedNode;
using formats::ExportedValue;
using graph::Argument;
using graph::TensorType;
using graph::ValueId;

constexpr int kProgressEvery = 256;

/// "aten::add.Tensor" for "torch.ops.aten.add.Tensor"; empty for operators that neither LibTorch nor Cleave has.
std::string operatorName(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.aten.", kDefault = ".default";
  if (target == "torch.ops.transformers.grouped_mm_fallback.default") return std::string(graph::kGroupedProduct);
  if (!target.starts_with(kPrefix)) return {};
  target.remove_prefix(kPrefix.size());
  if (target.ends_with(kDefault)) target.remove_suffix(kDefault.size());
  return "aten::" + std::string(target);
}

/// Assertions about tensors and sizes. Meta tensors have no values to check, and shapes are compared with the archive
/// anyway.
bool isAssertion(std::string_view op) {
  static const std::unordered_set<std::string_view> kNames{"aten::_assert_tensor_metadata",
                                                           "aten::_assert_async",
                                                           "aten::_assert_async.msg",
                                                           "aten::sym_constrain_range",
                                                           "aten::sym_constrain_range_for_size",
                                                           "aten::_print"};
  return kNames.contains(op);
}

/// Operators whose results depend on values that are known only in a run.
bool readsData(std::string_view op) {
  static const std::unordered_set<std::string_view> kNames{"aten::item",          "aten::_local_scalar_dense",
                                                           "aten::nonzero",       "aten::nonzero_numpy",
                                                           "aten::masked_select", "aten::unique_dim",
                                                           "aten::_unique2",      "aten::unique_consecutive",
                                                           "aten::is_nonzero",    "aten::equal",
                                                           "aten::bincount",      "aten::repeat_interleave.Tensor"};
  return kNames.contains(op);
}

const ExportedArgument* findArgument(const ExportedNode& node, std::string_view name) {
  const auto found = std::find_if(node.arguments.begin(), node.arguments.end(),
                                  [&](const auto& argument) { return argument.first == name; });
  return found == node.arguments.end() ? nullptr : &found->second;
}

std::size_t resultCount(const ExportedNode& node) {
  std::size_t count = 0;
  for (const auto& result : node.results) {
    const auto* list = std::get_if<std::vector<ExportedId>>(&result);
    count += list ? list->size() : 1;
  }
  return count;
}

/// Number of tensors that a splitting operator would make; nullopt for others. Checked first, because a file may
/// contain 2^40.
std::optional<std::int64_t> piecesOf(const std::string& op, const std::vector<IValue>& stack) {
  const bool takesDim = op == "aten::unbind.int" || op == "aten::split.Tensor";
  if (takesDim) {
    const at::Tensor& tensor = stack[0].toTensor();
    const std::int64_t dim = stack.back().toInt();
    if (dim < -tensor.dim() || dim >= tensor.dim()) return std::nullopt;
    const std::int64_t size = tensor.size(dim);
    if (op == "aten::unbind.int") return size;
    const std::int64_t each = stack[1].toInt();
    return each > 0 ? (size + each - 1) / each : 1;
  }
  if (op == "aten::chunk" || op == "aten::tensor_split.sections") return stack[1].toInt();
  return std::nullopt;
}

graph::Argument asArgument(const Number& number) {
  return std::visit([](auto value) { return graph::Argument(value); }, number);
}

}  // namespace

struct ExportedReplay::Operator {
  std::string name;
  std::optional<c10::OperatorHandle> handle;
  std::optional<std::size_t> device;  ///< position of the device argument
};

ExportedReplay::ExportedReplay(const formats::ExportedProgram& program, const formats::SymbolSizes& sizes)
    : m_program(program),
      m_sizes(sizes),
      m_tensors(program, sizes),
      m_slots(program.values.size()),
      m_knowsModules(program.modules.size()) {
  for (const ExportedInput& input : program.inputs) {
    if (input.kind != ExportedInputKind::User) m_stored.emplace(input.value.raw(), &input);
  }
}

ExportedReplay::~ExportedReplay() = default;

void ExportedReplay::run(Recorder& recorder, const Progress& progress) {
  m_recorder = &recorder;
  addUserInputs();
  const Recorder::Recording recording(recorder);
  for (const ExportedInput* shared : m_tensors.sharedParameters()) slotOf(shared->value);
  int done = 0;
  for (const ExportedNode& node : m_program.nodes) {
    if (++done % kProgressEvery == 0 && progress.cancelled()) throw Stopped();
    m_current = &node;
    enterModuleOf(node);
    static const std::string kNone;
    recorder.setSource(node.source ? m_program.sources[*node.source] : kNone);
    runNode(node);
  }
  m_current = nullptr;
  if (std::exchange(m_isInModule, false)) recorder.leaveModule();
  for (std::size_t i = 0; i < m_program.outputs.size(); ++i) {
    const std::string name = m_program.outputs.size() == 1 ? "output" : fmt::format("output_{}", i);
    recorder.addOutput(name, tensorOf(m_program.outputs[i]));
  }
}

std::string ExportedReplay::placeOf(const Recorder& recorder) const {
  if (!m_current) return recorder.currentPlace();
  const std::string& path = m_program.modules[m_current->module].back().path;
  return fmt::format("{}{}{}{}{}", m_current->target, path.empty() ? "" : " in module ", path,
                     m_current->source ? ", at " : "", m_current->source ? m_program.sources[*m_current->source] : "");
}

void ExportedReplay::addUserInputs() {
  for (const ExportedInput& input : m_program.inputs) {
    if (input.kind != ExportedInputKind::User) continue;
    const ExportedValue& value = m_program.value(input.value);
    if (value.tensor) {
      const auto shape = value.tensor->shapeFor(m_sizes);
      TORCH_CHECK(shape, "the size of the input ", input.name, " cannot be computed");
      m_slots[input.value.index()] = m_recorder->addInput(input.name, {value.tensor->dtype, *shape});
    } else if (value.number) {
      const auto number = formats::ExportedTensor{graph::DType::Int64, {*value.number}}.shapeFor(m_sizes);
      TORCH_CHECK(number, "the number of the input ", input.name, " cannot be computed");
      m_slots[input.value.index()] = number->front();
    }
  }
}

void ExportedReplay::enterModuleOf(const ExportedNode& node) {
  const formats::ExportedModules& modules = m_program.modules[node.module];
  if (std::exchange(m_isInModule, false)) m_recorder->leaveModule();
  if (!m_knowsModules[node.module]) {
    m_knowsModules[node.module] = true;
    for (const formats::ExportedModule& module : modules) {
      m_recorder->enterModule(module.path, module.className);
      m_recorder->leaveModule();
    }
  }
  m_recorder->enterModule(modules.back().path, modules.back().className);
  m_isInModule = true;
}

void ExportedReplay::runNode(const ExportedNode& node) {
  if (isNumberOperator(node.target)) return runNumberOperator(node);
  if (!runWithoutDispatcher(node)) runOperator(node);
}

void ExportedReplay::runNumberOperator(const ExportedNode& node) {
  std::vector<Number> operands;
  for (const auto& [name, argument] : node.arguments) operands.push_back(numberOf(argument));
  const auto result = applyNumberOperator(node.target, operands);
  TORCH_CHECK(result, "the operator has no result for these numbers");
  TORCH_CHECK(node.results.size() == 1, "the operator has one result, but the program names ", node.results.size());
  if (const auto* id = std::get_if<ExportedId>(&node.results[0]); id && id->isValid())
    m_slots[id->index()] = std::visit([](auto value) { return Slot(value); }, *result);
}

/// Handles queries of shapes, and assertions.
bool ExportedReplay::runWithoutDispatcher(const ExportedNode& node) {
  const std::string op = operatorName(node.target);
  if (isAssertion(op)) return true;
  if (op == "aten::_assert_scalar") {
    const ExportedArgument* condition = findArgument(node, "self");
    const bool holds = condition && std::visit([](auto value) { return value != 0; }, numberOf(*condition));
    const ExportedArgument* message = findArgument(node, "assert_msg");
    const auto* text = message ? std::get_if<std::string>(message) : nullptr;
    TORCH_CHECK(holds, "the program does not support these sizes: ", text ? *text : "an assertion fails");
    return true;
  }
  if (!op.starts_with("aten::sym_") || op == "aten::sym_is_contiguous") return false;
  const ExportedArgument* self = findArgument(node, "self");
  const auto* id = self ? std::get_if<ExportedId>(self) : nullptr;
  TORCH_CHECK(id && id->isValid() && node.results.size() == 1, "the operator has no tensor to read a size from");
  const at::Tensor& tensor = tensorOf(*id);
  const auto dim = [&]() -> std::int64_t {
    const ExportedArgument* written = findArgument(node, "dim");
    const auto* number = written ? std::get_if<std::int64_t>(written) : nullptr;
    TORCH_CHECK(number, "the dimension is missing");
    return *number;
  };
  std::int64_t answer = 0;
  if (op == "aten::sym_size.int") {
    answer = tensor.size(dim());
  } else if (op == "aten::sym_stride.int") {
    answer = tensor.stride(dim());
  } else if (op == "aten::sym_numel") {
    answer = tensor.numel();
  } else if (op == "aten::sym_storage_offset") {
    answer = tensor.storage_offset();
  } else {
    return false;
  }
  if (const auto* result = std::get_if<ExportedId>(&node.results[0]); result && result->isValid())
    m_slots[result->index()] = answer;
  return true;
}

ExportedReplay::Operator& ExportedReplay::operatorOf(const ExportedNode& node) {
  const auto [entry, isNew] = m_operators.try_emplace(node.target);
  Operator& op = entry->second;
  if (isNew) {
    op.name = operatorName(node.target);
    if (!op.name.empty()) op.handle = bridge::findOperator(op.name);
    if (op.handle && !readsData(op.name)) {
      const auto& arguments = op.handle->schema().arguments();
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (bridge::schemaKind(arguments[i]) == bridge::SchemaKind::Device) op.device = i;
      }
    }
  }
  TORCH_CHECK(!op.name.empty(),
              "the operator is not part of ATen, and Cleave splits only ATen operators. Export the model with "
              "PyTorch operators instead");
  TORCH_CHECK(op.handle, "LibTorch does not have this operator");
  TORCH_CHECK(op.name != "aten::from_file", "the operator reads a file");
  TORCH_CHECK(!readsData(op.name),
              "the shapes of its results depend on the values of its operands, but plans need "
              "fixed shapes");
  return op;
}

std::vector<IValue> ExportedReplay::stackFor(const Operator& op, const ExportedNode& node) {
  const c10::FunctionSchema& schema = op.handle->schema();
  const auto& wanted = schema.arguments();
  bridge::BoundArguments bound(wanted.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ExportedArgument* given = findArgument(node, wanted[i].name());
    found += given != nullptr;
    Argument argument = given ? argumentOf(*given) : Argument();
    // Meta tensors are not on a device, so they cannot be pinned.
    if (wanted[i].name() == "pin_memory") argument = Argument();
    TORCH_CHECK(bridge::bindArgument(argument, wanted[i], at::kMeta, i, bound), "its argument ", wanted[i].name(),
                " must be of type ", wanted[i].real_type()->annotation_str());
  }
  TORCH_CHECK(found == node.arguments.size(), "the call has an argument that the operator does not have");
  // A tensor made without operands belongs on the same device as the others.
  if (op.device && bound.tensors.empty() && bound.lists.empty()) bound.values[*op.device] = c10::Device(at::kMeta);
  return bound.with([&](ValueId id) { return tensorOf(ExportedId(id.index())); });
}

void ExportedReplay::checkReal(const ExportedNode& node) const {
  for (const auto& result : node.results) {
    const auto* id = std::get_if<ExportedId>(&result);
    TORCH_CHECK(!id || !id->isValid() || !m_program.value(*id).isComplex, "it gives ", formats::kNoComplexNumbers);
  }
}

void ExportedReplay::runOperator(const ExportedNode& node) {
  const Operator& op = operatorOf(node);
  checkReal(node);
  std::vector<IValue> stack = stackFor(op, node);
  if (const auto pieces = piecesOf(op.name, stack)) {
    const std::size_t named = resultCount(node);
    TORCH_CHECK(*pieces <= static_cast<std::int64_t>(named) || op.name == "aten::chunk", "the operator returns ",
                *pieces, " tensors, but the program names ", named);
    TORCH_CHECK(*pieces <= (1 << 20), "the operator would return ", *pieces, " tensors");
  }
  constexpr std::size_t kTraining = 4;
  const bool drawsSlopes = op.name.starts_with("aten::rrelu_with_noise") && stack[kTraining].toBool();
  TORCH_CHECK(!drawsSlopes,
              "its backward pass needs the random slopes, which a plan's program does not save. "
              "Call model.eval() before the export, or use F.leaky_relu");
  checkWrites(op, stack);
  try {
    callOperator(op, stack);
  } catch (const c10::NotImplementedError&) {
    // LibTorch needs data to compute the results' shapes; the archive has them.
    const auto types = declaredResults(node);
    if (!types || op.handle->schema().is_mutable()) throw;
    stack = stackFor(op, node);
    m_recorder->callWhole(*op.handle, *types, stack);
  }
  storeResults(node, stack);
}

/// A view of the exporter's memory layout may not be possible in LibTorch's layout here. A copy is equivalent if
/// nothing writes to either.
void ExportedReplay::callOperator(const Operator& op, std::vector<IValue>& stack) {
  if (op.name != "aten::view") return op.handle->callBoxed(&stack);
  const at::Tensor& self = stack[0].toTensor();
  const std::vector<std::int64_t> sizes = stack[1].toIntVector();
  const auto wanted = at::infer_size_dv(sizes, self.numel());
  if (at::detail::computeStride(self.sizes(), self.strides(), wanted)) return op.handle->callBoxed(&stack);
  const at::Tensor base = self;
  static const auto reshape = bridge::findOperator("aten::reshape");
  reshape->callBoxed(&stack);
  m_copied.insert(storageOf(base));
  m_copied.insert(storageOf(stack[0].toTensor()));
}

void ExportedReplay::checkWrites(const Operator& op, const std::vector<IValue>& stack) {
  const c10::FunctionSchema& schema = op.handle->schema();
  if (!schema.is_mutable()) return;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    bridge::forEachTensor(stack[i], [&](const at::Tensor& tensor) {
      TORCH_CHECK(!m_copied.contains(storageOf(tensor)),
                  "it writes to a tensor whose views cannot be traced without data. "
                  "Call program.run_decompositions() before saving, which decomposes such calls");
      if (const auto stored = m_storages.find(storageOf(tensor)); stored != m_storages.end())
        m_written.insert(stored->second);
    });
  }
}

/// The types of the results from the archive, if all are tensors.
std::optional<std::vector<TensorType>> ExportedReplay::declaredResults(const ExportedNode& node) const {
  std::vector<TensorType> types;
  for (const auto& result : node.results) {
    const auto* id = std::get_if<ExportedId>(&result);
    if (!id || !id->isValid() || !m_program.value(*id).tensor) return std::nullopt;
    const auto& declared = *m_program.value(*id).tensor;
    const auto shape = declared.shapeFor(m_sizes);
    if (!shape) return std::nullopt;
    types.push_back({declared.dtype, *shape});
  }
  return types.empty() ? std::nullopt : std::optional(std::move(types));
}

void ExportedReplay::storeResults(const ExportedNode& node, const std::vector<IValue>& stack) {
  TORCH_CHECK(node.results.size() <= stack.size() || node.results.empty(), "the operator has ", stack.size(),
              " results, but the program names ", node.results.size());
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (const auto* id = std::get_if<ExportedId>(&node.results[i])) {
      put(*id, stack[i]);
      continue;
    }
    const auto& ids = std::get<std::vector<ExportedId>>(node.results[i]);
    TORCH_CHECK(stack[i].isTensorList(), "the result is not a list of tensors");
    const std::vector<at::Tensor> tensors = stack[i].toTensorVector();
    TORCH_CHECK(tensors.size() == ids.size(), "the operator returns ", tensors.size(),
                " tensors, but the program names ", ids.size());
    for (std::size_t j = 0; j < ids.size(); ++j) put(ids[j], tensors[j]);
  }
}

void ExportedReplay::put(ExportedId id, const IValue& value) {
  if (!id.isValid()) return;
  Slot& slot = m_slots[id.index()];
  if (value.isTensor()) {
    if (!value.toTensor().defined()) return;
    checkDeclared(m_program.value(id), value.toTensor());
    slot = value.toTensor();
  } else if (value.isInt()) {
    slot = value.toInt();
  } else if (value.isDouble()) {
    slot = value.toDouble();
  } else if (value.isBool()) {
    slot = value.toBool();
  } else {
    TORCH_CHECK(false, "the result is a ", value.tagKind(), ", not a tensor or a number");
  }
}

/// The archive and LibTorch must agree on the operator.
void ExportedReplay::checkDeclared(const ExportedValue& value, const at::Tensor& tensor) const {
  if (!value.tensor) return;
  const auto shape = value.tensor->shapeFor(m_sizes);
  if (!shape) return;
  // torch.export records a wrong shape for the states of a recurrent layer (torch 2.11, aten::lstm).
  static const std::unordered_set<std::string_view> kRecurrent{"torch.ops.aten.lstm.input", "torch.ops.aten.gru.input",
                                                               "torch.ops.aten.rnn_tanh.input",
                                                               "torch.ops.aten.rnn_relu.input"};
  if (m_current && kRecurrent.contains(m_current->target) && tensor.numel() == graph::elementCount(*shape)) return;
  const bool isSame =
      tensor.sizes() == at::IntArrayRef(*shape) && bridge::toDType(tensor.scalar_type()) == value.tensor->dtype;
  TORCH_CHECK(isSame, "the result is ", bridge::describe(tensor), ", but in the archive ", quotedText(value.name),
              " is ", graph::toText(TensorType{value.tensor->dtype, *shape}));
}

graph::Argument ExportedReplay::argumentOf(const ExportedArgument& argument) {
  if (const auto* id = std::get_if<ExportedId>(&argument)) {
    if (!id->isValid()) return {};
    const Slot& slot = slotOf(*id);
    if (std::holds_alternative<at::Tensor>(slot)) return ValueId(id->index());
    return asArgument(numberOf(argument));
  }
  if (const auto* list = std::get_if<std::vector<ExportedId>>(&argument)) {
    graph::ValueList values;
    for (const ExportedId id : *list) {
      if (id.isValid()) tensorOf(id);
      values.push_back(id.isValid() ? ValueId(id.index()) : ValueId());
    }
    return values;
  }
  if (const auto* numbers = std::get_if<std::vector<formats::ExportedNumber>>(&argument)) return numbersOf(*numbers);
  if (const auto* integer = std::get_if<std::int64_t>(&argument)) return *integer;
  if (const auto* real = std::get_if<double>(&argument)) return *real;
  if (const auto* flag = std::get_if<bool>(&argument)) return *flag;
  if (const auto* text = std::get_if<std::string>(&argument)) return *text;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&argument)) return *list;
  if (const auto* list = std::get_if<std::vector<double>>(&argument)) return *list;
  if (const auto* list = std::get_if<std::vector<bool>>(&argument)) return *list;
  if (const auto* dtype = std::get_if<graph::DType>(&argument)) return *dtype;
  if (std::holds_alternative<formats::ExportedDevice>(argument)) return graph::DeviceArgument();
  if (const auto* layout = std::get_if<formats::ExportedLayout>(&argument)) return layout->number;
  const auto* other = std::get_if<formats::ExportedOther>(&argument);
  TORCH_CHECK(!other, "the call has ", other->what, ", which Cleave's graphs do not support");
  return {};
}

graph::Argument ExportedReplay::numbersOf(const std::vector<formats::ExportedNumber>& numbers) {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  for (const formats::ExportedNumber& one : numbers) {
    const Number number = numberOf(std::visit([](const auto& value) { return ExportedArgument(value); }, one));
    if (const auto* integer = std::get_if<std::int64_t>(&number)) integers.push_back(*integer);
    reals.push_back(std::visit([](auto value) { return static_cast<double>(value); }, number));
  }
  if (integers.size() == numbers.size()) return integers;
  return reals;
}

const ExportedReplay::Slot& ExportedReplay::slotOf(ExportedId id) {
  Slot& slot = m_slots[id.index()];
  if (std::holds_alternative<std::monostate>(slot)) {
    const auto stored = m_stored.find(id.raw());
    if (stored != m_stored.end()) slot = makeStored(*stored->second);
  }
  return slot;
}

at::Tensor ExportedReplay::makeStored(const ExportedInput& input) {
  at::Tensor made = m_tensors.make(input, *m_recorder);
  m_storages.emplace(storageOf(made), input.name);
  return made;
}

const at::Tensor& ExportedReplay::tensorOf(ExportedId id) {
  const auto* tensor = std::get_if<at::Tensor>(&slotOf(id));
  TORCH_CHECK(tensor, quotedText(m_program.value(id).name), " is not a tensor");
  return *tensor;
}

Number ExportedReplay::numberOf(const ExportedArgument& argument) {
  const auto* id = std::get_if<ExportedId>(&argument);
  const Slot slot = id && id->isValid() ? slotOf(*id) : Slot();
  if (const auto* integer = std::get_if<std::int64_t>(&slot)) return *integer;
  if (const auto* real = std::get_if<double>(&slot)) return *real;
  if (const auto* flag = std::get_if<bool>(&slot)) return *flag;
  if (const auto* integer = std::get_if<std::int64_t>(&argument)) return *integer;
  if (const auto* real = std::get_if<double>(&argument)) return *real;
  if (const auto* flag = std::get_if<bool>(&argument)) return *flag;
  TORCH_CHECK(false, "the call needs a number that is known before a run");
}

}  // namespace cleave::torch_capture
