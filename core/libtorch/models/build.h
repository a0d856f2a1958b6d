#pragma once
/// Shared by the functions that compute a model's parts: its parameters, modules and small layers. Uses LibTorch. One
/// object serves one forward pass on one thread.
#include "families/model_config.h"
#include "libtorch/models/model_host.h"
#include "libtorch/models/model_inputs.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace cleave::models {

using namespace families;  // this room computes the parts of families
using at::Tensor;

struct RotaryPair {
  Tensor cos, sin;  ///< [1, sequence, rotated features]
};

/// Inputs shared by all layers. Layers with the same window share one mask.
struct LayerInputs {
  std::vector<RotaryPair> rotary;                       ///< by LayerConfig::rope
  std::map<std::int64_t, std::optional<Tensor>> masks;  ///< by window; additive; nullopt: attention without an extra
                                                        ///< mask
};

class Build {
 public:
  Build(const ModelConfig& config, const ModelInputs& inputs, const ModelOptions& options, ModelHost& host);

  const ModelConfig& config() const { return m_config; }
  const Family& family() const { return m_config.family; }
  const ModelInputs& inputs() const { return m_inputs; }
  const ModelOptions& options() const { return m_options; }
  ModelHost& host() { return m_host; }
  std::int64_t batch() const { return m_batch; }
  std::int64_t sequence() const { return m_sequence; }
  /// Number of key positions: those of the cache if it is read, else those of the sequence.
  std::int64_t keyPositions() const { return readsCache() ? m_options.cachePositions : m_sequence; }
  bool readsCache() const { return m_options.cacheUse == graph::CacheUse::Reads; }
  std::int64_t hidden() const { return family().hidden.value; }
  /// "model.embed_tokens"
  std::string inModel(std::string_view name) const { return join(family().model, name); }
  std::string className(std::string_view suffix) const {
    return std::string(family().classPrefix) + std::string(suffix);
  }
  static std::string join(std::string_view path, std::string_view name);

  /// While it lives, the code runs inside the module at `path` and its ancestors. An empty path changes nothing.
  class Inside {
   public:
    Inside(Build& build, const std::string& path, std::string_view className);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Build& m_build;
    std::size_t m_entered = 0;
  };

  Tensor parameter(const std::string& name, at::IntArrayRef shape) {
    return m_host.parameter(name, shape, m_options.dtype);
  }
  Tensor linear(const std::string& path, const Tensor& input, std::int64_t out, bool hasBias,
                WeightLayout layout = WeightLayout::OutIn);
  Tensor embedding(const std::string& path, std::int64_t rows, std::int64_t width, const Tensor& ids,
                   std::int64_t paddingId = -1);
  /// Applies the family's norm. Its weight has the shape `weightShape`, or the size of the last dimension.
  Tensor norm(const std::string& path, const Tensor& input, at::IntArrayRef weightShape = {});
  Tensor rmsNorm(const std::string& path, const Tensor& input, double eps);
  Tensor activation(const std::string& path, const Tensor& input);
  /// Applies the dropout of the module at `path`, or of the current module if `path` is empty. Returns the input if
  /// nothing is dropped.
  Tensor dropped(const std::string& path, const NumberKey& probability, const Tensor& input);
  /// The dropout probability of this run: 0 unless the run has dropout.
  double chance(const NumberKey& probability) const { return m_options.dropout ? probability.value : 0.0; }
  /// The keys and values that were kept, by layer.
  std::vector<std::pair<std::string, Tensor>>& present() { return m_present; }

 private:
  std::string_view classOf(const std::string& path) const;
  Tensor conv1d(const std::string& path, const Tensor& input, std::int64_t out, bool hasBias);

  const ModelConfig& m_config;
  const ModelInputs& m_inputs;
  const ModelOptions& m_options;
  ModelHost& m_host;
  std::int64_t m_batch, m_sequence;
  std::vector<std::string> m_paths;  ///< of the entered modules
  std::vector<std::pair<std::string, Tensor>> m_present;
};

struct KeysAndValues {
  Tensor keys, values;  ///< [batch, key/value heads, positions, features]
};
/// The keys and values that layer `index` attends to: those of this sequence, or a cache with this sequence written
/// into it. With a cache, `build.present()` keeps them.
KeysAndValues remembered(Build& build, std::size_t index, const Tensor& keys, const Tensor& values);

/// The embedding of learned positions, [batch or 1, sequence, hidden].
Tensor learnedPositions(Build& build, const LearnedPositions& positions);
std::vector<RotaryPair> rotaryPairs(Build& build);
/// The mask, additive, [batch or 1, heads or 1, sequence or 1, sequence]: a bias or 0 for visible positions, the lowest
/// number elsewhere. nullopt if plain (causal) attention suffices and `isNeeded` is false. A row without visible
/// positions (left padding) becomes uniform, as in transformers.
std::optional<Tensor> attentionMask(Build& build, std::int64_t window, bool isNeeded);
/// Rotates the first features of [..., features].
Tensor rotated(const Tensor& x, const RotaryPair& rotary, Pairing pairing);

/// [batch, sequence, hidden] → the same. `block`: path of the block; `index`: its number.
Tensor attention(Build& build, const std::string& block, const Tensor& input, std::size_t index,
                 const LayerInputs& shared);
Tensor latentAttention(Build& build, const LatentAttention& part, const std::string& block, const Tensor& input,
                       std::size_t index, const LayerInputs& shared);
/// Attention with the family's dropout. Query, key and value are [batch, heads, sequence, features]; the result is
/// [batch, sequence, heads · features]. A scale of 0 means 1 / sqrt(head size).
Tensor attended(Build& build, const Tensor& query, const Tensor& key, const Tensor& value,
                const std::optional<Tensor>& mask, double scale);

Tensor mlp(Build& build, const std::string& block, const Tensor& input);
/// An MLP of the family's kind with other names: the shared MLP of a mixture of experts.
Tensor gatedMlp(Build& build, const std::string& path, const Tensor& input, std::int64_t features);
Tensor experts(Build& build, const std::string& block, const Tensor& input);

ModelOutputs head(Build& build, Tensor hidden);
/// The name of the embedding's weight. Heads may be tied to it.
std::string embeddingWeight(const Build& build);

}  // namespace cleave::models
