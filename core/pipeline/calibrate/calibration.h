#pragma once
/// The measurements of ranks on their machine, and the device profile that follows from them. Pure functions; any
/// thread.
///
/// All ranks wait for the slowest, so its median counts for each size. A rate is the best of all sizes. The link is the
/// fit of `solve::fitLink` to the collectives of all kinds and sizes.
///
///     CLEAVE_TRY(const Calibration made, calibrationOf({2, launch::Backend::Gloo, "AMD EPYC", ...}, measurements));
///     jsonText(toJson(profileOf(made)), 2);   // for --device-profile
#include "launch/launcher.h"
#include "solve/cost/link.h"
#include "solve/problem/cost_settings.h"

#include <string>
#include <vector>

namespace cleave::pipeline {

/// Facts that are not in the measurements.
struct CalibrationFacts {
  int ranks = 2;
  launch::Backend backend = launch::Backend::Gloo;
  std::string device;            ///< "AMD EPYC", "NVIDIA H200"; may be any text
  std::string date;              ///< "2026-03-31"
  std::int64_t memoryBytes = 0;  ///< bytes for the program of one rank
};

/// Something done per second: FLOPs, or bytes read and written.
struct MeasuredRate {
  double perSecond = 0;                  ///< median
  double lowest = 0, highest = 0;        ///< extremes over all repeats of the slowest rank
  std::int64_t amount = 0, repeats = 0;  ///< amount of one call, and number of calls
};

struct MeasuredCollective {
  solve::CollectiveTime time;      ///< the slowest rank's median
  double lowest = 0, highest = 0;  ///< extremes of that rank, in seconds
};

struct Calibration {
  CalibrationFacts facts;
  int threads = 1;  ///< threads per rank
  MeasuredRate half, float32, float64, memory;
  std::vector<MeasuredCollective> collectives;
  solve::LinkFit link;
};

/// `byRank` has one list per rank. RankFailed if their sizes differ, a kind is missing or a measurement is invalid;
/// otherwise the errors of fitLink.
Result<Calibration> calibrationOf(CalibrationFacts facts,
                                  const std::vector<std::vector<protocol::Measurement>>& byRank);

/// The profile "measured-gloo-2". Its sources say what was measured, how and when.
solve::DeviceProfile profileOf(const Calibration& made);

/// Tables of the measurements with their spread, and of the fit with its error.
std::string toText(const Calibration& made);

}  // namespace cleave::pipeline
