#pragma once
/// The Hub's address, cache and token. They come from the environment variables of huggingface_hub, so that both use
/// the same. https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
///
/// | setting      | source                                                                                       |
/// |--------------|----------------------------------------------------------------------------------------------|
/// | endpoint     | HF_ENDPOINT, else https://huggingface.co                                                     |
/// | cache        | HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else                    |
/// |              | ~/.cache/huggingface/hub                                                                     |
/// | token        | HF_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token; not used if                       |
/// |              | HF_HUB_DISABLE_IMPLICIT_TOKEN is on                                                          |
/// | offline      | HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE: 1, ON, YES or TRUE                                   |
/// | quiet time   | HF_HUB_DOWNLOAD_TIMEOUT: seconds without a byte, default 10                                  |
/// | certificates | REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE, else the system's                       |
#include "base/files.h"
#include "base/secret.h"

#include <functional>
#include <optional>

namespace cleave::hub {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";
  fs::path cache;
  Secret token;
  std::string tokenFrom;       ///< "HF_TOKEN", or the file's path; empty: no token
  std::string tokenLookedFor;  ///< path of the token file if it does not exist
  std::string whyNoToken;      ///< why the token there is not used, a clause; empty: no token was found
  bool isOffline = false;
  std::string offlineBy;  ///< the variable that sets it
  int quietSeconds = 10;
  std::string certificates;  ///< a file; empty: the system's certificates
};

/// Gives the value of a variable. Secrets come from secretOfEnvironment.
using Environment = std::function<std::optional<std::string>(const char* name)>;
/// BadInput: the endpoint is not an http(s) address, or a number is invalid. Environment: the cache folder is unknown.
Result<HubSettings> hubSettings(const Environment& environment);
/// Settings of this process.
Result<HubSettings> hubSettings();
/// Reads the token from a file, for `--token-file`. BadInput if the file has no token.
Result<void> readTokenFrom(const fs::path& file, HubSettings& settings);

}  // namespace cleave::hub
