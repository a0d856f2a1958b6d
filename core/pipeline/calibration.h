#pragma once
/// What ranks measured of the machine that they run on, and the device profile that follows from it. Pure functions;
/// any thread.
///
/// All ranks wait for the slowest: of each size its median counts. A rate is the best that any size of a product
/// reached; the link is what `solve::fitLink` finds for the collectives of all kinds and sizes together.
///
///     CLEAVE_TRY(const Calibration made, calibrationOf({2, launch::Backend::Gloo, "AMD EPYC", ...}, measurements));
///     jsonText(toJson(profileOf(made)), 2);   // for --device-profile
#include "launch/launcher.h"
#include "solve/cost/link.h"
#include "solve/problem/cost_settings.h"

#include <string>
#include <vector>

namespace cleave::pipeline {

/// What the measurements do not say.
struct CalibrationFacts {
  int ranks = 2;
  launch::Backend backend = launch::Backend::Gloo;
  std::string device;            ///< "AMD EPYC", "NVIDIA H200"; made fit for a profile's line
  std::string date;              ///< "2026-03-31"
  std::int64_t memoryBytes = 0;  ///< what the program of one rank may hold
};

/// Something done per second: FLOPs, or bytes read and written.
struct MeasuredRate {
  double perSecond = 0;                  ///< by the median
  double lowest = 0, highest = 0;        ///< of all repeats of the slowest rank
  std::int64_t amount = 0, repeats = 0;  ///< of one call; of calls
};

struct MeasuredCollective {
  solve::CollectiveTime time;      ///< the slowest rank's median
  double lowest = 0, highest = 0;  ///< seconds, of that rank
};

struct Calibration {
  CalibrationFacts facts;
  int threads = 1;  ///< that each rank computes with
  MeasuredRate half, float32, float64, memory;
  std::vector<MeasuredCollective> collectives;
  solve::LinkFit link;
};

/// One list for each rank. RankFailed when they are not of the same sizes, lack one of the seven kinds, or hold what is
/// no measurement; else the errors of fitLink.
Result<Calibration> calibrationOf(CalibrationFacts facts,
                                  const std::vector<std::vector<protocol::Measurement>>& byRank);

/// "measured-gloo-2", with what was measured, how and when as its sources.
solve::DeviceProfile profileOf(const Calibration& made);

/// A table of what was measured, with the spread, and of the fit, with how far it is off.
std::string toText(const Calibration& made);

}  // namespace cleave::pipeline
