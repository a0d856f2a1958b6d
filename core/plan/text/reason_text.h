#pragma once
/// Sentences about replication_reason.h.
#include "plan/replication_reason.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::plan {

/// The name of the kind in files: "split", "cannot", "does_not_pay", "not_asked_for", "not_known".
std::string_view kindOf(const ReplicationReason& reason);
/// A clause without a full stop, to follow a name: "cannot be split: 28 heads do not divide by 8 ranks", "is
/// replicated: splitting it costs at least 32.9 µs per step and saves no memory".
std::string toText(const ReplicationReason& reason);
/// The reason alone, for a part that is known to be replicated: "splitting it saves neither time nor memory".
std::string whyText(const ReplicationReason& reason);

/// "cannot be split", "cannot be split without redistribution, and then only with the full candidate set".
std::string cannotText(const Cannot& cannot);
/// All changes together: "with the full candidate set and without the pin lm_head=row".
std::string changesText(const std::vector<solve::Change>& changes);

}  // namespace cleave::plan
