#include "libtorch/capture/exported_tensors.h"
#include "formats/exported_weights.h"

#include "base/quantities.h"
#include "libtorch/bridge/types.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace cleave::torch_capture {
namespace {

using formats::ExportedInput;
using formats::ExportedInputKind;
using graph::TensorType;

/// Ranks load larger tensors like weights, because a plan file contains its constants.
constexpr std::int64_t kLargestConstant = 64 << 10;

/// Location and layout of a tensor's bytes; empty if it has no location.
std::string placeOf(const formats::WeightSource& source) {
  if (source.bytes == 0) return {};
  return fmt::format("{} {} {}", source.offset, graph::toText(source.type),
                     graph::toText(graph::Shape(source.strides)));
}

}  // namespace

ExportedTensors::ExportedTensors(const formats::ExportedProgram& program, const formats::SymbolSizes& sizes)
    : m_program(program), m_sizes(sizes) {
  for (const auto& [name, source] : program.tensors) {
    if (const std::string place = placeOf(source); !place.empty()) m_names[place].push_back(name);
  }
  for (auto& [place, names] : m_names) std::ranges::sort(names);
}

std::vector<const ExportedInput*> ExportedTensors::sharedParameters() const {
  std::unordered_set<std::string> ofOthers;
  for (const ExportedInput& input : m_program.inputs) {
    if (std::string bytes = bytesOf(input); !bytes.empty() && !isTrained(input)) ofOthers.insert(std::move(bytes));
  }
  std::vector<const ExportedInput*> shared;
  if (ofOthers.empty()) return shared;
  for (const ExportedInput& input : m_program.inputs) {
    if (isTrained(input) && ofOthers.contains(bytesOf(input))) shared.push_back(&input);
  }
  return shared;
}

at::Tensor ExportedTensors::make(const ExportedInput& input, Recorder& recorder) {
  const auto shape = m_program.value(input.value).tensor->shapeFor(m_sizes);
  TORCH_CHECK(shape, "the size of ", quotedText(input.name), " cannot be computed");
  const TensorType type{m_program.value(input.value).tensor->dtype, *shape};
  const std::size_t dot = input.name.rfind('.');
  recorder.enterModule(dot == std::string::npos ? std::string() : input.name.substr(0, dot), {});
  at::Tensor made;
  if (const auto constant = smallConstant(input)) {
    made = recorder.addConstant(input.name, *constant);
  } else if (const std::string bytes = bytesOf(input); bytes.empty()) {
    made = addParameter(input, type, recorder);
  } else {
    made = makeOfBytes(input, type, bytes, recorder);
  }
  recorder.leaveModule();
  return made;
}

at::Tensor ExportedTensors::makeOfBytes(const ExportedInput& input, const TensorType& type, const std::string& bytes,
                                        Recorder& recorder) {
  const auto [known, isNew] = m_byBytes.try_emplace(bytes);
  auto& [first, tensor] = known->second;
  // Another name for the memory of a trained parameter. No gradient passes through it.
  if (!isNew) return isTrained(*first) && !isTrained(input) ? tensor.detach() : tensor;
  first = &input;
  tensor = addParameter(input, type, recorder);
  for (const std::string& name : m_names[bytes]) {
    if (name != input.name) recorder.addTiedName(input.name, name);
  }
  return tensor;
}

at::Tensor ExportedTensors::addParameter(const ExportedInput& input, const TensorType& type, Recorder& recorder) const {
  const at::Tensor made = recorder.addParameter(input.name, type);
  if (!isTrained(input)) recorder.freeze(input.name);
  return made;
}

bool ExportedTensors::isTrained(const ExportedInput& input) const {
  return input.kind == ExportedInputKind::Parameter && m_program.value(input.value).tensor->requiresGrad;
}

std::string ExportedTensors::bytesOf(const ExportedInput& input) const {
  const auto stored = m_program.tensors.find(input.name);
  const bool isStored = input.kind != ExportedInputKind::User && stored != m_program.tensors.end();
  return isStored ? placeOf(stored->second) : std::string();
}

std::optional<at::Tensor> ExportedTensors::smallConstant(const ExportedInput& input) const {
  const auto stored = m_program.tensors.find(input.name);
  if (input.isPersistent || stored == m_program.tensors.end()) return std::nullopt;
  const formats::WeightSource& source = stored->second;
  if (source.bytes > kLargestConstant) return std::nullopt;
  const Recorder::Suspension unrecorded;
  at::Tensor tensor = at::empty(source.type.shape, bridge::toScalarType(source.type.dtype));
  std::vector<std::size_t> order(source.type.shape.size());
  std::iota(order.begin(), order.end(), 0);
  const auto read = formats::readElements(*m_program.archive, source, order, 0,
                                          {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
  TORCH_CHECK(read, "its constant ", input.name, " cannot be read: ", read.error().message);
  return tensor;
}

}  // namespace cleave::torch_capture
