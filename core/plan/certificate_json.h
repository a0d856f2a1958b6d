#pragma once
/// A certificate in a plan file: "certificate", absent where the plan has none.
///
///   time_weight, byte_weight        of what is added up
///   steps [node]                    in the order in which they are taken
///   placements [text]
///   states [{count, width, tokens [placement * 4 + what is paid for]}]
///   claims [[number or null]]       femtoseconds (weighted) beyond a boundary's base; null: no plan comes out
///   boundaries [[states, claims, base]]
///
/// Numbers beyond 64 bits stand as texts of their digits.
#include "base/json.h"
#include "base/json_writer.h"
#include "solve/proof/certificate.h"

#include <memory>

namespace cleave::plan {

void writeCertificate(JsonWriter& json, const solve::Certificate& certificate);
/// Of `root.certificate`; null where there is none. Bounded; whether its claims hold is for solve::verify.
Result<std::shared_ptr<const solve::Certificate>> readCertificate(const JsonObject& root, const graph::Graph& graph);

}  // namespace cleave::plan
