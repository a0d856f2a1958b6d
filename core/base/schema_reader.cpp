#include "base/schema_reader.h"

#include <nlohmann/json.hpp>

namespace cleave::schema {

bool Reader::holds(const char* key) const { return m_object.json().contains(key); }

Result<void> Reader::finish() && {
  if (m_error) return tl::unexpected(*std::move(m_error));
  return {};
}

}  // namespace cleave::schema
