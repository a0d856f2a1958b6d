#include "cli/shapes.h"

#include "base/json.h"

#include <nlohmann/json.hpp>

namespace cleave::cli {

std::string wordsOf(const spec::RunShape& shape) {
  return fmt::format("batch {}, sequence {}", shape.batch, shape.sequence);
}

void ShapesDocument::addEntry(const spec::RunShape& shape, const std::string& entry) {
  m_entries += fmt::format("{}{{\"batch\": {}, \"sequence\": {}, {}}}", m_entries.empty() ? "" : ",\n", shape.batch,
                           shape.sequence, entry);
}

void ShapesDocument::add(const spec::RunShape& shape, const std::string& report, std::optional<bool> passed) {
  m_hasFailed = m_hasFailed || passed == false;
  m_isAllChecked = m_isAllChecked && passed;
  addEntry(shape, "\"report\": " + report);
}

void ShapesDocument::add(const spec::RunShape& shape, const Error& error) {
  m_hasFailed = true;
  addEntry(shape, "\"error\": " + jsonText({{"code", exitCode(error.code)}, {"message", error.message}}, -1));
}

std::string ShapesDocument::text() const {
  const char* passed = m_hasFailed ? "false" : m_isAllChecked ? "true" : "null";
  return fmt::format("{{\"schema\": \"cleave.runs/1\",\n\"passed\": {},\n\"runs\": [\n{}\n]}}\n", passed, m_entries);
}

}  // namespace cleave::cli
