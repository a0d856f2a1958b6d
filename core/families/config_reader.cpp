#include "families/config_reader.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::families {
namespace {

struct NamedActivation {
  std::string_view key;
  Activation activation;
  std::string_view className;
};
// From transformers' ACT2FN; several names have one formula.
constexpr NamedActivation kActivations[] = {
    {"silu", Activation::Silu, "SiLU"},
    {"swish", Activation::Silu, "SiLU"},
    {"gelu", Activation::Gelu, "GELUActivation"},
    {"gelu_python", Activation::Gelu, "GELUActivation"},
    {"gelu_new", Activation::GeluTanh, "NewGELUActivation"},
    {"gelu_fast", Activation::GeluTanh, "FastGELUActivation"},
    {"gelu_pytorch_tanh", Activation::GeluTanh, "GELUTanh"},
    {"gelu_python_tanh", Activation::GeluTanh, "GELUTanh"},
    {"gelu_accurate", Activation::GeluTanh, "AccurateGELUActivation"},
    {"quick_gelu", Activation::QuickGelu, "QuickGELUActivation"},
    {"relu", Activation::Relu, "ReLU"},
    {"relu2", Activation::Relu2, "ReLUSquaredActivation"},
    {"tanh", Activation::Tanh, "Tanh"},
    {"sigmoid", Activation::Sigmoid, "Sigmoid"},
};

}  // namespace

Result<double> number(const JsonObject& object, std::string_view key, NumberRange range,
                      std::optional<double> fallback) {
  CLEAVE_TRY(const double value, object.number(key, fallback));
  if (value >= range.min && value <= range.max) return value;
  return object.wrong(key, fmt::format("a number from {} to {}", range.min, range.max));
}

bool ConfigReader::isExplicitNull(std::string_view key) const {
  const auto found = m_fields.json().find(key);
  return found != m_fields.json().end() && found->is_null();
}

/// The name of the key in the file; empty if the file does not have it.
template <class Key>
std::string_view ConfigReader::nameIn(const Key& key) const {
  for (const std::string_view name : {key.name, key.alias}) {
    if (!name.empty() && m_fields.json().contains(name)) return name;
  }
  return {};
}

Result<void> ConfigReader::read(IntegerKey& key, IntegerRange range) const {
  const std::string_view name = nameIn(key);
  if (name.empty()) return {};
  const bool isNone = key.isNullable && isExplicitNull(name);
  CLEAVE_TRY(key.value, m_fields.integer(name, range, isNone ? 0 : key.value));
  return {};
}

Result<void> ConfigReader::readOrNone(IntegerKey& key, IntegerRange range) const { return read(key, {0, range.max}); }

Result<void> ConfigReader::read(NumberKey& key, NumberRange range) const {
  const std::string_view name = nameIn(key);
  if (name.empty()) return {};
  const bool isNone = key.isNullable && isExplicitNull(name);
  if (isNone) {
    key.value = 0;
    return {};
  }
  CLEAVE_TRY(key.value, number(m_fields, name, range, key.value));
  return {};
}

Result<void> ConfigReader::readOrNone(NumberKey& key, NumberRange range) const { return read(key, {0, range.max}); }

Result<void> ConfigReader::read(FlagKey& key) const {
  if (key.name.empty()) return {};
  CLEAVE_TRY(key.value, m_fields.flag(key.name, key.value));
  return {};
}

Result<void> ConfigReader::read(ActivationKey& key) const {
  std::string text(key.text);
  if (!key.name.empty()) {
    CLEAVE_TRY(text, m_fields.text(key.name, text));
  }
  const auto* row = std::ranges::find(kActivations, text, &NamedActivation::key);
  if (row == std::end(kActivations)) return m_fields.wrong(key.name, oneOf(kActivations, &NamedActivation::key));
  key.text = row->key;
  key.value = row->activation;
  key.className = row->className;
  return {};
}

}  // namespace cleave::families
