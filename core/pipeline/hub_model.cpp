#include "pipeline/hub_model.h"

#include "base/json.h"
#include "formats/weight_files.h"
#include "hub/cache.h"
#include "pipeline/plan_again.h"

namespace cleave::pipeline {
namespace {

bool isAddress(const std::string& source) { return source.starts_with("http://") || source.starts_with("https://"); }

bool isPath(const std::string& source) {
  std::error_code ignored;
  return source.empty() || source[0] == '/' || source[0] == '.' || source[0] == '~' ||
         source.find('\0') != std::string::npos || fs::exists(fs::symlink_status(source, ignored));
}

#ifdef CLEAVE_WITHOUT_HUB

bool isHubId(const std::string&) { return false; }
std::optional<std::string> snapshotName(const fs::path&) { return std::nullopt; }
std::string snapshotId(const fs::path&) { return {}; }

#else

bool isHubId(const std::string& source) { return source.find('/') != std::string::npos && hub::looksLikeHubId(source); }

std::optional<std::string> snapshotName(const fs::path& folder) {
  const auto snapshot = hub::snapshotOf(folder);
  return snapshot ? std::optional(snapshot->id.repo) : std::nullopt;
}

/// Of the cache here: the same name would lead elsewhere from any other.
std::string snapshotId(const fs::path& folder) {
  const auto snapshot = hub::snapshotOf(folder);
  const auto settings = hub::hubSettings();
  return snapshot && settings && settings->cache.lexically_normal() == snapshot->cache ? snapshot->id.text()
                                                                                       : std::string();
}

/// "org/name" of an address of the Hub's own pages.
std::string idIn(const std::string& address, const std::string& endpoint) {
  if (!address.starts_with(endpoint + "/")) return {};
  const std::string path = address.substr(endpoint.size() + 1);
  const auto slash = path.find('/');
  if (slash == std::string::npos) return {};
  const std::string id = path.substr(0, path.find_first_of("/?#", slash + 1));
  return hub::HubId::parse(id) ? id : std::string();
}

bool hasWeights(const fs::path& folder) {
  const auto files = formats::findWeightFiles(folder);
  return files && !files->files.empty();
}

/// A path; where nothing is there and it was meant as a Hub id, why it is none.
Result<std::string> noHubModel(const std::string& source) {
  const std::string repo = source.substr(0, source.find('@'));
  const bool isMeant = !isPath(source) && std::ranges::count(repo, '/') == 1 && !hub::namesFile(repo);
  const auto id = hub::HubId::parse(source);
  if (!isMeant || id) return source;
  return fail(ErrorCode::BadInput, "There is no file or folder {} here, and as a model on the Hub: {}",
              quotedText(source), id.error().message);
}

/// For the model of a snapshot's folder, into its own cache; that of another machine is not here.
Result<hub::SnapshotRequest> requestFor(const std::string& folder) {
  const auto snapshot = hub::snapshotOf(folder);
  if (!snapshot) return fail(ErrorCode::BadInput, "{} is no folder of a Hub's cache.", folder);
  hub::SnapshotRequest request{snapshot->id, hub::Wanted::Weights, {}};
  CLEAVE_TRY(request.settings, hub::hubSettings());
  std::error_code ignored;
  if (fs::is_directory(snapshot->cache, ignored)) request.settings.cache = snapshot->cache;
  return request;
}

#endif

}  // namespace

bool namesHubModel(const std::string& source) { return !isPath(source) && !isAddress(source) && isHubId(source); }

std::string hubIdOf(const std::string& folder) { return snapshotId(fs::path(folder).lexically_normal()); }

std::string modelName(const std::string& source) {
  const fs::path path = fs::path(source).lexically_normal();
  if (auto name = snapshotName(path)) return *std::move(name);
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

#ifdef CLEAVE_WITHOUT_HUB

Result<void> refuseAddress(const std::string& source) {
  if (!isAddress(source)) return {};
  return fail(ErrorCode::BadInput, "{} is an address on the web, and this build cannot ask the web: give a folder.",
              quotedText(source));
}

Result<std::string> bringModel(const std::string& source, hub::Wanted, const hub::Watcher&, const Progress&) {
  CLEAVE_TRY_VOID(refuseAddress(source));
  return source;
}

bool lacksHubWeights(const std::string&) { return false; }

Result<hub::WeightsAnnounced> announceHubWeights(const std::string& folder, const Progress&) {
  return fail(ErrorCode::Environment, "This build cannot ask a Hub for the weights of {}.", folder);
}

Result<std::string> bringHubWeights(const std::string& folder, const hub::Watcher&, const Progress&) { return folder; }

#else

Result<void> refuseAddress(const std::string& source) {
  if (!isAddress(source)) return {};
  CLEAVE_TRY(const hub::HubSettings settings, hub::hubSettings());
  std::string id = idIn(source, settings.endpoint);
  if (id.empty()) id = idIn(source, hub::HubSettings().endpoint);
  const std::string_view what = source.ends_with(".safetensors")
                                    ? "the address of one file of weights, which says nothing of its model"
                                    : "an address on the web";
  return fail(ErrorCode::BadInput, "{} is {}: give what the model is called on the Hub{}.", quotedText(source), what,
              id.empty() ? ", as org/name, or a folder" : fmt::format(", {}", id));
}

Result<std::string> bringModel(const std::string& source, hub::Wanted wanted, const hub::Watcher& watcher,
                               const Progress& progress) {
  CLEAVE_TRY_VOID(refuseAddress(source));
  if (!namesHubModel(source)) return noHubModel(source);
  CLEAVE_TRY(hub::HubId id, hub::HubId::parse(source));
  CLEAVE_TRY(hub::HubSettings settings, hub::hubSettings());
  auto snapshot = hub::fetchSnapshot({std::move(id), wanted, std::move(settings)}, watcher, progress);
  if (snapshot) return snapshot->folder.string();
  // A path with a slip of the pen looks like an id.
  if (snapshot.error().code != ErrorCode::Cancelled)
    snapshot.error().message += fmt::format(" (No file or folder here is called {}.)", source);
  return tl::unexpected(snapshot.error());
}

bool lacksHubWeights(const std::string& folder) { return hub::snapshotOf(folder) && !hasWeights(folder); }

Result<hub::WeightsAnnounced> announceHubWeights(const std::string& folder, const Progress& progress) {
  CLEAVE_TRY(const hub::SnapshotRequest request, requestFor(folder));
  return hub::announceWeights(request, {}, progress);
}

Result<std::string> bringHubWeights(const std::string& folder, const hub::Watcher& watcher, const Progress& progress) {
  CLEAVE_TRY(const hub::SnapshotRequest request, requestFor(folder));
  CLEAVE_TRY(const hub::Snapshot brought, hub::fetchSnapshot(request, watcher, progress));
  return brought.folder.string();
}

#endif

Result<std::shared_ptr<const plan::Plan>> bringWeights(std::shared_ptr<const plan::Plan> plan,
                                                       const hub::Watcher& watcher, const Progress& progress) {
  if (plan->model.isExported || !snapshotName(plan->model.source)) return plan;
  plan::ModelInfo model = plan->model;
  if (lacksHubWeights(model.source)) {
    CLEAVE_TRY(model.source, bringHubWeights(model.source, watcher, progress));
  }
  if (!plan->model.hasWeights) return planAgain(*plan, model, progress);
  if (model.source == plan->model.source) return plan;
  auto moved = std::make_shared<plan::Plan>(*plan);
  moved->model.source = model.source;
  return moved;
}

}  // namespace cleave::pipeline
