#include "pipeline/calibrate.h"

#include "base/machine_memory.h"
#include "base/quantities.h"
#include "pipeline/rank_memory.h"
#include "pipeline/solve.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

namespace cleave::pipeline {
namespace {

/// Many times what ranks send: a rank that says more is none of ours.
constexpr std::size_t kMostMeasurements = 1000;

/// In UTC.
std::string today() {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

/// "model name : AMD EPYC" of /proc/cpuinfo; empty where the kernel gives it no name.
std::string processorName() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

/// Follows the ranks and keeps what they measured.
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
  /// Of the GPU that has the least.
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
                "At least 2 ranks are needed: a profile says how fast ranks exchange data, and one has nobody to "
                "exchange any with.");
  }
  if (ranks < 1 || ranks > kMaxRanks)
    return fail(ErrorCode::BadUsage, "{} ranks are not possible: choose between 2 and {}.", ranks, kMaxRanks);
  return {};
}

/// What the program of a rank may hold beside the others here.
Result<std::int64_t> roomHere(int ranks) {
  const MachineMemory memory = machineMemory();
  const std::int64_t room = roomForProgram(memory.available > 0 ? memory.available : memory.total, ranks);
  if (room >= protocol::kMeasuringBytes) return room;
  return fail(ErrorCode::Environment,
              "{} ranks would find {} of memory each for their tensors here, and need {} to measure: free memory, or "
              "start fewer with --ranks.",
              ranks, bytesText(room), bytesText(protocol::kMeasuringBytes));
}

Result<void> check(const launch::RunOutcome& outcome) {
  if (outcome.succeeded) return {};
  const launch::RankExit& failure = *outcome.firstFailure;
  return fail(failure.code, "Rank {} {}.{}", failure.rank, failure.what,
              failure.lastWords.empty() ? "" : " Its last output: " + failure.lastWords);
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
