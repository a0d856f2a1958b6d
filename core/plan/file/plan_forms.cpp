#include "plan/file/plan_forms.h"

#include <nlohmann/json.hpp>

namespace cleave::plan {

Result<graph::NodeId> ResultForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const std::string name, object.text(key));
  const graph::ValueId value = graph->findValue(name);
  if (!value.isValid()) return object.wrong(key, "a value of plan.graph");
  return graph->value(value).producer;
}

Result<std::map<std::string, std::int64_t>> SizesForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const JsonObject sizes, object.object(key));
  std::map<std::string, std::int64_t> read;
  for (const auto& [symbol, size] : sizes.json().items()) {
    CLEAVE_TRY(read[symbol], sizes.integer(symbol, kSizes));
  }
  return read;
}

Result<bool> LossForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const bool hasLoss, object.flag(key));
  return hasLoss || isExported;
}

}  // namespace cleave::plan
