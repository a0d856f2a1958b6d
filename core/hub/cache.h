#pragma once
/// The cache for files from a Hub. It has the layout of huggingface_hub, so that both share one.
/// https://huggingface.co/docs/huggingface_hub/guides/manage-cache
///
///     models--org--name/blobs/ETAG                 each file once, named by its ETag
///     models--org--name/snapshots/COMMIT/FILE      a relative link to its blob
///     models--org--name/refs/REVISION              the last known commit of a branch or tag
///     .locks/models--org--name/ETAG.lock           held (flock) by the process that writes a blob
///
/// Functions are safe to call from any thread and process.
#include "base/files.h"
#include "base/progress.h"
#include "base/unique_fd.h"
#include "hub/hub_id.h"

#include <functional>
#include <optional>
#include <vector>

namespace cleave::hub {

class Cache {
 public:
  explicit Cache(fs::path root) : m_root(std::move(root)) {}
  const fs::path& root() const { return m_root; }
  fs::path modelFolder(const HubId& id) const { return m_root / id.folderName(); }
  fs::path blob(const HubId& id, const std::string& etag) const { return modelFolder(id) / "blobs" / etag; }
  fs::path snapshot(const HubId& id, const std::string& commit) const { return modelFolder(id) / "snapshots" / commit; }

  /// Names of the models whose config the cache has at any branch or tag, sorted.
  std::vector<std::string> models() const;
  /// The commit of the revision, as of the last request.
  std::optional<std::string> knownCommit(const HubId& id) const;
  /// Environment if it cannot be written.
  Result<void> remember(const HubId& id, const std::string& commit) const;
  /// Creates the folders of a file's blob and link.
  Result<void> prepare(const HubId& id, const std::string& commit, const std::string& file) const;
  /// Makes the snapshot's file a link to its blob. On a file system without links the blob itself is moved there.
  Result<void> link(const HubId& id, const std::string& commit, const std::string& file, const std::string& etag) const;
  /// Waits until no other process writes this blob. `onWait` is called once if there is a wait.
  Result<UniqueFd> lock(const HubId& id, const std::string& etag, const Progress& progress,
                        const std::function<void()>& onWait) const;

 private:
  fs::path m_root;
};

/// The model of a snapshot folder "…/models--org--name/snapshots/COMMIT".
struct SnapshotOf {
  fs::path cache;
  HubId id;  ///< the revision is the commit
};
std::optional<SnapshotOf> snapshotOf(const fs::path& folder);

/// True if a server's name is safe as a file name: letters, digits, '-', '_' and '.', and not a path to another folder.
bool isSafeName(std::string_view name);

}  // namespace cleave::hub
