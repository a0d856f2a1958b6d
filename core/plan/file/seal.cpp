#include "plan/file/seal.h"

#include "base/digest.h"
#include "plan/file/plan_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace cleave::plan {
namespace {

using nlohmann::json;

/// Below it a whole number is exact as a double, and another library may write it as an integer.
constexpr double kExact = 9007199254740992.0;  // 2^53

bool isMeasured(const std::string& key) {
  return std::ranges::find(kMeasuredFields, "plan." + key) != kMeasuredFields.end();
}

/// Digests what is added to it in whole words, so that it does not matter how it is cut.
class Sealer {
 public:
  void addMembers(const json& object, bool isPlan) {
    m_buffer += '{';
    for (const auto& [key, item] : object.items()) {  // in the order of their names
      if (isPlan && isMeasured(key)) continue;
      fmt::format_to(std::back_inserter(m_buffer), "k{}:{}", key.size(), key);
      add(item);
    }
    m_buffer += '}';
  }

  std::string text() {
    m_digest.addPart(std::as_bytes(std::span(m_buffer)));
    return fmt::format("{:016x}", m_digest.value());
  }

 private:
  void add(const json& value) {
    switch (value.type()) {
      case json::value_t::object: addMembers(value, false); break;
      case json::value_t::array:
        m_buffer += '[';
        for (const json& item : value) add(item);
        m_buffer += ']';
        break;
      case json::value_t::string: {
        const auto& text = value.get_ref<const std::string&>();
        fmt::format_to(std::back_inserter(m_buffer), "s{}:{}", text.size(), text);
        break;
      }
      case json::value_t::boolean: m_buffer += value.get<bool>() ? 't' : 'f'; break;
      case json::value_t::number_unsigned: addInteger(value.get<std::uint64_t>()); break;
      case json::value_t::number_integer: addInteger(value.get<std::int64_t>()); break;
      case json::value_t::number_float: addReal(value.get<double>()); break;
      default: m_buffer += 'n';
    }
    digestWholeWords();
  }
  void addInteger(std::integral auto value) { fmt::format_to(std::back_inserter(m_buffer), "i{};", value); }
  void addReal(double value) {
    if (std::abs(value) <= kExact && value == std::trunc(value)) return addInteger(static_cast<std::int64_t>(value));
    fmt::format_to(std::back_inserter(m_buffer), "d{:016x}", std::bit_cast<std::uint64_t>(value));
  }
  void digestWholeWords() {
    constexpr std::size_t kWord = 8, kBlock = 4096;
    if (m_buffer.size() < kBlock) return;
    const std::size_t whole = m_buffer.size() / kWord * kWord;
    m_digest.addPart(std::as_bytes(std::span(m_buffer).first(whole)));
    m_buffer.erase(0, whole);
  }

  Digest m_digest;
  std::string m_buffer;
};

}  // namespace

std::string sealOf(const json& plan) {
  Sealer sealer;
  sealer.addMembers(plan, true);
  return sealer.text();
}

std::string withSeal(std::string text) {
  const std::string seal = sealOf(json::parse(text));
  text.erase(text.rfind('}'));
  text.erase(text.find_last_not_of('\n') + 1);
  return text + fmt::format(",\n\"{}\":\"{}\"\n}}\n", kSealKey, seal);
}

}  // namespace cleave::plan
