#include "protocol/rank_side.h"

#include "base/cuda_version.h"
#include "base/files.h"
#include "base/quantities.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <thread>

namespace cleave::protocol {
namespace {

using Getter = std::function<const char*(const char*)>;

struct Setting {
  std::string name;
  std::string text;
};

/// The first of the variables that is set and not empty.
std::optional<Setting> firstSet(const Getter& variable, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = variable(name);
    if (text && *text) return Setting{name, text};
  }
  return std::nullopt;
}

Result<int> integerIn(const Setting& setting, int low, int high) {
  int value = 0;
  const char* end = setting.text.data() + setting.text.size();
  const auto [stop, error] = std::from_chars(setting.text.data(), end, value);
  if (error != std::errc() || stop != end || value < low || value > high) {
    return fail(ErrorCode::BadUsage, "{}={} must be an integer in {}..{}.", setting.name, setting.text, low, high);
  }
  return value;
}

Result<int> integerOf(const Getter& variable, std::initializer_list<const char*> names, int low, int high,
                      int byDefault) {
  const auto setting = firstSet(variable, names);
  if (!setting) return byDefault;
  return integerIn(*setting, low, high);
}

constexpr int kMaxRanks = 65536;

/// Not exit(): destructors would wait for peers and threads.
[[noreturn]] void endWith(const std::string& lastMessage) {
  const std::string line = lastMessage.empty() ? "" : lastMessage + "\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0)
    errno = 0;  // the error stream is gone too, so the failure
                // is ignored
  ::_exit(exitCode(ErrorCode::Cancelled));
}

}  // namespace

std::string firstHost(std::string_view list) {
  std::string host;
  // A name may have several brackets, and text after the last one: "rack[1-4]node[07,09]-ib".
  while (!list.empty() && list.front() != ',') {
    if (list.front() == '[') {
      host += list.substr(1, list.find_first_of("-,]", 1) - 1);
      list.remove_prefix(std::min(list.size(), list.find(']')));
      if (!list.empty()) list.remove_prefix(1);
    } else {
      const std::string_view plain = list.substr(0, list.find_first_of("[,"));
      host += plain;
      list.remove_prefix(plain.size());
    }
  }
  return host;
}

Result<RankEnvironment> readRankEnvironment(const Getter& variable) {
  RankEnvironment result;
  const auto worldSize = firstSet(variable, {"WORLD_SIZE", "SLURM_NTASKS"});
  if (worldSize) {
    CLEAVE_TRY(result.worldSize, integerIn(*worldSize, 1, kMaxRanks));
  }
  const auto rank = firstSet(variable, {"RANK", "SLURM_PROCID"});
  if (rank && !worldSize && rank->text != "0") {
    return fail(ErrorCode::BadUsage,
                "{}={} is set, but the number of ranks is unknown. Set WORLD_SIZE or SLURM_NTASKS.", rank->name,
                rank->text);
  }
  if (!rank && result.worldSize > 1) {
    return fail(ErrorCode::BadUsage,
                "There are {} ranks, but this rank's number is unknown. Set RANK or "
                "SLURM_PROCID.",
                result.worldSize);
  }
  if (rank) {
    CLEAVE_TRY(result.rank, integerIn(*rank, 0, result.worldSize - 1));
  }
  CLEAVE_TRY(result.localRank, integerOf(variable, {"LOCAL_RANK", "SLURM_LOCALID"}, 0, kMaxRanks, result.rank));

  if (const auto address = firstSet(variable, {"MASTER_ADDR"})) {
    result.masterAddress = address->text;
  } else if (const auto nodes = firstSet(variable, {"SLURM_STEP_NODELIST", "SLURM_NODELIST"})) {
    result.masterAddress = firstHost(nodes->text);
  }
  CLEAVE_TRY(result.masterPort, integerOf(variable, {"MASTER_PORT"}, 1, 65535, 0));
  if (const auto job = firstSet(variable, {"SLURM_JOB_ID"}); job && result.masterPort == 0) {
    CLEAVE_TRY(const int id, integerIn(*job, 0, std::numeric_limits<int>::max()));
    result.masterPort = 20000 + id % 20000;
  }
  if (const auto agent = firstSet(variable, {"TORCHELASTIC_USE_AGENT_STORE"}); agent && agent->text == "True") {
    CLEAVE_TRY(const int attempt,
               integerOf(variable, {"TORCHELASTIC_RESTART_COUNT"}, 0, std::numeric_limits<int>::max(), 0));
    result.agentStore = fmt::format("/worker/attempt_{}", attempt);
  }
  if (result.worldSize > 1 && result.masterPort == 0) {
    return fail(ErrorCode::BadUsage,
                "There are {} ranks, but MASTER_PORT is not set. Start them with torchrun, srun or cleave-cli run.",
                result.worldSize);
  }
  return result;
}

void EventWriter::write(const Message& message) {
  const std::string line = encode(message);
  const std::lock_guard lock(m_mutex);
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t put = ::write(m_fd, line.data() + done, line.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) endWith(m_lastWords);
    done += static_cast<std::size_t>(put);
  }
}

Result<void> EventWriter::writeFile(const std::filesystem::path& path) {
  CLEAVE_TRY(const auto file, RandomAccessFile::open(path));
  std::int64_t at = 0;
  do {
    OutputPart part{file.sizeBytes(), {}};
    part.bytes.data.resize(std::min<std::size_t>(kMaxPartBytes, static_cast<std::size_t>(file.sizeBytes() - at)));
    CLEAVE_TRY_VOID(file.readAt(at, std::as_writable_bytes(std::span(part.bytes.data))));
    write(part);
    at += std::ssize(part.bytes.data);
  } while (at < file.sizeBytes());
  return {};
}

void endWithControlPipe(int fd, std::string lastMessage) {
  std::thread([fd, lastMessage = std::move(lastMessage)] {
    char byte = 0;
    while (true) {
      const ssize_t got = ::read(fd, &byte, 1);
      if (got > 0 || (got < 0 && errno == EINTR)) continue;
      endWith(lastMessage);
    }
  }).detach();
}

namespace {

/// "2.28.9" of 22809
std::string ncclVersionText(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string cudaText(const CudaFound& cuda) {
  const std::string driver = cuda.driver == 0 ? "no driver" : "driver for CUDA " + cudaVersionText(cuda.driver);
  std::string text =
      fmt::format("CUDA {}, {}, NCCL {}", cudaVersionText(cuda.runtime), driver, ncclVersionText(cuda.nccl));
  if (const std::string obstacle = driverObstacle(cuda.driver, cuda.runtime); !obstacle.empty())
    return fmt::format("{}: {}", text, obstacle);
  if (!cuda.error.empty()) return fmt::format("{}: {}", text, cuda.error);
  return fmt::format("{}, {}", text, cuda.gpus == 0 ? "no GPU" : counted(cuda.gpus, "GPU"));
}

std::string gpuText(const GpuFound& gpu) {
  const std::string who = fmt::format("GPU {}: {}, sm_{}", gpu.index, gpu.name, gpu.capability);
  if (!gpu.error.empty()) return fmt::format("{}: no kernel ran: {}", who, gpu.error);
  return fmt::format("{}, {} of {} free: a kernel ran", who, bytesText(gpu.freeBytes), bytesText(gpu.totalBytes));
}

}  // namespace

std::optional<std::string> readable(int rank, const Message& message) {
  if (const auto* hello = std::get_if<Hello>(&message))
    return fmt::format("rank {}: process {} on {}", rank, hello->pid, hello->device);
  if (const auto* phase = std::get_if<PhaseChange>(&message)) {
    if (phase->done != 0) return std::nullopt;
    return fmt::format("rank {}: {}", rank, toText(phase->phase));
  }
  if (const auto* step = std::get_if<TrainingStep>(&message)) {
    const std::string norm = step->hasNorm ? fmt::format(", gradient norm {:.6f}", step->gradientNorm) : std::string();
    return fmt::format("rank {}: step {} of {}: loss {:.6f}{}, {:.3f} ms", rank, step->step, step->steps, step->loss,
                       norm, static_cast<double>(step->microseconds) / 1000);
  }
  if (const auto* done = std::get_if<Generated>(&message)) {
    return fmt::format("rank {}: prompt {:.3f} ms, {} decode steps {:.3f} ms, cache {} bytes", rank,
                       static_cast<double>(done->prefillMicroseconds) / 1000, done->steps,
                       static_cast<double>(done->decodeMicroseconds) / 1000, done->cacheBytes);
  }
  if (const auto* cuda = std::get_if<CudaFound>(&message)) return cudaText(*cuda);
  if (const auto* gpu = std::get_if<GpuFound>(&message)) return gpuText(*gpu);
  if (const auto* error = std::get_if<RankError>(&message)) return fmt::format("rank {}: {}", rank, error->message);
  if (const auto* m = std::get_if<Measurement>(&message)) {
    return fmt::format("rank {}: {} of {}: {:.3f} ms, from {:.3f} to {:.3f}", rank, toText(m->what), m->amount,
                       m->median * 1e3, m->lowest * 1e3, m->highest * 1e3);
  }
  if (const auto* program = std::get_if<ProgramDone>(&message)) {
    return fmt::format("rank {}: program {}: {:.3f} ms, {} bytes read, weights at {}", rank, program->index + 1,
                       static_cast<double>(program->result.stepMicroseconds) / 1000, program->result.bytesRead,
                       program->storages);
  }
  if (const auto* result = std::get_if<RankResult>(&message)) {
    std::string text = fmt::format(
        "rank {}: {:.3f} ms, {} bytes read, {} all-reduces, {} all-gathers, {} reduce-scatters, peak of the program {} "
        "bytes",
        rank, static_cast<double>(result->stepMicroseconds) / 1000, result->bytesRead, result->allReduce,
        result->allGather, result->reduceScatter, result->peak.program);
    if (result->hasLoss) text += fmt::format(", loss {:.6f}", result->loss);
    for (const auto& [name, digest] : result->outputDigests) text += fmt::format(", {} {}", name, digest);
    return text;
  }
  return std::nullopt;
}

}  // namespace cleave::protocol
