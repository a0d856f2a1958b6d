#include "pipeline/calibrate/calibrate.h"

#include "base/machine_memory.h"
#include "base/quantities.h"
#include "launch/rank_program.h"
#include "pipeline/memory/rank_memory.h"
#include "spec/plan/plan_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

namespace cleave::pipeline {
namespace {

/// Far above the number that a rank sends; further ones are dropped to bound the memory.
constexpr std::size_t kMostMeasurements = 1000;

/// The date in UTC.
std::string today() {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

/// The "model name" in /proc/cpuinfo, such as "AMD EPYC"; empty if the kernel does not report it.
std::string processorName() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

/// Collects the measurements of the ranks.
class Listener {
 public:
  explicit Listener(int ranks) : m_byRank(static_cast<std::size_t>(ranks)) {}

  void observe(const launch::RankEvent& event) {
    if (!event.message || event.rank < 0 || static_cast<std::size_t>(event.rank) >= m_byRank.size()) return;
    if (const auto* measured = std::get_if<protocol::Measurement>(&*event.message)) {
      auto& own = m_byRank[static_cast<std::size_t>(event.rank)];
      if (own.size() < kMostMeasurements) own.push_back(*measured);
    } else if (const auto* hello = std::get_if<protocol::Hello>(&*event.message)) {
      m_devices.insert(hello->device.substr(0, hello->device.find(" (cuda:")));
    } else if (const auto* sample = std::get_if<protocol::MemorySample>(&*event.message)) {
      if (sample->deviceTotal > 0) m_memory = std::min(m_memory.value_or(sample->deviceTotal), sample->deviceTotal);
    }
  }

  const std::vector<std::vector<protocol::Measurement>>& byRank() const { return m_byRank; }
  /// Bytes of the smallest GPU.
  std::int64_t memory() const { return m_memory.value_or(0); }
  std::string devices() const { return fmt::format("{}", fmt::join(m_devices, " and ")); }

 private:
  std::vector<std::vector<protocol::Measurement>> m_byRank;
  std::set<std::string> m_devices;
  std::optional<std::int64_t> m_memory;
};

Result<void> checkRanks(int ranks) {
  if (ranks == 1) {
    return fail(ErrorCode::BadUsage,
                "1 rank is not enough: a profile includes how fast ranks exchange data. Use at least 2 ranks.");
  }
  if (ranks < 1 || ranks > spec::kMaxRanks)
    return fail(ErrorCode::BadUsage, "{} ranks are not possible. Use 2 to {} ranks.", ranks, spec::kMaxRanks);
  return {};
}

/// The memory for the program of each rank on this machine.
Result<std::int64_t> roomHere(int ranks) {
  const MachineMemory memory = machineMemory();
  const std::int64_t room = roomForProgram(memory.available > 0 ? memory.available : memory.total, ranks);
  if (room >= protocol::kMeasuringBytes) return room;
  return fail(ErrorCode::Environment,
              "{} ranks have {} of memory each for tensors on this machine, and the measurement needs {}. Free memory, "
              "or use fewer --ranks.",
              ranks, bytesText(room), bytesText(protocol::kMeasuringBytes));
}

Result<void> check(const launch::RunOutcome& outcome) {
  if (outcome.succeeded) return {};
  const launch::RankExit& failure = *outcome.firstFailure;
  return fail(failure.code, "Rank {} {}.{}", failure.rank, failure.what,
              failure.lastMessage.empty() ? "" : " Its last output: " + failure.lastMessage);
}

}  // namespace

Result<Calibration> calibrate(const CalibrationRequest& request, const launch::Observer& observer,
                              const Progress& progress) {
  CLEAVE_TRY_VOID(checkRanks(request.ranks));
  launch::LaunchRequest launch;
  launch.ranks = request.ranks;
  launch.rankArguments = {"--calibrate"};
  CLEAVE_TRY(const launch::BackendChoice choice, launch::chooseBackend(request.backend, request.ranks, 0, progress));
  launch.backend = choice.backend;
  launch.rankProgram = request.rankProgram;
  if (launch.rankProgram.empty()) {
    CLEAVE_TRY(launch.rankProgram, launch::rankProgram());
  }
  CalibrationFacts facts{request.ranks, launch.backend, {}, today(), 0};
  const bool isGpu = launch.backend == launch::Backend::Nccl;
  if (!isGpu) {
    CLEAVE_TRY(facts.memoryBytes, roomHere(request.ranks));
  }
  progress.report("calibrate");
  Listener listener(request.ranks);
  const auto follow = [&](const launch::RankEvent& event) {
    listener.observe(event);
    observer(event);
  };
  CLEAVE_TRY(const auto outcome, launch::launch(launch, follow, progress));
  CLEAVE_TRY_VOID(check(outcome));
  facts.device = isGpu ? listener.devices() : processorName();
  if (isGpu) facts.memoryBytes = listener.memory();
  return calibrationOf(std::move(facts), listener.byRank());
}

}  // namespace cleave::pipeline
