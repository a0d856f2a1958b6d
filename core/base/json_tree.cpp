#include "base/json_tree.h"

#include "base/result.h"

#include <nlohmann/json.hpp>

namespace cleave {

JsonTree::JsonTree() : m_root(std::make_unique<nlohmann::ordered_json>()) {}
JsonTree::~JsonTree() = default;

nlohmann::ordered_json& JsonTree::put(nlohmann::ordered_json value) {
  if (m_open.empty()) return *m_root = std::move(value);
  nlohmann::ordered_json& parent = *m_open.back();
  // Only the innermost container grows, so the addresses in m_open stay valid.
  if (parent.is_array()) return parent.emplace_back(std::move(value));
  return parent[m_key] = std::move(value);
}

void JsonTree::beginObject() { m_open.push_back(&put(nlohmann::ordered_json::object())); }
void JsonTree::beginArray() { m_open.push_back(&put(nlohmann::ordered_json::array())); }
void JsonTree::value(std::string_view text) { put(text); }
void JsonTree::value(bool truth) { put(truth); }
void JsonTree::real(double number) { put(number); }
void JsonTree::null() { put(nullptr); }
void JsonTree::raw(std::string_view json) { put(nlohmann::ordered_json::parse(json)); }
void JsonTree::integer(std::int64_t number) { put(number); }
void JsonTree::count(std::uint64_t number) { put(number); }

}  // namespace cleave
