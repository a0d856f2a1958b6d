#include "base/libtorch_folder.h"
#include "launch/gpus.h"
#include "launch/launcher.h"
#include "launch/rank_program.h"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

namespace cleave::launch {
namespace {

using Clock = std::chrono::steady_clock;

// A hanging driver never answers. Loading CUDA from a cold disk and making a context on each of eight GPUs takes some
// tens of seconds.
constexpr std::chrono::seconds kProbeLimit{120};

/// Stops at a time limit, or when the caller's progress is cancelled.
class LimitedStop {
 public:
  LimitedStop(const Progress& progress, std::chrono::seconds limit)
      : m_onCancel(progress.stopToken(), [this] { m_source.request_stop(); }),
        m_clock([this, limit](const std::stop_token& ended) {
          std::unique_lock lock(m_mutex);
          m_wake.wait_for(lock, ended, limit, [] { return false; });
          if (ended.stop_requested()) return;
          m_isOver = true;
          m_source.request_stop();
        }) {}
  std::stop_token token() const { return m_source.get_token(); }
  bool isOver() const { return m_isOver; }

 private:
  std::stop_source m_source;
  std::stop_callback<std::function<void()>> m_onCancel;
  std::atomic<bool> m_isOver{false};
  std::mutex m_mutex;
  std::condition_variable_any m_wake;
  std::jthread m_clock;  ///< last member, because its thread reads the others
};

GpuProbe failed(std::string why) {
  GpuProbe probe;
  if (why.ends_with('.')) why.pop_back();
  probe.failure = std::move(why);
  return probe;
}

std::string whyNoLibrary(const std::filesystem::path& program) {
  std::error_code error;
  if (!std::filesystem::exists(program.parent_path() / kNcclLibrary, error))
    return fmt::format("{} is not beside {}{}", kNcclLibrary, program.filename().string(), whyNcclIsMissing());
  // Ranks use the LibTorch of the program that starts them.
  if (const auto libTorch = libTorchFolder(); libTorch && !hasCudaLibrary(*libTorch))
    return fmt::format("the LibTorch in {} is for CPUs only (if it came with Cleave, set CLEAVE_TORCH_DIR to another)",
                       libTorch->string());
  return {};
}

GpuProbe probeNow(const Progress& progress) {
  const auto program = rankProgram();
  if (!program) return failed(program.error().message);
  if (std::string why = whyNoLibrary(*program); !why.empty()) return failed(std::move(why));
  LimitedStop stop(progress, kProbeLimit);
  const LaunchRequest request{
      .rankProgram = *program, .planFile = {}, .ranks = 1, .backend = Backend::Nccl, .rankArguments = {"--probe"}};
  GpuProbe probe;
  const auto outcome = launch(
      request,
      [&](const RankEvent& event) {
        if (!event.message) return;
        if (const auto* cuda = std::get_if<protocol::CudaFound>(&*event.message)) probe.cuda = *cuda;
        if (const auto* gpu = std::get_if<protocol::GpuFound>(&*event.message)) probe.gpus.push_back(*gpu);
      },
      Progress(stop.token()));
  if (stop.isOver()) return failed(fmt::format("CUDA did not answer within {} s", kProbeLimit.count()));
  if (!outcome) return failed(outcome.error().message);
  if (outcome->succeeded) return probe;
  const RankExit& failure = *outcome->firstFailure;
  if (failure.code == ErrorCode::Environment && !failure.lastMessage.empty()) return failed(failure.lastMessage);
  // A truncated library raises SIGBUS: the file is shorter than its headers claim.
  if (failure.what.find(fmt::format("signal {} ", SIGBUS)) != std::string::npos)
    return failed(
        fmt::format("the process that queries CUDA {}; {} or a CUDA library is damaged", failure.what, kNcclLibrary));
  return failed(fmt::format("the process that queries CUDA {}{}{}", failure.what,
                            failure.lastMessage.empty() ? "" : ": ", failure.lastMessage));
}

struct Memory {
  std::mutex mutex;  ///< held during a query, so that concurrent callers get the same answer
  std::mutex answerMutex;
  std::optional<GpuProbe> answer;
  Clock::time_point at{};
};
Memory& memory() {
  static Memory one;
  return one;
}

}  // namespace

std::optional<GpuProbe> lastGpuProbe() {
  const std::lock_guard lock(memory().answerMutex);
  return memory().answer;
}

GpuProbe probeGpus(const Progress& progress) {
  Memory& known = memory();
  const std::lock_guard lock(known.mutex);
  if (auto last = lastGpuProbe(); last && Clock::now() - known.at < kProbeMemory) return *last;
  progress.report("probe GPUs");
  GpuProbe probe = probeNow(progress);
  if (progress.cancelled()) return probe;
  known.at = Clock::now();
  const std::lock_guard answerLock(known.answerMutex);
  known.answer = probe;
  return probe;
}

}  // namespace cleave::launch
