#pragma once
/// Asks with what batch, sequence and data type a model is captured.
#include "libtorch/capture/capture.h"

class QWidget;

namespace cleave::views {

/// nullopt: the user thought better of it.
std::optional<torch_capture::CaptureOptions> askForCapture(const torch_capture::CaptureOptions& now, QWidget* parent);

}  // namespace cleave::views
