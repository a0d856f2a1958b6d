#include "hub/snapshot.h"

#include "base/json.h"
#include "base/quantities.h"
#include "base/terminal_text.h"
#include "formats/weight_files.h"
#include "hub/address.h"
#include "hub/blob_fetch.h"
#include "hub/refusals.h"

#include <nlohmann/json.hpp>

#include <sys/statvfs.h>

#include <charconv>

namespace cleave::hub {
namespace {

constexpr std::string_view kConfig = "config.json", kIndex = "model.safetensors.index.json",
                           kSingle = "model.safetensors";
constexpr int kHeadsAtOnce = 8;
constexpr std::int64_t kMostConfigBytes = JsonLimits().bytes;
constexpr std::int64_t kDiskReserve = 1 << 20;
constexpr std::int64_t kLargestFile = std::int64_t{1} << 50;  // so that sums cannot overflow

std::string unquotedEtag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  return etag;
}

std::optional<std::int64_t> sizeIn(const std::string& text) {
  std::int64_t size = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool isSize =
      !text.empty() && error == std::errc() && end == text.data() + text.size() && size >= 0 && size <= kLargestFile;
  return isSize ? std::optional(size) : std::nullopt;
}

class Fetcher {
 public:
  Fetcher(const SnapshotRequest& request, const Watcher& watcher, const Progress& progress)
      : m_request(request),
        m_watcher(watcher),
        m_progress(progress),
        m_cache(request.settings.cache),
        m_meter(watcher),
        m_client(request.settings, progress, [this](const std::string& what) {
          m_meter.state.waitingFor = what;
          m_meter.report();
        }) {}

  Result<Snapshot> run();
  Result<WeightsAnnounced> announce();

 private:
  using Files = std::vector<RemoteFile>;
  std::string urlOf(const std::string& file, const std::string& revision) const {
    return fmt::format("{}/{}/resolve/{}/{}", m_request.settings.endpoint, m_request.id.repo, escaped(revision),
                       escapedPath(file));
  }
  Error refused(const Failure& failure, const std::string& file) const {
    return refusal(failure, m_request.id, file, m_request.settings);
  }
  FetchContext context() {
    return {m_request.settings, m_request.id, m_commit, m_cache, m_progress, m_client, m_meter};
  }
  fs::path folder() const { return m_cache.snapshot(m_request.id, m_commit); }

  Result<Snapshot> fromCache(const std::string& because);
  bool areWhole() const;
  Result<RemoteFile> announced(const std::string& name, const Call& call) const;
  Result<Files> announcedFiles(const std::vector<std::string>& names);
  Result<std::optional<Error>> askForConfig();
  Result<void> checkText(const RemoteFile& file, std::int64_t most) const;
  void noteNewName(const Answer& answer) const;
  Error refuseWithoutConfig();
  Result<std::vector<std::string>> listedFiles();
  Result<std::vector<std::string>> weightFiles();
  Result<void> fetchAll(const Files& files);
  Result<void> checkDisk(std::int64_t bytes) const;
  struct Weights {
    Files missing;
    WeightsAnnounced sizes;
  };
  Result<Weights> findWeights();
  Result<void> fetchWeights();

  const SnapshotRequest& m_request;
  const Watcher& m_watcher;
  const Progress& m_progress;
  Cache m_cache;
  Meter m_meter;
  HttpClient m_client;
  std::string m_commit;
};

/// Bytes from earlier downloads, by this process or others.
Result<Snapshot> Fetcher::fromCache(const std::string& because) {
  const HubId& id = m_request.id;
  const auto commit = m_cache.knownCommit(id);
  std::error_code ignored;
  const std::string where = m_cache.modelFolder(id).string();
  if (!commit || !fs::exists(m_cache.snapshot(id, *commit) / kConfig, ignored))
    return fail(ErrorCode::Environment, "The cache has no config.json of {} in {}, and {}.", id.text(), where, because);
  m_commit = *commit;
  if (m_request.wanted == Wanted::Weights) {
    const auto weights = formats::findWeightFiles(folder());
    if (!weights || weights->files.empty())
      return fail(ErrorCode::Environment, "The cache does not have all weights of {} in {}, and {}.", id.text(),
                  folder().string(), because);
  }
  return Snapshot{folder(), m_commit};
}

/// The header of a weight file gives its length, so a truncated file is downloaded again.
bool Fetcher::areWhole() const {
  if (m_request.wanted != Wanted::Weights) return true;
  const auto weights = formats::findWeightFiles(folder());
  return weights && std::ranges::all_of(weights->files, [&](const std::string& name) {
           return formats::openWeights(folder(), name).has_value();
         });
}

/// Facts about a file from a HEAD request, by huggingface_hub's rules (file_download.py, get_hf_file_metadata).
Result<RemoteFile> Fetcher::announced(const std::string& name, const Call& call) const {
  const Answer& answer = call.answer;
  const auto first = [&](const char* a, const char* b) {
    const std::string linked = answer.header(a);
    return linked.empty() ? answer.header(b) : linked;
  };
  RemoteFile file{name, call.url, unquotedEtag(first("x-linked-etag", "etag")),
                  answer.redirectsTo.empty() ? answer.url : answer.redirectsTo, 0};
  const auto size = sizeIn(first("x-linked-size", answer.redirectsTo.empty() ? "content-length" : "x-linked-size"));
  if (!isSafeName(file.etag) || !size) {
    return fail(ErrorCode::Environment,
                "{} does not answer like a Hub: its answer for {} of {} has no {}. Check HF_ENDPOINT and the proxy.",
                m_request.settings.endpoint, name, m_request.id.repo, size ? "ETag that can name a file" : "size");
  }
  file.sizeBytes = *size;
  return file;
}

void Fetcher::noteNewName(const Answer& answer) const {
  const std::string prefix = m_request.settings.endpoint + "/";
  const auto end = answer.url.find("/resolve/");
  if (!answer.url.starts_with(prefix) || end == std::string::npos || end < prefix.size()) return;
  const std::string name = answer.url.substr(prefix.size(), end - prefix.size());
  if (name != m_request.id.repo && HubId::parse(name) && m_watcher.onNote)
    m_watcher.onNote(fmt::format("{} is now called {}.", m_request.id.repo, name));
}

/// Sets the commit and downloads the config. An error inside the value means that the Hub is unreachable.
Result<std::optional<Error>> Fetcher::askForConfig() {
  const std::string name(kConfig);
  Call call{.url = urlOf(name, m_request.id.revision), .isHead = true, .staysAtOrigin = true};
  CLEAVE_TRY_VOID(m_client.perform(call));
  if (call.failure && isUnreachable(*call.failure)) return refused(*call.failure, name);
  const std::string commit = call.answer.header("x-repo-commit");
  if (call.failure && call.failure->answer.header("x-error-code") == "EntryNotFound") {
    m_commit = commit.empty() ? m_request.id.revision : commit;
    return tl::unexpected(refuseWithoutConfig());
  }
  if (call.failure) return tl::unexpected(refused(*call.failure, name));
  if (!isSafeName(commit) || !HubId::parse(m_request.id.repo + "@" + commit)) {
    return fail(ErrorCode::Environment,
                "{} does not answer like a Hub: its answer for {} of {} has no commit (X-Repo-Commit). Check "
                "HF_ENDPOINT and the proxy.",
                m_request.settings.endpoint, name, m_request.id.repo);
  }
  m_commit = commit;
  noteNewName(call.answer);
  CLEAVE_TRY(const RemoteFile file, announced(name, call));
  CLEAVE_TRY_VOID(checkText(file, kMostConfigBytes));
  if (!isThere(context(), file)) CLEAVE_TRY_VOID(fetchAll({file}));
  CLEAVE_TRY_VOID(m_cache.remember(m_request.id, m_commit));
  return std::nullopt;
}

/// Files that are parsed as JSON are checked against the reader's limit before they are downloaded.
Result<void> Fetcher::checkText(const RemoteFile& file, std::int64_t most) const {
  if (file.sizeBytes <= most) return {};
  return fail(ErrorCode::BadInput, "The {} of {} has {}, but the limit is {}. It is not downloaded.", file.name,
              m_request.id.text(), bytesText(file.sizeBytes), bytesText(most));
}

/// Names of the files at the top level of the repository, each once. Names with control characters are skipped.
Result<std::vector<std::string>> Fetcher::listedFiles() {
  Call call{.url = fmt::format("{}/api/models/{}/revision/{}", m_request.settings.endpoint, m_request.id.repo,
                               escaped(m_commit))};
  CLEAVE_TRY_VOID(m_client.perform(call));
  if (call.failure && call.failure->answer.status == 404) {  // its config came from that repository
    return fail(ErrorCode::Environment, "{} does not answer like a Hub: it lists no files of {}. Check HF_ENDPOINT.",
                m_request.settings.endpoint, m_request.id.repo);
  }
  if (call.failure) return tl::unexpected(refused(*call.failure, "the list of files"));
  const std::string where = fmt::format("The answer of {}", m_request.settings.endpoint);
  CLEAVE_TRY(const nlohmann::json json, parseJson(call.answer.body, where, {.bytes = 32 << 20}));
  std::vector<std::string> names;
  if (!json.is_object() || !json.contains("siblings") || !json["siblings"].is_array())
    return fail(ErrorCode::Environment, "{} lists no files of {}. Check HF_ENDPOINT.", where, m_request.id.repo);
  for (const nlohmann::json& entry : json["siblings"]) {
    if (!entry.is_object() || !entry.contains("rfilename") || !entry["rfilename"].is_string()) continue;
    auto name = entry["rfilename"].get<std::string>();
    if (name.find('/') == std::string::npos && terminalText(name) == name && name.find('\n') == std::string::npos)
      names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Error Fetcher::refuseWithoutConfig() {
  const std::string& repo = m_request.id.repo;
  const auto names = listedFiles();
  const auto has = [&](auto isIt) {
    const auto found = names ? std::ranges::find_if(*names, isIt) : std::vector<std::string>::const_iterator();
    return names && found != names->end() ? *found : std::string();
  };
  const auto refuse = [&](const std::string& what) {
    return Error{ErrorCode::BadInput, fmt::format("{} has no config.json{}", repo, what)};
  };
  if (const std::string file = has([](const std::string& name) { return name == "adapter_config.json"; });
      !file.empty())
    return refuse(": it is an adapter. Merge it into its base model, or open the base model's id.");
  if (const std::string file = has([](const std::string& name) { return name.ends_with(".gguf"); }); !file.empty())
    return refuse(fmt::format(
        ", but GGUF files ({}), which Cleave does not read. Use the id of the model they were made from.", file));
  if (const std::string file = has([](const std::string& name) { return name == "model_index.json"; }); !file.empty())
    return refuse(": it is a pipeline of several models (model_index.json), which Cleave does not open.");
  return refuse(fmt::format(" at revision {}: it is not a transformers model.", m_request.id.revision));
}

/// One HEAD request per file. Files missing in the repository are left out.
Result<Fetcher::Files> Fetcher::announcedFiles(const std::vector<std::string>& names) {
  Files files;
  std::map<const Call*, std::string> asked;
  auto at = names.begin();
  const auto next = [&]() -> std::shared_ptr<Call> {
    if (at == names.end()) return nullptr;
    auto call = std::make_shared<Call>(
        Call{.url = urlOf(*at, m_commit), .isHead = true, .staysAtOrigin = true, .mayBeMissing = true});
    asked[call.get()] = *at++;
    return call;
  };
  const auto finished = [&](Call& call) -> Result<void> {
    const std::string name = asked.extract(&call).mapped();
    if (call.failure) return tl::unexpected(refused(*call.failure, name));
    if (call.answer.status == 404) return {};
    CLEAVE_TRY(RemoteFile file, announced(name, call));
    files.push_back(std::move(file));
    return {};
  };
  CLEAVE_TRY_VOID(m_client.perform(kHeadsAtOnce, next, finished));
  std::ranges::sort(files, {}, &RemoteFile::name);
  return files;
}

/// Names of the weight files, chosen as in a folder.
Result<std::vector<std::string>> Fetcher::weightFiles() {
  CLEAVE_TRY(const Files known, announcedFiles({std::string(kSingle), std::string(kIndex)}));
  for (const RemoteFile& file : known)
    if (file.name == kSingle) return std::vector<std::string>{file.name};
  if (!known.empty()) {
    CLEAVE_TRY_VOID(checkText(known.front(), formats::kMostIndexBytes));
    if (!isThere(context(), known.front())) CLEAVE_TRY_VOID(fetchAll(known));
    CLEAVE_TRY(const formats::WeightFiles indexed, formats::readWeightIndex(folder()));
    return indexed.files;
  }
  CLEAVE_TRY(const auto names, listedFiles());
  CLEAVE_TRY(auto chosen, formats::weightFilesAmong(names, m_request.id.repo));
  if (!chosen.empty()) return chosen;
  return fail(ErrorCode::BadInput, "{} has no weights, only a config.json. Plan it, or run it with --skip-weights.",
              m_request.id.text());
}

Result<void> Fetcher::checkDisk(std::int64_t bytes) const {
  fs::path existing = m_cache.root();
  std::error_code ignored;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) existing = existing.parent_path();
  struct statvfs disk {};
  if (::statvfs(existing.c_str(), &disk) != 0 || disk.f_blocks == 0) return {};  // /proc and the like report no space
  const auto free = static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize);
  if (bytes + kDiskReserve <= free) return {};
  return fail(ErrorCode::Environment,
              "{} needs {} more in {}, where {} are free. Free space there, or choose another folder with "
              "HF_HUB_CACHE or --cache-dir.",
              m_request.id.text(), bytesText(bytes), m_cache.root().string(), bytesText(free));
}

Result<void> Fetcher::fetchAll(const Files& files) {
  DownloadState& state = m_meter.state;
  state = {};
  state.files = static_cast<int>(files.size());
  std::int64_t before = 0;
  for (const RemoteFile& file : files) {
    state.totalBytes += file.sizeBytes;
    state.doneBytes += leftOf(context(), file);
  }
  CLEAVE_TRY_VOID(checkDisk(state.totalBytes - state.doneBytes));
  for (const RemoteFile& file : files) {
    state.file = file.name;
    ++state.number;
    m_meter.report();
    CLEAVE_TRY_VOID(fetch(context(), file));
    before += file.sizeBytes;
    state.doneBytes = std::max(state.doneBytes, before);  // another process may have downloaded it
  }
  return {};
}

Result<Fetcher::Weights> Fetcher::findWeights() {
  CLEAVE_TRY(const auto names, weightFiles());
  CLEAVE_TRY(const Files announced, announcedFiles(names));
  if (announced.size() != names.size()) {
    const auto isMissing = [&](const std::string& name) {
      return std::ranges::find(announced, name, &RemoteFile::name) == announced.end();
    };
    return fail(ErrorCode::BadInput, "{} has no {}, which its {} lists. Ask its owner, or use another revision.",
                m_request.id.text(), *std::ranges::find_if(names, isMissing), kIndex);
  }
  Weights weights;
  weights.sizes.files = static_cast<int>(announced.size());
  for (const RemoteFile& file : announced) {
    weights.sizes.totalBytes += file.sizeBytes;
    if (isThere(context(), file)) continue;
    weights.missing.push_back(file);
    weights.sizes.missingBytes += file.sizeBytes - leftOf(context(), file);
  }
  return weights;
}

Result<void> Fetcher::fetchWeights() {
  CLEAVE_TRY(const Weights weights, findWeights());
  if (weights.missing.empty()) return {};
  if (m_watcher.onNote) {
    m_watcher.onNote(fmt::format("{} (commit {}) has {} of weights in {}: {} are downloaded into {}.",
                                 m_request.id.text(), m_commit.substr(0, 8), bytesText(weights.sizes.totalBytes),
                                 counted(weights.sizes.files, "file"), bytesText(weights.sizes.missingBytes),
                                 m_cache.root().string()));
  }
  return fetchAll(weights.missing);
}

Result<WeightsAnnounced> Fetcher::announce() {
  if (m_request.isLocalOnly || m_request.settings.isOffline)
    return fail(ErrorCode::Environment, "{} forbids asking the Hub for the weights of {}.",
                m_request.isLocalOnly ? "--local-only" : m_request.settings.offlineBy, m_request.id.text());
  CLEAVE_TRY(const std::optional<Error> unreachable, askForConfig());
  if (unreachable) return tl::unexpected(*unreachable);
  CLEAVE_TRY(const Weights weights, findWeights());
  return weights.sizes;
}

Result<Snapshot> Fetcher::run() {
  const HubSettings& settings = m_request.settings;
  if (m_request.isLocalOnly) return fromCache("--local-only forbids asking the Hub");
  if (settings.isOffline) return fromCache(fmt::format("{} forbids asking the Hub", settings.offlineBy));
  if (m_request.id.isCommit()) {  // a commit never changes
    if (auto known = fromCache(""); known && areWhole()) return known;
  }
  CLEAVE_TRY(const std::optional<Error> unreachable, askForConfig());
  if (unreachable) {
    auto known = fromCache("");
    if (!known) return tl::unexpected(*unreachable);
    if (m_watcher.onNote)
      m_watcher.onNote(fmt::format("{} Using the cached commit {}.", unreachable->message, known->commit.substr(0, 8)));
    return known;
  }
  if (m_request.wanted == Wanted::Weights) CLEAVE_TRY_VOID(fetchWeights());
  return Snapshot{folder(), m_commit};
}

}  // namespace

Result<WeightsAnnounced> announceWeights(const SnapshotRequest& request, const Watcher& watcher,
                                         const Progress& progress) {
  return Fetcher(request, watcher, progress).announce();
}

Result<Snapshot> fetchSnapshot(const SnapshotRequest& request, const Watcher& watcher, const Progress& progress) {
  return Fetcher(request, watcher, progress).run();
}

}  // namespace cleave::hub
