// CUDA's runtime: streams and events.
#include "cudart.h"
#include "device.h"

using namespace cleave::shims;

namespace {

Event& eventOf(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(makeStream(currentDevice()));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }  // its tasks still run

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return streamOf(stream).isIdle() ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  streamOf(stream).synchronize();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  synchronizeDevice(currentDevice());
  return checkDriver();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const auto mark = eventOf(event).mark;
  if (mark && !mark->isComplete()) streamOf(stream).queue([mark] { mark->wait(); });
  return cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  streamOf(stream).queue([=] { callback(stream, cudaSuccess, data); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  streamOf(stream).queue([=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData**, std::size_t* count) {
  *status = cudaStreamCaptureStatusNone;
  if (id) *id = 0;
  if (graph) *graph = nullptr;
  if (dependencies) *dependencies = nullptr;
  if (count) *count = 0;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = reinterpret_cast<cudaEvent_t>(new Event{(flags & cudaEventDisableTiming) == 0, nullptr});
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &eventOf(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto mark = eventOf(event).mark = std::make_shared<Mark>();
  streamOf(stream).run([mark] { mark->reach(); });
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto& mark = eventOf(event).mark;
  return !mark || mark->isComplete() ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const auto mark = eventOf(event).mark) mark->wait();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Event &first = eventOf(start), &last = eventOf(end);
  if (!first.hasTime || !last.hasTime || !first.mark || !last.mark) return failed(cudaErrorInvalidResourceHandle);
  if (!first.mark->isComplete() || !last.mark->isComplete()) return failed(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(last.mark->time() - first.mark->time()).count();
  return cudaSuccess;
}

}  // extern "C"
