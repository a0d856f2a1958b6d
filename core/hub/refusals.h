#pragma once
/// What a failed question to the Hub means for whoever asked, in one sentence with what to do.
#include "hub/http.h"
#include "hub/hub_id.h"

namespace cleave::hub {

/// Environment (no network, a proxy, a certificate, a server that fails) or BadInput (no such model, not allowed).
/// `file`: what was asked for.
Error refusal(const Failure& failure, const HubId& id, const std::string& file, const HubSettings& settings);
/// True where the Hub itself could not be asked, so that what lies in the cache is the best there is.
bool isUnreachable(const Failure& failure);

}  // namespace cleave::hub
