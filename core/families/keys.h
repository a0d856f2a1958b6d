#pragma once
/// A key of config.json that a part of a model reads, with the default of transformers' configuration class. After
/// reading (model_config.h), `value` is the model's.
#include <cstdint>
#include <string_view>

namespace cleave::families {

/// Empty `name`: `value` is fixed and the file is not read. `alias`: another name of the key in the family's
/// configuration class. `isNullable`: an explicit null means 0; otherwise null counts as absent.
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
  std::string_view text;  ///< as in transformers' ACT2FN, where several names have one formula
  Activation value = Activation::Silu;
  std::string_view className = {};  ///< of the module, set after reading: "SiLUActivation"
};

}  // namespace cleave::families
