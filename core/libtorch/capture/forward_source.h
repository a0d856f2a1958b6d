#pragma once
/// What is recorded: a model that was built from its config, or a program that was exported. Either way operators run
/// over meta tensors under the same recorder, so that there is one decomposition and one way back.
#include "base/progress.h"
#include "libtorch/capture/capture.h"
#include "libtorch/capture/recorder.h"

#include <string>

namespace cleave::torch_capture {

class ForwardSource {
 public:
  virtual ~ForwardSource() = default;
  /// Runs once, from inputs to outputs, inside of the recorder. Throws Stopped when it is cancelled, and what LibTorch
  /// throws.
  virtual void run(Recorder& recorder, const Progress& progress) = 0;
  /// Where it was when it threw: "aten::add.Tensor in module model.norm"; may be empty.
  virtual std::string placeOf(const Recorder& recorder) const { return recorder.currentPlace(); }

  /// Unwinds a cancelled forward pass.
  struct Stopped {};
};

/// Runs the source under a recorder of this name and fills in the graphs and the times. `where` begins errors.
Result<CapturedModel> record(ForwardSource& source, CapturedModel described, const std::string& where,
                             const Progress& progress);

}  // namespace cleave::torch_capture
