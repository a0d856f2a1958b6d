#pragma once
/// The forms of placements in traces and sessions (base/schema_forms.h): "R", "S(1)", "P", ...
#include "base/schema_forms.h"
#include "rules/placement.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::rules {

struct PlacementForm {
  std::string type() const { return "placement"; }
  void write(auto& out, const Placement& placement) const { out.value(placement.text()); }
  Result<Placement> read(const JsonObject& object, std::string_view key) const;
};

struct PlacementsForm {
  std::string type() const { return "list of placements"; }
  void write(auto& out, const std::vector<Placement>& placements) const {
    out.beginArray();
    for (const Placement& placement : placements) out.value(placement.text());
    out.endArray();
  }
  Result<std::vector<Placement>> read(const JsonObject& object, std::string_view key) const;
};

}  // namespace cleave::rules
