#include "libtorch/rank/collectives/device_calls.h"

#include "base/quantities.h"
#include "base/throttle.h"
#include "libtorch/bridge/errors.h"

#include <algorithm>
#include <thread>

namespace cleave::torch_rank {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kPollPeriod{50};
// Not shorter, because each health check is a call into NCCL.
constexpr std::chrono::milliseconds kWatchPeriod{100};

std::string lateText(const std::string& what, std::chrono::milliseconds limit) {
  return fmt::format("{} did not complete within {:g} s.", what, std::chrono::duration<double>(limit).count());
}

}  // namespace

void DeviceCalls::add(Group group) {
  if (!group.checkHealth && !group.abort) return;  // a group of one rank does not wait
  {
    const std::lock_guard lock(m_mutex);
    m_groups.push_back(std::move(group));
  }
  if (!m_watch) m_watch.emplace(kWatchPeriod, kWatchPeriod, [this] { watch(); });
}

void DeviceCalls::push(std::string_view kind, std::int64_t bytes, std::unique_ptr<DeviceMark> before,
                       std::unique_ptr<DeviceMark> after) {
  const std::lock_guard lock(m_mutex);
  m_calls.push_back({kind, bytes, std::move(before), std::move(after), false, ++m_pushed});
}

void DeviceCalls::report() {
  std::deque<Call> done;
  bool isBegun = false;
  {
    const std::lock_guard lock(m_mutex);
    while (!m_calls.empty() && m_calls.front().after->isReached()) {
      done.push_back(std::move(m_calls.front()));
      m_calls.pop_front();
    }
    if (!m_calls.empty() && !m_calls.front().isBegun && m_calls.front().before->isReached())
      isBegun = m_calls.front().isBegun = true;
  }
  for (const Call& call : done) {
    if (!call.isBegun) m_listener.onBegin();
    m_listener.onEnd(call);
  }
  if (isBegun) m_listener.onBegin();
}

const DeviceCalls::Call* DeviceCalls::firstOpen() const {
  const auto open = std::ranges::find_if(m_calls, [](const Call& call) { return !call.after->isReached(); });
  return open == m_calls.end() ? nullptr : &*open;
}

std::string DeviceCalls::openText() const {
  const std::lock_guard lock(m_mutex);
  const Call* open = firstOpen();
  if (!open) return "the program";
  return open->bytes > 0 ? fmt::format("{} of {}", open->kind, counted(open->bytes, "byte")) : std::string(open->kind);
}

void DeviceCalls::checkHealth() {
  std::vector<std::function<void()>> checks;
  {
    const std::lock_guard lock(m_mutex);
    for (const Group& group : m_groups)
      if (group.checkHealth) checks.push_back(group.checkHealth);
  }
  for (const auto& check : checks) check();
}

/// A second caller waits until the first has aborted all groups, so that a rank does not exit before.
void DeviceCalls::abortGroups(Error why) {
  std::call_once(m_abort, [&] {
    std::vector<Group> groups;
    {
      const std::lock_guard lock(m_mutex);
      m_failure = std::move(why);
      groups = m_groups;
    }
    for (const Group& group : groups)
      if (group.abort) group.abort();
  });
}

std::optional<Error> DeviceCalls::failure() const {
  const std::lock_guard lock(m_mutex);
  return m_failure;
}

/// The time of a call begins when the device reaches it, so waiting for computation does not count.
bool DeviceCalls::isLate(std::chrono::milliseconds limit) {
  const std::lock_guard lock(m_mutex);
  const Call* open = firstOpen();
  if (!open) return false;
  if (open->number != m_watched || !open->before->isReached()) m_since = Clock::now();
  m_watched = open->number;
  return Clock::now() - m_since > limit;
}

void DeviceCalls::watch() {
  if (failure()) return;
  const std::chrono::milliseconds limit = m_limit;
  try {
    if (isLate(limit)) return abortGroups({ErrorCode::RankFailed, lateText(openText(), limit)});
  } catch (const std::exception&) {
    return;  // The device has failed, not a peer. The thread that waits for the device reports it.
  }
  try {
    checkHealth();
  } catch (const std::exception& error) {
    abortGroups({ErrorCode::RankFailed, bridge::sentenceOf(error.what())});
  }
}

Result<void> DeviceCalls::waitFor(DeviceMark& end, std::chrono::milliseconds limit) {
  m_limit = std::max(limit, m_usualLimit);
  const auto result = bridge::translated([&]() -> Result<void> {
    const auto deadline = Clock::now() + limit;
    Throttle reports(kWatchPeriod, Clock::now());
    while (!end.isReached() && !failure()) {
      const auto now = Clock::now();
      if (reports.isDue(now)) report();
      if (now > deadline) return fail(ErrorCode::RankFailed, "{}", lateText(openText(), limit));
      std::this_thread::sleep_for(kPollPeriod);
    }
    if (const auto why = failure()) return tl::unexpected<Error>(*why);
    report();
    return bridge::translated(
        [&]() -> Result<void> {
          checkHealth();
          return {};
        },
        ErrorCode::RankFailed);
  });
  m_limit = m_usualLimit;
  if (!result) abortGroups(result.error());
  return result;
}

}  // namespace cleave::torch_rank
