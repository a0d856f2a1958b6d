#include "libtorch/models/architectures.h"

#include <algorithm>

namespace cleave::models {
namespace {

constexpr ModuleNames kLlamaNames = {
    .model = "model",
    .embedding = "embed_tokens",
    .rotary = "rotary_emb",
    .layers = "layers",
    .finalNorm = "norm",
    .head = "lm_head",
    .inputNorm = "input_layernorm",
    .attention = "self_attn",
    .query = "q_proj",
    .key = "k_proj",
    .value = "v_proj",
    .output = "o_proj",
    .postAttentionNorm = "post_attention_layernorm",
    .mlp = "mlp",
    .gate = "gate_proj",
    .up = "up_proj",
    .down = "down_proj",
    .activation = "act_fn",
};

constexpr ModuleNames kOlmo2Names = [] {
  ModuleNames names = kLlamaNames;
  names.inputNorm = "";
  names.queryNorm = "q_norm";
  names.keyNorm = "k_norm";
  names.postMlpNorm = "post_feedforward_layernorm";
  return names;
}();

constexpr Architecture kArchitectures[] = {
    {
        .modelType = "llama",
        .className = "LlamaForCausalLM",
        .classPrefix = "Llama",
        .qkvBias = BiasRule::AttentionBiasKey,
        .outputBias = BiasRule::AttentionBiasKey,
        .mlpBias = BiasRule::MlpBiasKey,
        .names = &kLlamaNames,
    },
    {
        .modelType = "mistral",
        .className = "MistralForCausalLM",
        .classPrefix = "Mistral",
        .window = WindowRule::EveryLayer,
        .names = &kLlamaNames,
        .defaultMaxPositions = 131072,
        .defaultKeyValueHeads = 8,
        .defaultWindow = 4096,
    },
    {
        .modelType = "qwen2",
        .className = "Qwen2ForCausalLM",
        .classPrefix = "Qwen2",
        .qkvBias = BiasRule::Always,
        .window = WindowRule::AboveMaxWindowLayers,
        .names = &kLlamaNames,
        .defaultMaxPositions = 32768,
        .defaultKeyValueHeads = 32,
        .defaultWindow = 4096,
        .defaultMaxWindowLayers = 28,
    },
    {
        .modelType = "olmo2",
        .className = "Olmo2ForCausalLM",
        .classPrefix = "Olmo2",
        .normPlace = NormPlace::Behind,
        .queryKeyNorm = QueryKeyNorm::WholeProjection,
        .qkvBias = BiasRule::AttentionBiasKey,
        .outputBias = BiasRule::AttentionBiasKey,
        .names = &kOlmo2Names,
        .defaultNormEps = 1e-5,
    },
    {
        .modelType = "ministral",
        .className = "MinistralForCausalLM",
        .classPrefix = "Ministral",
        .window = WindowRule::EveryLayer,
        .names = &kLlamaNames,
        .defaultMaxPositions = 131072,
        .defaultKeyValueHeads = 8,
        .defaultWindow = 4096,
    },
};

const Architecture* find(std::string_view Architecture::*key, std::string_view wanted) {
  const auto* row = std::ranges::find(kArchitectures, wanted, key);
  return row == std::end(kArchitectures) ? nullptr : row;
}

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }
const Architecture* findByModelType(std::string_view modelType) { return find(&Architecture::modelType, modelType); }
const Architecture* findByClassName(std::string_view className) { return find(&Architecture::className, className); }

}  // namespace cleave::models
