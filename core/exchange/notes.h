#pragma once
/// Writes notes in the formats' JSON and as sentences.
#include "base/json_writer.h"
#include "exchange/styles.h"

namespace cleave::exchange {

/// "notes": [{"layer", "strategy", "why", "instead"}]
void writeNotes(JsonWriter& json, const std::vector<Note>& notes);
std::vector<std::string> sentences(const std::vector<Note>& notes);

}  // namespace cleave::exchange
