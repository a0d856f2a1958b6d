#include "hub/cache.h"

#include "base/characters.h"
#include "base/exhaustion.h"
#include "base/json.h"
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace cleave::hub {
namespace {

constexpr std::int64_t kLongestRef = 256;
constexpr std::size_t kLongestEntry = 128;
constexpr auto kLockPeriod = std::chrono::milliseconds(100);
/// Backup tools skip a folder with this file. https://bford.info/cachedir/
constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag created by huggingface_hub.\n"
    "# For information about cache directory tags see https://bford.info/cachedir/\n";

tl::unexpected<Error> cannotWrite(const fs::path& path, std::string_view reason) {
  return fail(ErrorCode::Environment,
              "{} cannot be written ({}). Set HF_HUB_CACHE or --cache-dir to a writable folder.", path.string(),
              reason);
}

Result<void> makeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return cannotWrite(folder, error.message());
  return {};
}

std::string trimmedRef(std::string text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  return text;
}

}  // namespace

bool isSafeName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestEntry && name.front() != '.' && hasOnlyLettersDigitsAnd("-_.", name);
}

std::optional<std::string> Cache::knownCommit(const HubId& id) const {
  if (id.isCommit()) return id.revision;
  auto text = readTextFile(modelFolder(id) / "refs" / id.revision, kLongestRef);
  if (!text) return std::nullopt;
  std::string commit = trimmedRef(*std::move(text));
  return isSafeName(commit) ? std::optional(std::move(commit)) : std::nullopt;
}

Result<void> Cache::remember(const HubId& id, const std::string& commit) const {
  if (id.revision == commit) return {};
  const fs::path file = modelFolder(id) / "refs" / id.revision;
  if (knownCommit(id) == commit) return {};
  CLEAVE_TRY_VOID(makeFolder(file.parent_path()));
  std::error_code ignored;
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored))
    return cannotWrite(file, "it is not a file");  // opening a pipe would wait for its reader
  if (const auto written = writeFile(file, commit); !written) return cannotWrite(file, written.error().message);
  return {};
}

Result<void> Cache::prepare(const HubId& id, const std::string& commit, const std::string& file) const {
  CLEAVE_TRY_VOID(makeFolder(modelFolder(id) / "blobs"));
  CLEAVE_TRY_VOID(makeFolder((snapshot(id, commit) / file).parent_path()));
  CLEAVE_TRY_VOID(makeFolder(m_root / ".locks" / id.folderName()));
  std::error_code ignored;
  if (const fs::path tag = m_root / "CACHEDIR.TAG"; !fs::exists(tag, ignored))
    (void)writeFile(tag, kCacheTag);  // the cache works without the tag
  return {};
}

Result<void> Cache::link(const HubId& id, const std::string& commit, const std::string& file,
                         const std::string& etag) const {
  const fs::path target = blob(id, etag), pointer = snapshot(id, commit) / file;
  const fs::path way = target.lexically_relative(pointer.parent_path());
  std::error_code error;
  fs::remove(pointer, error);
  fs::create_symlink(way, pointer, error);
  std::error_code ignored;
  if (!error || (error == std::errc::file_exists && fs::exists(pointer, ignored))) return {};
  // FAT and some network file systems do not support links.
  fs::rename(target, pointer, error);
  if (error) return cannotWrite(pointer, error.message());
  return {};
}

Result<UniqueFd> Cache::lock(const HubId& id, const std::string& etag, const Progress& progress,
                             const std::function<void()>& onWait) const {
  const fs::path path = m_root / ".locks" / id.folderName() / (etag + ".lock");
  bool isWaiting = false;
  while (true) {
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0664));
    if (!file.isOpen()) return cannotWrite(path, reasonInWords(errno));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      struct stat held {};
      // The previous owner may have removed the lock file. The lock is then void.
      if (::fstat(file.get(), &held) == 0 && held.st_nlink > 0) return file;
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR)
      return fail(ErrorCode::Environment,
                  "{} cannot be locked ({}). Set HF_HUB_CACHE or --cache-dir to a folder on another file system.",
                  path.string(), reasonInWords(errno));
    if (progress.cancelled())
      return progress.cancelledError(
          "waiting for another process that downloads the same "
          "file");
    if (!isWaiting && onWait) onWait();
    isWaiting = true;
    std::this_thread::sleep_for(kLockPeriod);
  }
}

std::vector<std::string> Cache::models() const {
  std::vector<std::string> found;
  std::error_code error, ignored;
  for (fs::directory_iterator at(m_root, error), end; !error && at != end; at.increment(error)) {
    for (fs::directory_iterator ref(at->path() / "refs", ignored); !ignored && ref != end; ref.increment(ignored)) {
      const auto commit = readTextFile(ref->path(), kLongestRef);
      if (!commit) continue;  // a folder of refs/pr/1 and the like
      const fs::path folder = at->path() / "snapshots" / trimmedRef(*commit);
      const auto model = snapshotOf(folder);
      std::error_code missing;
      if (!model || !fs::exists(folder / "config.json", missing)) continue;
      const std::string revision = ref->path().filename().string();
      found.push_back(revision == "main" ? model->id.repo : model->id.repo + "@" + revision);
    }
  }
  std::ranges::sort(found);
  return found;
}

std::optional<SnapshotOf> snapshotOf(const fs::path& folder) {
  constexpr std::string_view kPrefix = "models--", kBetween = "--";
  const fs::path normal = folder.lexically_normal();
  const fs::path commitFolder = normal.has_filename() ? normal : normal.parent_path();
  const fs::path snapshots = commitFolder.parent_path(), model = snapshots.parent_path();
  std::string name = model.filename().string();
  if (snapshots.filename() != "snapshots" || !name.starts_with(kPrefix)) return std::nullopt;
  name.erase(0, kPrefix.size());
  if (const auto at = name.find(kBetween); at != std::string::npos) name.replace(at, kBetween.size(), "/");
  const auto id = HubId::parse(name + "@" + commitFolder.filename().string());
  if (!id || !isSafeName(id->revision)) return std::nullopt;
  return SnapshotOf{model.parent_path(), *id};
}

}  // namespace cleave::hub
