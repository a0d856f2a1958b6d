#pragma once
/// Models by their Hub ids. Each becomes a folder, which the other stages open.
///
///     CLEAVE_TRY(const std::string path, resolveModel("Qwen/Qwen3-0.6B", hub::Wanted::Config, watcher, progress));
///     openModel(path, ...);   // ~/.cache/huggingface/hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de…
#include "base/progress.h"
#include "base/result.h"
#include "hub/snapshot.h"

#include <string>

namespace cleave::pipeline {

/// True for "org/name" or "org/name@revision" if no file or folder has that name.
bool namesHubModel(const std::string& source);
/// BadInput for a web address; the error has the Hub id if the address contains it.
Result<void> refuseAddress(const std::string& source);
/// Downloads the `wanted` files of a Hub id and returns their folder. Returns any other source unchanged. Errors as
/// refuseAddress and hub::fetchSnapshot.
Result<std::string> resolveModel(const std::string& source, hub::Wanted wanted, const hub::Watcher& watcher,
                                 const Progress& progress);
/// True if a folder is a Hub snapshot without weights.
bool lacksHubWeights(const std::string& folder);
/// The size of the missing weights, from the Hub.
Result<hub::WeightsAnnounced> announceHubWeights(const std::string& folder, const Progress& progress);
/// Downloads the weights and returns their folder: `folder`, or one in this machine's cache if `folder` is from another
/// machine.
Result<std::string> fetchHubWeights(const std::string& folder, const hub::Watcher& watcher, const Progress& progress);
/// True if a folder is a snapshot in a Hub cache.
bool isHubSnapshot(const std::string& folder);
/// "org/name@commit" of a snapshot in this user's Hub cache, valid on all machines; empty for other folders.
std::string hubIdOf(const std::string& folder);
/// The name of a model: "org/name" for a snapshot in a Hub cache, otherwise the last part of its path.
std::string modelName(const std::string& source);

}  // namespace cleave::pipeline
