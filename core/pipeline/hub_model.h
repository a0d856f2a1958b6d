#pragma once
/// Models that are named by what they are called on the Hub: they become the folders that everything else opens.
///
///     CLEAVE_TRY(const std::string path, bringModel("Qwen/Qwen3-0.6B", hub::Wanted::Config, watcher, progress));
///     openModel(path, ...);   // ~/.cache/huggingface/hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de…
#include "hub/snapshot.h"
#include "plan/plan.h"

namespace cleave::pipeline {

/// "org/name" or "org/name@revision", where no file or folder here is called that.
bool namesHubModel(const std::string& source);
/// BadInput for an address on the web, which no model is, with what its model is called.
Result<void> refuseAddress(const std::string& source);
/// What a Hub id names, fetched as far as it is wanted; any other source as it is. As refuseAddress and
/// hub::fetchSnapshot.
Result<std::string> bringModel(const std::string& source, hub::Wanted wanted, const hub::Watcher& watcher,
                               const Progress& progress);
/// Whether a folder is a Hub's model of which the config alone was fetched.
bool lacksHubWeights(const std::string& folder);
/// How large the weights are that it lacks; asks the Hub.
Result<hub::WeightsAnnounced> announceHubWeights(const std::string& folder, const Progress& progress);
/// The folder with its weights: this one, or that of the cache here where this one is of another machine.
Result<std::string> bringHubWeights(const std::string& folder, const hub::Watcher& watcher, const Progress& progress);
/// A plan whose model came from the Hub, with the weights that a run of it reads: fetched if they are not here. A plan
/// that was made without them is made again, with its settings; any other plan stays what it is.
Result<std::shared_ptr<const plan::Plan>> bringWeights(std::shared_ptr<const plan::Plan> plan,
                                                       const hub::Watcher& watcher, const Progress& progress);
/// "org/name@commit" of a snapshot in the Hub's cache of this user: what it is called on any machine. Empty: it is
/// none.
std::string hubIdOf(const std::string& folder);
/// What a model is called: "org/name" of a snapshot in the Hub's cache, else the last part of its path.
std::string modelName(const std::string& source);

}  // namespace cleave::pipeline
