#include "base/schema_rows.h"

namespace cleave::schema {

void Rows::add(const Field& field, std::string type) {
  if (field.absence == Absence::Omitted) type += ", may be absent";
  if (field.absence == Absence::Null) type += " or null";
  m_rows.push_back({m_prefix + field.key, std::move(type), field.about});
}

std::string markdownTable(const std::vector<Row>& rows) {
  std::string text = "| field | type | meaning |\n|---|---|---|\n";
  const auto addCell = [&text](const std::string& cell) {
    for (const char c : cell) {
      if (c == '|') text += '\\';
      text += c;
    }
  };
  for (const Row& row : rows) {
    text += fmt::format("| `{}` | ", row.path);
    addCell(row.type);
    text += " | ";
    addCell(row.about);
    text += " |\n";
  }
  return text;
}

}  // namespace cleave::schema
