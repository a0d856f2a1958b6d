#include "rules/placement_form.h"

namespace cleave::rules {
namespace {

Result<Placement> placementOf(const std::string& text, const std::string& name) {
  const auto parsed = Placement::parse(text);
  if (!parsed)
    return fail(ErrorCode::BadInput, "{} is {}, which is not a placement such as R or S(1).", name, quotedText(text));
  return *parsed;
}

}  // namespace

Result<Placement> PlacementForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const std::string text, object.text(key));
  return placementOf(text, object.nameOf(key));
}

Result<std::vector<Placement>> PlacementsForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const JsonArray list, object.array(key));
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CLEAVE_TRY(const std::string text, list.text(i));
    CLEAVE_TRY(placements.emplace_back(), placementOf(text, list.nameOf(i)));
  }
  return placements;
}

}  // namespace cleave::rules
