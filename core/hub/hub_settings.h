#pragma once
/// How the Hub is reached and where what comes from it lies: the environment variables of huggingface_hub, so that both
/// do the same. https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
///
/// | what         | from                                                                                           |
/// |--------------|------------------------------------------------------------------------------------------------|
/// | endpoint     | HF_ENDPOINT, else https://huggingface.co                                                       |
/// | cache        | HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub
/// | | token        | HF_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token; none where
/// HF_HUB_DISABLE_IMPLICIT_TOKEN is on | | offline      | HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE: 1, ON, YES or TRUE |
/// | quiet time   | HF_HUB_DOWNLOAD_TIMEOUT: seconds without a byte, 10                                            |
/// | certificates | REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE, else the system's                         |
#include "base/files.h"
#include "base/secret.h"

#include <functional>
#include <optional>

namespace cleave::hub {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";
  fs::path cache;
  Secret token;
  std::string tokenFrom;       ///< "HF_TOKEN", or the file's path; empty: there is none
  std::string tokenLookedFor;  ///< where there was none: the file that would hold it
  std::string whyNoToken;      ///< a clause: why what is there is not used; empty: nothing is there
  bool isOffline = false;
  std::string offlineBy;  ///< the variable that says so
  int quietSeconds = 10;
  std::string certificates;  ///< a file; empty: the system's
};

/// Where a variable's value comes from; secrets go by secretOfEnvironment.
using Environment = std::function<std::optional<std::string>(const char* name)>;
/// BadInput: an endpoint that is no http(s) address, a number that is none; Environment: no folder for the cache is
/// known.
Result<HubSettings> hubSettings(const Environment& environment);
/// Of this process.
Result<HubSettings> hubSettings();
/// The token that a file holds, for `--token-file`. BadInput when it holds none.
Result<void> takeTokenFrom(const fs::path& file, HubSettings& settings);

}  // namespace cleave::hub
