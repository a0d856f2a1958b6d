#pragma once
/// What an exported program brings with it, as parameters and constants of the graph: names, ties, and what is trained.
/// LibTorch inside.
#include "formats/exported_program.h"
#include "libtorch/capture/recorder.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cleave::torch_capture {

class ExportedTensors {
 public:
  /// Both are kept by reference.
  ExportedTensors(const formats::ExportedProgram& program, const formats::SymbolSizes& sizes);
  /// Adds an input that is no user's to the recorded graph, with every name that the archive has for its bytes; a
  /// second input with the same bytes is the tensor of the first. Throws c10::Error, a clause.
  at::Tensor make(const formats::ExportedInput& input, Recorder& recorder);
  /// Parameters that are trained and whose memory something else shares. They are made first: the memory has the name
  /// of the parameter.
  std::vector<const formats::ExportedInput*> sharedParameters() const;

 private:
  bool isTrained(const formats::ExportedInput& input) const;
  at::Tensor addParameter(const formats::ExportedInput& input, const graph::TensorType& type, Recorder& recorder) const;
  at::Tensor makeOfBytes(const formats::ExportedInput& input, const graph::TensorType& type, const std::string& bytes,
                         Recorder& recorder);
  std::string bytesOf(const formats::ExportedInput& input) const;
  std::optional<at::Tensor> smallConstant(const formats::ExportedInput& input) const;

  const formats::ExportedProgram& m_program;
  const formats::SymbolSizes& m_sizes;
  /// Where bytes are → the first input that has them, and its tensor.
  std::unordered_map<std::string, std::pair<const formats::ExportedInput*, at::Tensor>> m_byBytes;
  /// Where bytes are → all their names in the checkpoint: torch.export keeps one of a tied parameter's.
  std::unordered_map<std::string, std::vector<std::string>> m_names;
};

}  // namespace cleave::torch_capture
