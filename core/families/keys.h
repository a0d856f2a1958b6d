#pragma once
/// What a part of a model takes from config.json: a key, and what transformers' configuration class assumes where the
/// file is silent. After reading (model_config.h) `value` is that of the model.
#include <cstdint>
#include <string_view>

namespace cleave::families {

/// An empty name: `value` stands, whatever the file says. `alias`: another name that the family's configuration class
/// knows the key by. `isNullable`: an explicit null is 0; elsewhere it counts as silence.
struct IntegerKey {
  std::string_view name;
  std::int64_t value = 0;
  std::string_view alias = {};
  bool isNullable = false;
};
struct NumberKey {
  std::string_view name;
  double value = 0;
  std::string_view alias = {};
  bool isNullable = false;
};
struct FlagKey {
  std::string_view name;
  bool value = false;
};

inline constexpr FlagKey kNever{"", false};
inline constexpr FlagKey kAlways{"", true};

enum class Activation : std::uint8_t {
  Silu,
  Gelu,
  GeluTanh,
  QuickGelu,
  Relu,
  Relu2,  ///< relu squared
  Tanh,
  Sigmoid,
};

struct ActivationKey {
  std::string_view name;
  std::string_view text;  ///< as transformers' ACT2FN names it: several names mean one formula
  Activation value = Activation::Silu;
  std::string_view className = {};  ///< of the module, once read: "SiLUActivation"
};

}  // namespace cleave::families
