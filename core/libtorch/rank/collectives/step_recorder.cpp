#include "libtorch/rank/collectives/step_recorder.h"

#include <algorithm>
#include <fstream>

namespace cleave::torch_rank {
namespace {

std::int64_t nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

void StepRecorder::start() {
  m_parts.clear();
  m_isRecording = true;
  if (m_queue.mark) m_startMark = m_queue.mark();
  m_start = Clock::now();
}

protocol::StepTimes StepRecorder::stop() {
  m_isRecording = false;
  protocol::StepTimes times;
  times.startNs = nanoseconds(m_start.time_since_epoch());
  times.spans.reserve(m_parts.size());
  for (const Part& part : m_parts) {
    protocol::Span span = part.span;
    span.beginNs = nanoseconds(part.begin - m_start);
    span.endNs = nanoseconds(part.end - m_start);
    if (part.first && part.last) {
      span.beginNs = part.first->since(*m_startMark).count();
      span.endNs = part.last->since(*m_startMark).count();
    }
    times.spans.push_back(span);
  }
  m_parts.clear();
  m_startMark.reset();
  return times;
}

StepRecorder::Scope::Scope(StepRecorder* recorder, SpanKind kind, graph::NodeId node) : m_recorder(recorder) {
  begin({.kind = kind, .node = node.isValid() ? static_cast<std::int32_t>(node.index()) : -1});
}

StepRecorder::Scope::Scope(StepRecorder* recorder, SpanKind kind, std::int64_t bytes, int ranks, int stride)
    : m_recorder(recorder) {
  const std::int32_t node = recorder ? recorder->current().value_or(Current{}).node : -1;
  begin({.kind = kind, .node = node, .bytes = bytes, .ranks = ranks, .stride = stride});
}

void StepRecorder::Scope::begin(protocol::Span span) {
  if (!m_recorder) return;
  m_around = m_recorder->current();
  m_recorder->setCurrent(Current{span.kind, span.node});
  if (!m_recorder->m_isRecording || std::ssize(m_recorder->m_parts) >= protocol::kMostSpans) return;
  m_index = m_recorder->m_parts.size();
  Part part;
  part.span = span;
  if (m_recorder->m_queue.mark) part.first = m_recorder->m_queue.mark();
  part.begin = Clock::now();
  m_recorder->m_parts.push_back(std::move(part));
}

StepRecorder::Scope::~Scope() {
  if (!m_recorder) return;
  m_recorder->setCurrent(m_around);
  if (!m_index || *m_index >= m_recorder->m_parts.size()) return;
  Part& part = m_recorder->m_parts[*m_index];
  part.end = Clock::now();
  if (!m_recorder->m_queue.mark) return;
  try {
    part.last = m_recorder->m_queue.mark();
  } catch (const std::exception&) {
    // The device has failed. The failed call reports that, and these times are not used.
  }
}

std::string clockName() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string name;
  std::getline(in, name);
  return name;
}

void sendInLines(protocol::StepTimes times, const std::function<void(const protocol::Message&)>& sink) {
  const std::vector<protocol::Span> spans = std::move(times.spans);
  times.total = std::ssize(spans);
  do {
    const auto count = std::min<std::int64_t>(times.total - times.first, protocol::kMostSpansInLine);
    times.spans.assign(spans.begin() + times.first, spans.begin() + times.first + count);
    sink(times);
    times.first += count;
  } while (times.first < times.total);
}

}  // namespace cleave::torch_rank
