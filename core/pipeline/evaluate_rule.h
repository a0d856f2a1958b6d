#pragma once
/// One rule, asked in JSON: `cleave-cli rules --eval`.
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::pipeline {

/// `{"op":"aten::sum.dim_IntList","args":[{"tensor":[2,8,4],"placement":"S(1)"},[2],false],"ranks":2}` →
/// `{"out":["S(1)"]}` (all allowed placements of the first output, best first) or `{"conflict":"…"}`.
///
/// Arguments stand in schema order; missing trailing ones take the schema's defaults; `"kwargs":{"dim":[1]}` names
/// some. A tensor may say its dtype (`"dtype":"int64"`; default: int64 where the operator needs indices, else float32)
/// and that it is a parameter (`"parameter":true`, which the weight of a linear or embedding is anyway). A list of
/// tensors is a list of such objects or nulls. BadInput names what is wrong with the line.
Result<std::string> evaluateRule(std::string_view line);

/// `{"error":"…"}`
std::string errorLine(const Error& error);

}  // namespace cleave::pipeline
