#pragma once
/// Model folder or exported program → captured graph → ATen graph. This header does not use LibTorch.
///
/// The model's forward pass (and loss), or each exported call, runs once on meta tensors. Two boxed dispatcher
/// fallbacks record it at two depths. The captured graph has the operators that the model's code called. The ATen graph
/// has the operators below autograd and composite kernels, functional and normalised to core ATen plus the leaves.
/// Every ATen node refers to its captured node. Thread-safe; one capture at a time per thread.
#include "base/progress.h"
#include "formats/exported_program.h"
#include "formats/model_folder.h"
#include "libtorch/capture/captured_model.h"
#include "spec/input/input_spec.h"

namespace cleave::torch_capture {

/// BadInput for an unknown architecture (lists the known ones) or a config out of range.
Result<CapturedModel> captureModel(const formats::ModelFolder& folder, const spec::InputSpec& input,
                                   const Progress& progress = {});

/// The same for an exported program. Its outputs have the names "output", or "output_0", "output_1", ... BadUsage for
/// inputs that the program does not support (another element type, a mask, a loss, sizes outside its export). BadInput
/// for an operator that cannot be replayed, with its module and source line.
Result<CapturedModel> captureModel(const formats::ExportedProgram& program, const spec::InputSpec& input,
                                   const Progress& progress = {});

/// Shapes and dtypes of an operator's results on meta tensors, for one-operator graphs (`cleave-cli rules --eval`).
/// Arguments are in schema order; missing trailing ones get the schema's defaults, and `args` is completed in place.
/// `valueTypes` are the tensor operands' types, indexed by the ValueIds in `args`.
Result<std::vector<graph::TensorType>> inferResults(std::string_view op, std::vector<graph::Argument>& args,
                                                    const std::vector<graph::TensorType>& valueTypes);

}  // namespace cleave::torch_capture
