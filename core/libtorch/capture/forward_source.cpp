#include "libtorch/capture/forward_source.h"

#include "base/stopwatch.h"
#include "libtorch/bridge/errors.h"

#include <chrono>

namespace cleave::torch_capture {

Result<CapturedModel> record(ForwardSource& source, CapturedModel model, const std::string& where,
                             const Progress& progress) {
  const Stopwatch watch;
  Recorder recorder(model.modelType);
  try {
    source.run(recorder, progress);
  } catch (const ForwardSource::Stopped&) {
    return progress.cancelledError("capturing the model");
  } catch (const std::exception&) {
    const Error error = bridge::currentError(ErrorCode::BadInput, bridge::Wording::Phrase);
    const std::string place = source.placeOf(recorder);
    return fail(error.code, "{}: the model cannot be captured{}{}: {}", where, place.empty() ? "" : " at ", place,
                error.message);
  }
  CLEAVE_TRY(RecordedGraphs graphs, withContext(std::move(recorder).finish(), where));
  model.decomposeMs = std::chrono::duration<double, std::milli>(recorder.timeBelow()).count();
  model.captureMs = watch.milliseconds() - model.decomposeMs;
  model.captured = std::make_shared<const graph::Graph>(std::move(graphs.captured));
  model.aten = std::make_shared<graph::Graph>(std::move(graphs.aten));
  return model;
}

}  // namespace cleave::torch_capture
