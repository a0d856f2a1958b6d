#pragma once
/// Stored tensors of an exported program as parameters and constants of the graph: names, ties and trained parameters.
/// Uses LibTorch.
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
  /// Keeps references to both arguments.
  ExportedTensors(const formats::ExportedProgram& program, const formats::SymbolSizes& sizes);
  /// Adds a stored input to the recorded graph, with all names that the archive has for its bytes. A second input with
  /// the same bytes returns the tensor of the first. Throws c10::Error with a clause.
  at::Tensor make(const formats::ExportedInput& input, Recorder& recorder);
  /// Trained parameters that share memory with other inputs. They are made first, so that the memory gets the
  /// parameter's name.
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
  /// Location of bytes → the first input with these bytes, and its tensor.
  std::unordered_map<std::string, std::pair<const formats::ExportedInput*, at::Tensor>> m_byBytes;
  /// Location of bytes → all their names in the checkpoint. torch.export keeps only one name of a tied parameter.
  std::unordered_map<std::string, std::vector<std::string>> m_names;
};

}  // namespace cleave::torch_capture
