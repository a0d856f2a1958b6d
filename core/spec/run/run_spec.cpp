#include "spec/run/run_spec.h"

namespace cleave::spec {

RunMode RunSpec::mode() const {
  if (bisects) return RunMode::Bisect;
  if (!shapes.empty()) return RunMode::Shapes;
  if (generation.isAsked()) return RunMode::Generate;
  return training.isAsked() ? RunMode::Train : RunMode::Forward;
}

std::string_view toText(RunMode mode) {
  switch (mode) {
    case RunMode::Forward: return "forward";
    case RunMode::Train: return "train";
    case RunMode::Generate: return "generate";
    case RunMode::Shapes: return "shapes";
    case RunMode::Bisect: return "bisect";
  }
  return "";
}

}  // namespace cleave::spec
