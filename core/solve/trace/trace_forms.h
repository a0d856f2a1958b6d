#pragma once
/// Forms of values in the header of a trace file (base/schema_forms.h). Internal to this room.
#include "base/schema_forms.h"
#include "solve/problem/problem.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::solve {

struct PinsForm {
  std::string type() const { return "list of texts"; }
  void write(auto& out, const std::vector<Pin>& pins) const {
    out.beginArray();
    for (const Pin& pin : pins) out.value(pin.text);
    out.endArray();
  }
  Result<std::vector<Pin>> read(const JsonObject& object, std::string_view key) const;
};

/// The index of a node or a value, of `count`.
template <class Id>
struct IdForm {
  std::size_t count;
  std::string type() const { return "integer"; }
  void write(auto& out, Id id) const { out.value(id.raw()); }
  Result<Id> read(const JsonObject& object, std::string_view key) const {
    CLEAVE_TRY(const std::int64_t index, object.integer(key, below(count)));
    return Id(static_cast<std::size_t>(index));
  }
  static IntegerRange below(std::size_t bound) { return {0, static_cast<std::int64_t>(bound) - 1}; }
};
template <class Id>
struct IdsForm {
  std::size_t count;
  std::string type() const { return "list of integers"; }
  void write(auto& out, const std::vector<Id>& ids) const {
    out.beginArray();
    for (const Id id : ids) out.value(id.raw());
    out.endArray();
  }
  Result<std::vector<Id>> read(const JsonObject& object, std::string_view key) const {
    CLEAVE_TRY(const auto indices, object.integers(key, IdForm<Id>::below(count)));
    std::vector<Id> ids;
    for (const std::int64_t index : indices) ids.emplace_back(static_cast<std::size_t>(index));
    return ids;
  }
};

}  // namespace cleave::solve
