// Trace files. An input that begins with "CLVTRACE" is a whole file. Any other input is a header, a line end and
// events; a valid beginning is added, so that mutations reach the events. An accepted trace can be walked and shown.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "solve/explain/decision.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cleave;
using namespace cleave::solve;

namespace {

std::string wholeFile(std::string_view input) {
  if (input.starts_with("CLVTRACE")) return std::string(input);
  const auto end = std::min(input.find('\n'), input.size());
  const std::string_view header = input.substr(0, end);
  const std::string_view events = input.substr(std::min(end + 1, input.size()));
  const std::uint32_t fixed[2] = {2, sizeof(Event)};
  const std::uint64_t sizes[2] = {header.size(), events.size() / sizeof(Event)};
  std::string file = "CLVTRACE";
  file.append(reinterpret_cast<const char*>(fixed), sizeof fixed);
  file.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
  return file.append(header).append(events.substr(0, sizes[1] * sizeof(Event)));
}

void walk(const std::shared_ptr<const Trace>& trace) {
  Cursor cursor(trace);
  const StepId size = std::min<StepId>(trace->size(), 1000);
  for (StepId step = 1; step <= size; ++step) {
    cursor.seek(step);
    CLEAVE_CHECK(cursor.step() == step);
    const Event event = *cursor.lastEvent();
    CLEAVE_CHECK(!describe(*trace, event).empty());
    CLEAVE_CHECK(!toText(*trace, step, event).empty());
  }
  for (ValueId v : idRange<ValueId>(trace->problem()->graph->values.size())) cursor.placementOf(v);
  timeline(*trace, 0, trace->size(), 16);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file = wholeFile({reinterpret_cast<const char*>(data), size});
  const int fd = ::memfd_create("trace", MFD_CLOEXEC);
  CLEAVE_CHECK(fd >= 0 && ::write(fd, file.data(), file.size()) == static_cast<ssize_t>(file.size()));
  const auto trace = openTrace(fmt::format("/proc/self/fd/{}", fd));
  ::close(fd);
  wasAccepted = trace.has_value();
  if (trace) {
    walk(*trace);
  } else {
    CLEAVE_CHECK(!trace.error().message.empty());
  }
  return 0;
}
