#pragma once
/// A certificate in a plan file: the key "certificate", absent in plans without one.
///
///   time_weight, byte_weight        weights of the sum that is minimised
///   steps [node]                    in the order of the search
///   placements [text]
///   states [{count, width, tokens [placement * 4 + shares that are paid]}]
///   claims [[number or null]]       femtoseconds (weighted) beyond a boundary's base; null: the state leads to no plan
///   boundaries [[states, claims, base]]
///
/// Numbers beyond 64 bits are texts of digits.
#include "base/json.h"
#include "base/json_writer.h"
#include "solve/proof/certificate.h"

#include <memory>

namespace cleave::plan {

void writeCertificate(JsonWriter& json, const solve::Certificate& certificate);
/// Reads `root.certificate`; null if the key is absent. Bounded. solve::verify checks the claims.
Result<std::shared_ptr<const solve::Certificate>> readCertificate(const JsonObject& root, const graph::Graph& graph);

}  // namespace cleave::plan
