#include "cli/shapes.h"

#include "base/json.h"

#include <nlohmann/json.hpp>

#include <charconv>

namespace cleave::cli {

std::string AskedShape::words() const { return fmt::format("batch {}, sequence {}", batch, sequence); }

Result<std::vector<AskedShape>> parseShapes(const std::string& text) {
  std::vector<AskedShape> shapes;
  const char* at = text.data();
  const char* const end = at + text.size();
  do {
    AskedShape shape;
    const auto batch = std::from_chars(at, end, shape.batch);
    const bool hasX = batch.ec == std::errc() && batch.ptr < end && *batch.ptr == 'x';
    const auto sequence = hasX ? std::from_chars(batch.ptr + 1, end, shape.sequence)
                               : std::from_chars_result{at, std::errc::invalid_argument};
    if (sequence.ec != std::errc() || (sequence.ptr < end && *sequence.ptr != ',') || shape.batch < 1 ||
        shape.sequence < 1) {
      return fail(ErrorCode::BadUsage,
                  "--shapes is \"{}\": write BATCHxSEQUENCE, several separated by commas, e.g. 2x16,1x64.", text);
    }
    shapes.push_back(shape);
    at = sequence.ptr + 1;
  } while (at < end);
  return shapes;
}

void ShapesDocument::addEntry(const AskedShape& shape, const std::string& entry) {
  m_entries += fmt::format("{}{{\"batch\": {}, \"sequence\": {}, {}}}", m_entries.empty() ? "" : ",\n", shape.batch,
                           shape.sequence, entry);
}

void ShapesDocument::add(const AskedShape& shape, const std::string& report, std::optional<bool> passed) {
  m_hasFailed = m_hasFailed || passed == false;
  m_isAllChecked = m_isAllChecked && passed;
  addEntry(shape, "\"report\": " + report);
}

void ShapesDocument::add(const AskedShape& shape, const Error& error) {
  m_hasFailed = true;
  addEntry(shape, "\"error\": " + jsonText({{"code", exitCode(error.code)}, {"message", error.message}}, -1));
}

std::string ShapesDocument::text() const {
  const char* passed = m_hasFailed ? "false" : m_isAllChecked ? "true" : "null";
  return fmt::format("{{\"schema\": \"cleave.runs/1\",\n\"passed\": {},\n\"runs\": [\n{}\n]}}\n", passed, m_entries);
}

}  // namespace cleave::cli
