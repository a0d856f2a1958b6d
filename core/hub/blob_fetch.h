#pragma once
/// Downloads one file of a model into the cache: in parts over several connections, continuing an earlier download.
/// Size and hash are checked.
#include "hub/cache.h"
#include "hub/download_state.h"
#include "hub/http.h"

namespace cleave::hub {

/// A file as the Hub announces it.
struct RemoteFile {
  std::string name;    ///< path in the model, "model-00001-of-00002.safetensors"
  std::string url;     ///< address at the Hub
  std::string etag;    ///< a safe name (isSafeName)
  std::string source;  ///< address of the bytes: `url`, or a temporary one elsewhere
  std::int64_t sizeBytes = 0;
};

struct FetchContext {
  const HubSettings& settings;
  const HubId& id;
  const std::string& commit;
  const Cache& cache;
  const Progress& progress;
  HttpClient& client;
  Meter& meter;
};

/// True if the snapshot has the file with the announced size.
bool isThere(const FetchContext& context, const RemoteFile& file);
/// Number of its bytes that an earlier download left.
std::int64_t leftOf(const FetchContext& context, const RemoteFile& file);
/// Adds the file to the snapshot. Received bytes are kept if it fails or is stopped.
Result<void> fetch(const FetchContext& context, const RemoteFile& file);

}  // namespace cleave::hub
