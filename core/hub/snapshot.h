#pragma once
/// A model of the Hub as a folder: what is needed of it is fetched into huggingface_hub's cache, or found there.
///
///     CLEAVE_TRY(const HubId id, HubId::parse("Qwen/Qwen3-0.6B"));
///     CLEAVE_TRY(const Snapshot snapshot, fetchSnapshot({id, Wanted::Config, settings}, watcher, progress));
///     openModel(snapshot.folder);
///
/// Of a model only what Cleave reads is fetched: config.json, the index of its weights, safetensors files. The files
/// that hold weights are chosen as formats/weight_files.h does of a folder. Environment and BadInput say what failed
/// and what to do; whatever has come is kept, and the next call goes on there. Blocking; any number of threads and
/// processes may fetch at once.
#include "base/progress.h"
#include "hub/download_state.h"
#include "hub/hub_id.h"
#include "hub/hub_settings.h"

namespace cleave::hub {

enum class Wanted : std::uint8_t {
  Config,   ///< enough to plan
  Weights,  ///< and all that a run reads
};

struct SnapshotRequest {
  HubId id;
  Wanted wanted = Wanted::Config;
  HubSettings settings;
  bool isLocalOnly = false;  ///< nobody is asked: what the cache has, or an error that says what it lacks
};

struct Snapshot {
  fs::path folder;
  std::string commit;
};

/// Fetches nothing but what says which files hold the weights.
struct WeightsAnnounced {
  int files = 0;
  std::int64_t totalBytes = 0, missingBytes = 0;  ///< that are still to be fetched
};
Result<WeightsAnnounced> announceWeights(const SnapshotRequest& request, const Watcher& watcher,
                                         const Progress& progress);

Result<Snapshot> fetchSnapshot(const SnapshotRequest& request, const Watcher& watcher, const Progress& progress);

}  // namespace cleave::hub
