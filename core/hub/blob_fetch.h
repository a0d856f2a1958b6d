#pragma once
/// Fetches one file of a model into the cache: in parts over several connections, from where an earlier download was
/// stopped, its size and hash checked.
#include "hub/cache.h"
#include "hub/download_state.h"
#include "hub/http.h"

namespace cleave::hub {

/// A file as the Hub announces it.
struct RemoteFile {
  std::string name;    ///< in the model, "model-00001-of-00002.safetensors"
  std::string url;     ///< at the Hub
  std::string etag;    ///< a safe name (isSafeName)
  std::string source;  ///< where the Hub says that it lies; as `url`, or elsewhere for a while
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

/// True when the snapshot has the file, with the announced size.
bool isThere(const FetchContext& context, const RemoteFile& file);
/// How many of its bytes an earlier download left.
std::int64_t leftOf(const FetchContext& context, const RemoteFile& file);
/// The snapshot has the file then. What has come stays when it fails or is stopped.
Result<void> fetch(const FetchContext& context, const RemoteFile& file);

}  // namespace cleave::hub
