#include "pipeline/calibrate/calibration.h"

#include "base/json.h"
#include "base/quantities.h"
#include "base/version.h"

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {
namespace {

using protocol::Measured;
using protocol::Measurement;
using Measurements = std::vector<Measurement>;

constexpr std::size_t kMostNameBytes = 200;

/// Makes the name of a device fit into one line of a profile.
std::string lineOf(const std::string& text) {
  std::string line;
  for (const char c : text.substr(0, kMostNameBytes)) {
    const bool isControl = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line += isControl || (c & 0x80) ? '?' : c;
  }
  return line.empty() ? "an unknown device" : line;
}

bool isSound(const Measurement& m) {
  return m.amount > 0 && m.repeats > 0 && m.threads > 0 && std::isfinite(m.highest) && m.lowest > 0 &&
         m.lowest <= m.median && m.median <= m.highest;
}

/// The slowest rank's measurement of each size: all other ranks wait for it.
Result<Measurements> slowestOf(const std::vector<Measurements>& byRank) {
  if (byRank.empty()) return Measurements();
  Measurements slowest = byRank.front();
  for (std::size_t rank = 0; rank < byRank.size(); ++rank) {
    const Measurements& own = byRank[rank];
    if (own.size() != slowest.size())
      return fail(ErrorCode::RankFailed, "Rank {} measured {} sizes, but rank 0 measured {}.", rank, own.size(),
                  slowest.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!isSound(own[i])) {
        return fail(ErrorCode::RankFailed, "Rank {} reported an invalid measurement: {} of {} in {} s ({} to {}).",
                    rank, protocol::toText(own[i].what), own[i].amount, own[i].median, own[i].lowest, own[i].highest);
      }
      if (own[i].what != slowest[i].what || own[i].amount != slowest[i].amount) {
        return fail(ErrorCode::RankFailed, "Rank {} measured {} of {}, but rank 0 measured {} of {}.", rank,
                    protocol::toText(own[i].what), own[i].amount, protocol::toText(byRank.front()[i].what),
                    byRank.front()[i].amount);
      }
      if (own[i].median > slowest[i].median) slowest[i] = own[i];
    }
  }
  return slowest;
}

Result<MeasuredRate> bestOf(const Measurements& all, Measured what) {
  MeasuredRate best;
  for (const Measurement& m : all) {
    const auto amount = static_cast<double>(m.amount);
    if (m.what == what && amount / m.median > best.perSecond)
      best = {amount / m.median, amount / m.highest, amount / m.lowest, m.amount, m.repeats};
  }
  if (best.amount > 0) return best;
  return fail(ErrorCode::RankFailed, "The ranks did not measure {}.", protocol::toText(what));
}

std::optional<rules::CollectiveKind> collectiveOf(Measured what) {
  switch (what) {
    case Measured::AllReduce: return rules::CollectiveKind::AllReduce;
    case Measured::AllGather: return rules::CollectiveKind::AllGather;
    case Measured::ReduceScatter: return rules::CollectiveKind::ReduceScatter;
    default: return std::nullopt;
  }
}

Result<void> fit(Calibration& made, const Measurements& all) {
  std::vector<solve::CollectiveTime> times;
  for (const Measurement& m : all) {
    const auto kind = collectiveOf(m.what);
    if (!kind) continue;
    times.push_back({*kind, m.amount, m.median});
    made.collectives.push_back({times.back(), m.lowest, m.highest});
  }
  for (const Measured what : {Measured::AllReduce, Measured::AllGather, Measured::ReduceScatter}) {
    if (std::none_of(all.begin(), all.end(), [&](const Measurement& m) { return m.what == what; }))
      return fail(ErrorCode::RankFailed, "The ranks did not measure {}.", protocol::toText(what));
  }
  CLEAVE_TRY(made.link, solve::fitLink(times, made.facts.ranks));
  return {};
}

std::string_view nameOf(launch::Backend backend) { return backend == launch::Backend::Nccl ? "NCCL" : "Gloo"; }

}  // namespace

Result<Calibration> calibrationOf(CalibrationFacts facts, const std::vector<Measurements>& byRank) {
  CLEAVE_TRY(const Measurements all, slowestOf(byRank));
  Calibration made;
  made.facts = std::move(facts);
  made.facts.device = lineOf(made.facts.device);
  CLEAVE_TRY(made.half, bestOf(all, Measured::Half));
  CLEAVE_TRY(made.float32, bestOf(all, Measured::Float32));
  CLEAVE_TRY(made.float64, bestOf(all, Measured::Float64));
  CLEAVE_TRY(made.memory, bestOf(all, Measured::Memory));
  CLEAVE_TRY_VOID(fit(made, all));
  made.threads = all.front().threads;
  return made;
}

solve::DeviceProfile profileOf(const Calibration& made) {
  const CalibrationFacts& facts = made.facts;
  const bool isGpu = facts.backend == launch::Backend::Nccl;
  const auto [least, most] =
      std::minmax_element(made.collectives.begin(), made.collectives.end(),
                          [](const auto& a, const auto& b) { return a.time.bytes < b.time.bytes; });
  const std::string command =
      fmt::format("cleave-cli calibrate --ranks {} --backend {}", facts.ranks, launch::toText(facts.backend));
  solve::DeviceProfile profile;
  profile.name = fmt::format("measured-{}-{}", launch::toText(facts.backend), facts.ranks);
  profile.title =
      fmt::format("{} ranks on {}, {}, measured on {}", facts.ranks, facts.device, nameOf(facts.backend), facts.date);
  profile.memoryBytes = facts.memoryBytes;
  profile.halfFlopsPerSecond = made.half.perSecond;
  profile.floatFlopsPerSecond = made.float32.perSecond;
  profile.doubleFlopsPerSecond = made.float64.perSecond;
  profile.memoryBytesPerSecond = made.memory.perSecond;
  profile.linkBytesPerSecond = made.link.bytesPerSecond;
  profile.linkLatencySeconds = made.link.latencySeconds;
  profile.sources = {
      {fmt::format("rates: measured by Cleave {} on {} with {} ranks at once, {} each; medians of the slowest rank; "
                   "half is bfloat16",
                   version(), facts.date, facts.ranks, counted(made.threads, "thread")),
       command},
      {fmt::format("link: fitted to {} medians of all-reduces, all-gathers and reduce-scatters of {} to {} over {}; "
                   "largest error {:.0f} %",
                   made.collectives.size(), bytesText(least->time.bytes), bytesText(most->time.bytes),
                   nameOf(facts.backend), 100 * made.link.worstResidual),
       command},
      {isGpu ? "memory: the smallest of the ranks' GPUs"
             : "memory: free memory of the machine, divided among the ranks, without LibTorch's own",
       command}};
  return profile;
}

}  // namespace cleave::pipeline
