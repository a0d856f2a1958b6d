#pragma once
/// Evaluates one rule in JSON: `cleave-cli rules --eval`.
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::pipeline {

/// `{"op":"aten::sum.dim_IntList","args":[{"tensor":[2,8,4],"placement":"S(1)"},[2],false],"ranks":2}` →
/// `{"out":["S(1)"]}` (all allowed placements of the first output, best first) or `{"conflict":"…"}`.
///
/// Arguments are in schema order; missing ones at the end have the schema's defaults; `"kwargs":{"dim":[1]}` names
/// some. A tensor may have a dtype (`"dtype":"int64"`; default: int64 if the operator needs indices, otherwise float32)
/// and may be a parameter (`"parameter":true`, the default for a weight without a placement). A list of tensors is a
/// list of such objects or nulls. BadInput says what is wrong with the line.
Result<std::string> evaluateRule(std::string_view line);

/// `{"error":"…"}`
std::string errorLine(const Error& error);

}  // namespace cleave::pipeline
