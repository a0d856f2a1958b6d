#include "pipeline/source/hub_model.h"

#include "base/json.h"
#include "formats/weight_files.h"
#include "hub/cache.h"

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

/// The id of a snapshot in this user's cache. In another cache, the id would resolve to another folder.
std::string snapshotId(const fs::path& folder) {
  const auto snapshot = hub::snapshotOf(folder);
  const auto settings = hub::hubSettings();
  return snapshot && settings && settings->cache.lexically_normal() == snapshot->cache ? snapshot->id.text()
                                                                                       : std::string();
}

/// "org/name" in the address of a page of the Hub.
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

/// Returns `source` as a path. BadInput if it is not a path and looks like an invalid Hub id.
Result<std::string> noHubModel(const std::string& source) {
  const std::string repo = source.substr(0, source.find('@'));
  const bool isMeant = !isPath(source) && std::ranges::count(repo, '/') == 1 && !hub::namesFile(repo);
  const auto id = hub::HubId::parse(source);
  if (!isMeant || id) return source;
  return fail(ErrorCode::BadInput, "There is no file or folder {}, and it is not a Hub id: {}", quotedText(source),
              id.error().message);
}

/// The request for the weights of a snapshot. It uses the cache of that folder if this machine has it.
Result<hub::SnapshotRequest> requestFor(const std::string& folder) {
  const auto snapshot = hub::snapshotOf(folder);
  if (!snapshot) return fail(ErrorCode::BadInput, "{} is not a folder in a Hub cache.", folder);
  hub::SnapshotRequest request{snapshot->id, hub::Wanted::Weights, {}};
  CLEAVE_TRY(request.settings, hub::hubSettings());
  std::error_code ignored;
  if (fs::is_directory(snapshot->cache, ignored)) request.settings.cache = snapshot->cache;
  return request;
}

#endif

}  // namespace

bool namesHubModel(const std::string& source) { return !isPath(source) && !isAddress(source) && isHubId(source); }

bool isHubSnapshot(const std::string& folder) { return snapshotName(folder).has_value(); }

std::string hubIdOf(const std::string& folder) { return snapshotId(fs::path(folder).lexically_normal()); }

std::string modelName(const std::string& source) {
  const fs::path path = fs::path(source).lexically_normal();
  if (auto name = snapshotName(path)) return *std::move(name);
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

#ifdef CLEAVE_WITHOUT_HUB

Result<void> refuseAddress(const std::string& source) {
  if (!isAddress(source)) return {};
  return fail(ErrorCode::BadInput, "{} is a web address, but this build cannot download. Use a folder.",
              quotedText(source));
}

Result<std::string> resolveModel(const std::string& source, hub::Wanted, const hub::Watcher&, const Progress&) {
  CLEAVE_TRY_VOID(refuseAddress(source));
  return source;
}

bool lacksHubWeights(const std::string&) { return false; }

Result<hub::WeightsAnnounced> announceHubWeights(const std::string& folder, const Progress&) {
  return fail(ErrorCode::Environment, "This build cannot download the weights of {}.", folder);
}

Result<std::string> fetchHubWeights(const std::string& folder, const hub::Watcher&, const Progress&) { return folder; }

#else

Result<void> refuseAddress(const std::string& source) {
  if (!isAddress(source)) return {};
  CLEAVE_TRY(const hub::HubSettings settings, hub::hubSettings());
  std::string id = idIn(source, settings.endpoint);
  if (id.empty()) id = idIn(source, hub::HubSettings().endpoint);
  const std::string_view what =
      source.ends_with(".safetensors") ? "the web address of one weight file, without its model" : "a web address";
  return fail(
      ErrorCode::BadInput, "{} is {}. Use {}.", quotedText(source), what,
      id.empty() ? "the Hub id of the model (org/name), or a folder" : fmt::format("the Hub id of the model, {}", id));
}

Result<std::string> resolveModel(const std::string& source, hub::Wanted wanted, const hub::Watcher& watcher,
                                 const Progress& progress) {
  CLEAVE_TRY_VOID(refuseAddress(source));
  if (!namesHubModel(source)) return noHubModel(source);
  CLEAVE_TRY(hub::HubId id, hub::HubId::parse(source));
  CLEAVE_TRY(hub::HubSettings settings, hub::hubSettings());
  auto snapshot = hub::fetchSnapshot({std::move(id), wanted, std::move(settings)}, watcher, progress);
  if (snapshot) return snapshot->folder.string();
  // A path with a typing error can look like an id.
  if (snapshot.error().code != ErrorCode::Cancelled)
    snapshot.error().message += fmt::format(" (There is no file or folder {}.)", source);
  return tl::unexpected(snapshot.error());
}

bool lacksHubWeights(const std::string& folder) { return hub::snapshotOf(folder) && !hasWeights(folder); }

Result<hub::WeightsAnnounced> announceHubWeights(const std::string& folder, const Progress& progress) {
  CLEAVE_TRY(const hub::SnapshotRequest request, requestFor(folder));
  return hub::announceWeights(request, {}, progress);
}

Result<std::string> fetchHubWeights(const std::string& folder, const hub::Watcher& watcher, const Progress& progress) {
  CLEAVE_TRY(const hub::SnapshotRequest request, requestFor(folder));
  CLEAVE_TRY(const hub::Snapshot fetched, hub::fetchSnapshot(request, watcher, progress));
  return fetched.folder.string();
}

#endif

}  // namespace cleave::pipeline
