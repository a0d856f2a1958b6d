#include "plan/file/certificate_json.h"

#include <nlohmann/json.hpp>

#include <charconv>

namespace cleave::plan {
namespace {

using solve::CertifiedClaims;
using solve::CertifiedStates;

constexpr std::int64_t kMostCount = std::int64_t{1} << 31;

void writeNumber(JsonWriter& json, Wide number) {
  Femtoseconds(number).isShort() ? json.value(static_cast<std::int64_t>(number))
                                 : json.value(toText(Femtoseconds(number)));
}

std::optional<Wide> parseDigits(std::string_view text) {
  const bool isNegative = text.starts_with('-');
  if (isNegative) text.remove_prefix(1);
  if (text.empty() || text.size() > 37) return std::nullopt;  // 128 bits hold any 37 digits
  Wide number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + (digit - '0');
  }
  return isNegative ? -number : number;
}

Result<Wide> readNumber(const nlohmann::json& value, const std::string& name) {
  if (value.is_number_integer() && !value.is_number_unsigned()) return Wide(value.get<std::int64_t>());
  if (value.is_number_unsigned()) return Wide(value.get<std::uint64_t>());
  if (value.is_string()) {
    if (const auto number = parseDigits(value.get_ref<const std::string&>())) return *number;
  }
  return fail(ErrorCode::BadInput, "{} must be a whole number, but it is {}.", name, describe(value));
}

class Reader {
 public:
  Reader(const JsonObject& fields, const graph::Graph& graph) : m_fields(fields), m_graph(graph) {}

  Result<solve::Certificate> run() {
    CLEAVE_TRY(m_certificate.timeWeight, weight("time_weight"));
    CLEAVE_TRY(m_certificate.byteWeight, weight("byte_weight"));
    const IntegerRange nodes{0, static_cast<std::int64_t>(m_graph.nodes.size()) - 1};
    CLEAVE_TRY(const auto steps, m_fields.integers("steps", nodes, m_graph.nodes.size()));
    for (const std::int64_t node : steps) m_certificate.order.emplace_back(static_cast<std::uint32_t>(node));
    CLEAVE_TRY_VOID(readPlacements());
    CLEAVE_TRY_VOID(readStates());
    CLEAVE_TRY_VOID(readClaims());
    CLEAVE_TRY_VOID(readBoundaries());
    return std::move(m_certificate);
  }

 private:
  Result<Wide> weight(const char* key) const {
    const nlohmann::json* value = m_fields.find(key);
    if (!value) return m_fields.wrong(key, "a whole number");
    return readNumber(*value, m_fields.nameOf(key));
  }

  Result<void> readPlacements() {
    CLEAVE_TRY(const auto texts, m_fields.texts("placements"));
    for (const std::string& text : texts) {
      auto placement = rules::Placement::parse(text);
      if (!placement)
        return fail(ErrorCode::BadInput, "{} has {}, which is not a placement.", m_fields.nameOf("placements"),
                    quotedText(text));
      m_certificate.placements.push_back(*std::move(placement));
    }
    return {};
  }

  Result<void> readStates() {
    CLEAVE_TRY(const JsonArray list, m_fields.array("states"));
    for (std::size_t i = 0; i < list.size(); ++i) {
      CLEAVE_TRY(const JsonObject fields, list.object(i));
      CertifiedStates& states = m_certificate.states.emplace_back();
      CLEAVE_TRY(const std::int64_t count, fields.integer("count", {0, kMostCount}));
      CLEAVE_TRY(const std::int64_t width, fields.integer("width", {0, kMostCount}));
      states.count = static_cast<std::size_t>(count);
      states.width = static_cast<std::size_t>(width);
      CLEAVE_TRY(const auto tokens, fields.integers("tokens", {0, kMostCount}));
      for (const std::int64_t token : tokens) {
        states.tokens.push_back({static_cast<std::uint32_t>(token >> 2), static_cast<std::uint8_t>(token & 3)});
      }
    }
    return {};
  }

  Result<void> readClaims() {
    CLEAVE_TRY(const JsonArray lists, m_fields.array("claims"));
    for (std::size_t i = 0; i < lists.size(); ++i) {
      CLEAVE_TRY(const JsonArray list, lists.array(i));
      CertifiedClaims& claims = m_certificate.claims.emplace_back();
      for (std::size_t k = 0; k < list.size(); ++k) {
        auto& claim = claims.emplace_back();
        if (list[k].is_null()) continue;
        CLEAVE_TRY(claim, readNumber(list[k], list.nameOf(k)));
      }
    }
    return {};
  }

  Result<void> readBoundaries() {
    CLEAVE_TRY(const JsonArray list, m_fields.array("boundaries"));
    for (std::size_t i = 0; i < list.size(); ++i) {
      CLEAVE_TRY(const JsonArray one, list.array(i));
      if (one.size() != 3) return list.wrong(i, "[states, claims, base]");
      CLEAVE_TRY(const std::int64_t states, one.integer(0, {0, kMostCount}));
      CLEAVE_TRY(const std::int64_t claims, one.integer(1, {0, kMostCount}));
      CLEAVE_TRY(const Wide base, readNumber(one[2], one.nameOf(2)));
      m_certificate.boundaries.push_back(
          {static_cast<std::uint32_t>(states), static_cast<std::uint32_t>(claims), base});
    }
    return {};
  }

  const JsonObject& m_fields;
  const graph::Graph& m_graph;
  solve::Certificate m_certificate;
};

}  // namespace

void writeCertificate(JsonWriter& json, const solve::Certificate& certificate) {
  json.key("certificate").beginObject();
  writeNumber(json.key("time_weight"), certificate.timeWeight);
  writeNumber(json.key("byte_weight"), certificate.byteWeight);
  json.key("steps").beginArray();
  for (const graph::NodeId node : certificate.order) json.value(node.raw());
  json.endArray();
  json.key("placements").beginArray();
  for (const rules::Placement& placement : certificate.placements) json.value(placement.text());
  json.endArray();
  json.key("states").beginArray();
  for (const CertifiedStates& states : certificate.states) {
    json.beginObject();
    json.key("count").value(states.count);
    json.key("width").value(states.width);
    json.key("tokens").beginArray();
    for (const solve::CertifiedToken& token : states.tokens) json.value(token.placement << 2 | token.paid);
    json.endArray();
    json.endObject();
  }
  json.endArray();
  json.key("claims").beginArray();
  for (const CertifiedClaims& claims : certificate.claims) {
    json.beginArray();
    for (const auto& claim : claims) claim ? writeNumber(json, *claim) : json.null();
    json.endArray();
  }
  json.endArray();
  json.key("boundaries").beginArray();
  for (const auto& boundary : certificate.boundaries) {
    json.beginArray();
    json.value(boundary.states);
    json.value(boundary.claims);
    writeNumber(json, boundary.base);
    json.endArray();
  }
  json.endArray();
  json.endObject();
}

Result<std::shared_ptr<const solve::Certificate>> readCertificate(const JsonObject& root, const graph::Graph& graph) {
  if (!root.has("certificate")) return nullptr;
  CLEAVE_TRY(const JsonObject fields, root.object("certificate"));
  CLEAVE_TRY(auto certificate, Reader(fields, graph).run());
  return std::make_shared<const solve::Certificate>(std::move(certificate));
}

}  // namespace cleave::plan
