#pragma once
/// Error messages for failed requests to the Hub: one sentence with a remedy.
#include "hub/http.h"
#include "hub/hub_id.h"

namespace cleave::hub {

/// Environment (no network, a proxy, a certificate, a failing server) or BadInput (unknown model, no permission).
/// `file` is the requested file.
Error refusal(const Failure& failure, const HubId& id, const std::string& file, const HubSettings& settings);
/// True if the Hub itself could not be reached, so that the cache is the best source.
bool isUnreachable(const Failure& failure);

}  // namespace cleave::hub
