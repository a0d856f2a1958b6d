#include "hub/download_state.h"

#include "base/quantities.h"

#include <fmt/format.h>

#include <cmath>

namespace cleave::hub {
namespace {

constexpr std::chrono::seconds kRateWindow(5);

std::string durationText(std::int64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

}  // namespace

std::string Meter::text() const {
  const std::string which =
      state.files > 1 ? fmt::format("{} ({} of {})", state.file, state.number, state.files) : state.file;
  if (!state.waitingFor.empty()) return which.empty() ? state.waitingFor : which + ": " + state.waitingFor;
  if (state.isChecking) return fmt::format("{}: checking its hash", which);
  std::string text = fmt::format("{}: {} of {}", which, bytesText(state.doneBytes), bytesText(state.totalBytes));
  if (state.bytesPerSecond <= 0) return text;
  const double left = static_cast<double>(state.totalBytes - state.doneBytes) / state.bytesPerSecond;
  return text + fmt::format(", {}/s, {} left", bytesText(static_cast<std::int64_t>(state.bytesPerSecond)),
                            durationText(static_cast<std::int64_t>(std::ceil(left))));
}

void Meter::measure(Time now) {
  m_samples.push_back({now, m_received});
  while (m_samples.size() > 2 && now - m_samples.front().time > kRateWindow) m_samples.pop_front();
  const std::chrono::duration<double> passed = now - m_samples.front().time;
  if (passed.count() > 0.5)
    state.bytesPerSecond = static_cast<double>(m_received - m_samples.front().bytes) / passed.count();
}

void Meter::add(std::int64_t bytes) {
  m_received += bytes;
  state.doneBytes += bytes;
  state.waitingFor.clear();
  const auto now = std::chrono::steady_clock::now();
  if (!m_tells.isDue(now)) return;
  measure(now);
  report();
}

void Meter::report() {
  if (!m_watcher.onState) return;
  state.text = text();
  m_watcher.onState(state);
}

}  // namespace cleave::hub
