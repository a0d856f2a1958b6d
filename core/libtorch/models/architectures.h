#pragma once
/// The decoder architectures Cleave builds itself, as data: one row each. Adding an architecture is a row here and a
/// fixture test; the builder (decoder.h) and the config reader (decoder_config.h) never ask for a model by name.
///
/// Facts are those of transformers' configuration and modelling files of the same name.
#include <cstdint>
#include <span>
#include <string_view>

namespace cleave::models {

/// Whether a group of projections carries a bias.
enum class BiasRule : std::uint8_t { Never, Always, AttentionBiasKey, MlpBiasKey };

/// Which layers attend through a sliding window, unless the config's `layer_types` says it.
enum class WindowRule : std::uint8_t {
  Never,
  EveryLayer,            ///< `sliding_window` holds for all layers
  AboveMaxWindowLayers,  ///< from layer `max_window_layers` on, and only with `use_sliding_window`
};

enum class NormKind : std::uint8_t { Rms };

/// Where a block's norms stand: before attention and MLP, or behind them, before the residual is added.
enum class NormPlace : std::uint8_t { Before, Behind };

/// Norms between the projections of query and key and their heads.
enum class QueryKeyNorm : std::uint8_t {
  None,
  WholeProjection,  ///< one norm over all features of all heads
};

/// Names of modules: the last part of their path, as in the checkpoint's tensor names; empty where there is none.
struct ModuleNames {
  std::string_view model, embedding, rotary, layers, finalNorm, head;
  std::string_view inputNorm, attention, query, key, value, output;
  std::string_view postAttentionNorm, mlp, gate, up, down, activation;
  std::string_view queryNorm, keyNorm, postMlpNorm;
};

struct Architecture {
  std::string_view modelType;    ///< config.json's `model_type`
  std::string_view className;    ///< in config.json's `architectures`
  std::string_view classPrefix;  ///< "Llama": names LlamaModel, LlamaDecoderLayer, LlamaAttention, LlamaMLP, ...
  NormKind norm = NormKind::Rms;
  NormPlace normPlace = NormPlace::Before;
  QueryKeyNorm queryKeyNorm = QueryKeyNorm::None;
  BiasRule qkvBias = BiasRule::Never;
  BiasRule outputBias = BiasRule::Never;
  BiasRule mlpBias = BiasRule::Never;
  WindowRule window = WindowRule::Never;
  const ModuleNames* names = nullptr;
  // What transformers assumes where the config is silent.
  bool isTiedByDefault = false;
  std::string_view defaultActivation = "silu";
  double defaultNormEps = 1e-6;
  double defaultRopeTheta = 10000.0;
  std::int64_t defaultMaxPositions = 2048;
  std::int64_t defaultKeyValueHeads = 0;  ///< 0: as many as query heads
  std::int64_t defaultWindow = 0;         ///< 0: none
  std::int64_t defaultMaxWindowLayers = 0;
};

std::span<const Architecture> architectures();

/// Null when no row has it.
const Architecture* findByModelType(std::string_view modelType);
const Architecture* findByClassName(std::string_view className);

}  // namespace cleave::models
