#pragma once
/// What the functions that compute a model's parts share: its parameters, its modules and its small layers. LibTorch
/// inside; one forward pass, one thread.
#include "libtorch/models/model.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace cleave::models {

using namespace families;  // NOLINT(google-build-using-namespace): the parts that this room computes
using at::Tensor;

struct RotaryPair {
  Tensor cos, sin;  ///< [1, sequence, rotated features]
};

/// What all layers share; masks are cheap to share: layers with the same window use one.
struct LayerInputs {
  std::vector<RotaryPair> rotary;                       ///< by LayerConfig::rope
  std::map<std::int64_t, std::optional<Tensor>> masks;  ///< by window; additive, nullopt: plain attention
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
  /// Positions that a token may look at: those of the cache where one is read, else the sequence's.
  std::int64_t keyPositions() const { return readsCache() ? m_options.cachePositions : m_sequence; }
  bool readsCache() const { return m_options.cacheUse == graph::CacheUse::Reads; }
  std::int64_t hidden() const { return family().hidden.value; }
  /// "model.embed_tokens"
  std::string inModel(std::string_view name) const { return join(family().model, name); }
  std::string className(std::string_view suffix) const {
    return std::string(family().classPrefix) + std::string(suffix);
  }
  static std::string join(std::string_view path, std::string_view name);

  /// Inside the module at `path`, and in those that contain it, while it lives. An empty path: stays where it is.
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
  /// With the family's norm; its weight has the shape of `weightShape`, or of the last dimension.
  Tensor norm(const std::string& path, const Tensor& input, at::IntArrayRef weightShape = {});
  Tensor rmsNorm(const std::string& path, const Tensor& input, double eps);
  Tensor activation(const std::string& path, const Tensor& input);
  /// With elements dropped by the module at `path`, or by the code of the module that this is called in; as it is where
  /// nothing is dropped.
  Tensor dropped(const std::string& path, const NumberKey& probability, const Tensor& input);
  /// What a run drops with this probability: 0 without dropout.
  double chance(const NumberKey& probability) const { return m_options.dropout ? probability.value : 0.0; }
  /// What was kept of all layers, in their order.
  std::vector<std::pair<std::string, Tensor>>& present() { return m_present; }

 private:
  std::string_view classOf(const std::string& path) const;
  Tensor conv1d(const std::string& path, const Tensor& input, std::int64_t out, bool hasBias);

  const ModelConfig& m_config;
  const ModelInputs& m_inputs;
  const ModelOptions& m_options;
  ModelHost& m_host;
  std::int64_t m_batch, m_sequence;
  std::vector<std::string> m_paths;  ///< of the modules that are entered
  std::vector<std::pair<std::string, Tensor>> m_present;
};

// ---- cache.cpp

struct KeysAndValues {
  Tensor keys, values;  ///< [batch, key/value heads, positions, features]
};
/// What layer `index` attends to, from the keys and values of this sequence: these, or a cache that they are written
/// into. Where there is a cache they are kept in `build.present()`.
KeysAndValues remembered(Build& build, std::size_t index, const Tensor& keys, const Tensor& values);

// ---- positions.cpp

/// The embedding of learned positions, [batch or 1, sequence, hidden].
Tensor learnedPositions(Build& build, const LearnedPositions& positions);
std::vector<RotaryPair> rotaryPairs(Build& build);
/// Additive, [batch or 1, heads or 1, sequence or 1, sequence]: a bias or 0 where a token may look, the lowest number
/// elsewhere. Nullopt where plain (causal) attention says it all and `isNeeded` is false. A row that may look nowhere
/// (left padding) becomes uniform, as in transformers.
std::optional<Tensor> attentionMask(Build& build, std::int64_t window, bool isNeeded);
/// [..., features]: its first features turned.
Tensor rotated(const Tensor& x, const RotaryPair& rotary, Pairing pairing);

// ---- attention.cpp, latent_attention.cpp

/// [batch, sequence, hidden] → the same. `block`: path of the block; `index`: its number.
Tensor attention(Build& build, const std::string& block, const Tensor& input, std::size_t index,
                 const LayerInputs& shared);
Tensor latentAttention(Build& build, const LatentAttention& part, const std::string& block, const Tensor& input,
                       std::size_t index, const LayerInputs& shared);
/// Query, key and value [batch, heads, sequence, features]; the result [batch, sequence, heads · features], with the
/// family's dropout of attention. A scale of 0: the root of the head size's inverse.
Tensor attended(Build& build, const Tensor& query, const Tensor& key, const Tensor& value,
                const std::optional<Tensor>& mask, double scale);

// ---- mlp.cpp, experts.cpp

Tensor mlp(Build& build, const std::string& block, const Tensor& input);
/// An MLP of the family's kind at other names: that of experts which all tokens take.
Tensor gatedMlp(Build& build, const std::string& path, const Tensor& input, std::int64_t features);
Tensor experts(Build& build, const std::string& block, const Tensor& input);

// ---- heads.cpp

ModelOutputs head(Build& build, Tensor hidden);
/// The name of the embedding's weight, with which heads may be tied.
std::string embeddingWeight(const Build& build);

}  // namespace cleave::models
