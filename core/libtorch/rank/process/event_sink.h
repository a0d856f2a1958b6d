#pragma once
#include "protocol/events.h"

#include <functional>

namespace cleave::torch_rank {

/// Receives the messages of a rank. Any of its threads may call it.
using EventSink = std::function<void(const protocol::Message&)>;

}  // namespace cleave::torch_rank
