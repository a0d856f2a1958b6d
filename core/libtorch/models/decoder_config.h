#pragma once
/// A decoder's `config.json` in typed form: every value present, checked against its range and against the others.
///
/// Reads both dialects (transformers 4: `rope_theta`, `rope_scaling`, `torch_dtype`; transformers 5: `rope_parameters`,
/// `dtype`, `layer_types`); null counts as absent, except where transformers gives it a meaning (`sliding_window`,
/// `num_key_value_heads`). No LibTorch in this header. Pure; safe from any thread.
#include "base/result.h"
#include "graph/types.h"
#include "libtorch/models/architectures.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace cleave::models {

enum class Activation : std::uint8_t { Silu, Gelu, GeluTanh, QuickGelu, Relu };

enum class RopeKind : std::uint8_t { Default, Linear, Dynamic, Llama3, Yarn };

/// Rotary position embedding with its scaling; formulas in rope.cpp. Fields that the kind does not use keep their
/// defaults.
struct RopeConfig {
  RopeKind kind = RopeKind::Default;
  double theta = 10000.0;
  double factor = 1.0;
  std::int64_t originalMaxPositions = 0;  ///< Llama3, Yarn: positions the model was first trained for
  double lowFrequencyFactor = 1.0;        ///< Llama3
  double highFrequencyFactor = 4.0;       ///< Llama3
  double betaFast = 32.0;                 ///< Yarn
  double betaSlow = 1.0;                  ///< Yarn
  double attentionFactor = 1.0;           ///< Yarn: cos and sin are multiplied by it
  bool truncate = true;                   ///< Yarn: whole correction dimensions
};

struct DecoderConfig {
  const Architecture* architecture = nullptr;  ///< a row of the table, never null
  graph::DType dtype = graph::DType::Float32;  ///< of the parameters
  std::int64_t vocabSize = 0;
  std::int64_t hiddenSize = 0;
  std::int64_t intermediateSize = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t keyValueHeads = 0;  ///< divides heads
  std::int64_t headDim = 0;        ///< even
  std::int64_t maxPositions = 0;
  double normEps = 0;
  Activation activation = Activation::Silu;
  std::string activationClass;  ///< module class as transformers names it: "SiLU"
  bool isTied = false;          ///< the head uses the embedding's weight
  bool hasQkvBias = false, hasOutputBias = false, hasMlpBias = false;
  std::vector<std::int64_t> windows;  ///< per layer: positions a token sees, itself included; 0: all before it
  RopeConfig rope;
};

/// `where` names the file in errors. BadInput with one sentence: an unknown architecture (names it and lists the known
/// ones), a missing or mistyped key, a value out of range, values that do not fit together.
Result<DecoderConfig> readDecoderConfig(const nlohmann::json& config, const std::string& where = "config.json");

}  // namespace cleave::models
