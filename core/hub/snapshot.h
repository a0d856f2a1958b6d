#pragma once
/// A Hub model as a folder: the needed files are downloaded into huggingface_hub's cache, or found there.
///
///     CLEAVE_TRY(const HubId id, HubId::parse("Qwen/Qwen3-0.6B"));
///     CLEAVE_TRY(const Snapshot snapshot, fetchSnapshot({id, Wanted::Config, settings}, watcher, progress));
///     openModel(snapshot.folder);
///
/// Only files that Cleave reads are downloaded: config.json, the index of the weights, safetensors files.
/// formats/weight_files.h chooses the weight files, as for a folder. Environment and BadInput say what failed and what
/// to do. Received bytes are kept, and the next call continues. Blocking; any number of threads and processes may
/// download at once.
#include "base/progress.h"
#include "hub/download_state.h"
#include "hub/hub_id.h"
#include "hub/hub_settings.h"

namespace cleave::hub {

enum class Wanted : std::uint8_t {
  Config,   ///< enough for planning
  Weights,  ///< and all files that a run reads
};

struct SnapshotRequest {
  HubId id;
  Wanted wanted = Wanted::Config;
  HubSettings settings;
  bool isLocalOnly = false;  ///< the Hub is not asked: the result comes from the cache, or an error names what is
                             ///< missing
};

struct Snapshot {
  fs::path folder;
  std::string commit;
};

/// Downloads only the files that list the weight files.
struct WeightsAnnounced {
  int files = 0;
  std::int64_t totalBytes = 0, missingBytes = 0;  ///< number of bytes still to download
};
Result<WeightsAnnounced> announceWeights(const SnapshotRequest& request, const Watcher& watcher,
                                         const Progress& progress);

Result<Snapshot> fetchSnapshot(const SnapshotRequest& request, const Watcher& watcher, const Progress& progress);

}  // namespace cleave::hub
