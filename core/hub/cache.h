#pragma once
/// Where what comes from a Hub lies: the cache of huggingface_hub, so that both share one.
/// https://huggingface.co/docs/huggingface_hub/guides/manage-cache
///
///     models--org--name/blobs/ETAG                 each file once, called by its ETag
///     models--org--name/snapshots/COMMIT/FILE      a relative link to its blob
///     models--org--name/refs/REVISION              the commit that a branch or tag was seen at
///     .locks/models--org--name/ETAG.lock           held (flock) by whoever writes a blob
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

  /// What a model is called of which the cache has a config at some branch or tag, sorted.
  std::vector<std::string> models() const;
  /// The commit that the revision is, or was when it was asked for last.
  std::optional<std::string> knownCommit(const HubId& id) const;
  /// Environment when it cannot be written.
  Result<void> remember(const HubId& id, const std::string& commit) const;
  /// Makes the folders that a file's blob and link lie in.
  Result<void> prepare(const HubId& id, const std::string& commit, const std::string& file) const;
  /// The file of a snapshot becomes a link to its blob. Where the file system has no links it becomes the blob itself.
  Result<void> link(const HubId& id, const std::string& commit, const std::string& file, const std::string& etag) const;
  /// Waits until no other process writes this blob; `onWait` is called once if one does.
  Result<UniqueFd> lock(const HubId& id, const std::string& etag, const Progress& progress,
                        const std::function<void()>& onWait) const;

 private:
  fs::path m_root;
};

/// The folder of a snapshot says which model it is of: "…/models--org--name/snapshots/COMMIT".
struct SnapshotOf {
  fs::path cache;
  HubId id;  ///< its revision is the commit
};
std::optional<SnapshotOf> snapshotOf(const fs::path& folder);

/// Names that a server gives become names of files: letters, digits, '-', '_' and '.', none of them a way out.
bool isSafeName(std::string_view name);

}  // namespace cleave::hub
