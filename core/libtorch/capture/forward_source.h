#pragma once
/// The source of a recording: a model built from its config, or an exported program. Both run operators on meta tensors
/// under the same recorder, so there is only one decomposition.
#include "base/progress.h"
#include "libtorch/capture/captured_model.h"
#include "libtorch/capture/recorder.h"

#include <string>

namespace cleave::torch_capture {

class ForwardSource {
 public:
  virtual ~ForwardSource() = default;
  /// Runs once inside the recorder, from inputs to outputs. Throws Stopped if it is cancelled, and LibTorch's
  /// exceptions.
  virtual void run(Recorder& recorder, const Progress& progress) = 0;
  /// The place of an exception: "aten::add.Tensor in module model.norm"; may be empty.
  virtual std::string placeOf(const Recorder& recorder) const { return recorder.currentPlace(); }

  /// Thrown to unwind a cancelled forward pass.
  struct Stopped {};
};

/// Runs the source under a recorder and fills in the graphs and the times. `where` is the prefix of errors.
Result<CapturedModel> record(ForwardSource& source, CapturedModel described, const std::string& where,
                             const Progress& progress);

}  // namespace cleave::torch_capture
