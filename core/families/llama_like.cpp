// Decoders with RMS norms, rotary embeddings and a gated MLP.
#include "families/rows.h"

namespace cleave::families {
namespace {

constexpr FlagKey kMlpBias{"mlp_bias", false};

constexpr HeadClass kLlamaHeads[] = {{"LlamaForCausalLM", CausalHead{}}};
constexpr HeadClass kMistralHeads[] = {{"MistralForCausalLM", CausalHead{}}};
constexpr HeadClass kQwen2Heads[] = {{"Qwen2ForCausalLM", CausalHead{}}};
constexpr HeadClass kOlmo2Heads[] = {{"Olmo2ForCausalLM", CausalHead{}}};
constexpr HeadClass kMinistralHeads[] = {{"MinistralForCausalLM", CausalHead{}}};
constexpr HeadClass kQwen3Heads[] = {{"Qwen3ForCausalLM", CausalHead{}}};
constexpr HeadClass kSmolLm3Heads[] = {{"SmolLM3ForCausalLM", CausalHead{}}};
constexpr HeadClass kGraniteHeads[] = {{"GraniteForCausalLM", CausalHead{.divisor = {"logits_scaling", 1.0}}}};
constexpr HeadClass kPhi3Heads[] = {{"Phi3ForCausalLM", CausalHead{}}};
constexpr NumberKey kPhi3Dropout{"resid_pdrop", 0.0};
constexpr HeadClass kCohereHeads[] = {{"CohereForCausalLM", CausalHead{.multiplier = {"logit_scale", 0.0625}}}};

}  // namespace

constinit const Family kLlama{
    .modelType = "llama",
    .classPrefix = "Llama",
    .heads = kLlamaHeads,
    .attention = SelfAttention{.qkvBias = kAttentionBias, .outputBias = kAttentionBias},
    .mlp = {.hasBias = kMlpBias},
};

constinit const Family kMistral{
    .modelType = "mistral",
    .classPrefix = "Mistral",
    .heads = kMistralHeads,
    .positions = {"max_position_embeddings", 131072},
    .attention = SelfAttention{.keyValueHeads = keyValueHeads(8),
                               .windows = {.rule = WindowRule::EveryLayer, .size = slidingWindow(4096)}},
    .mlp = {.size = {"intermediate_size", 14336}},
};

constinit const Family kQwen2{
    .modelType = "qwen2",
    .classPrefix = "Qwen2",
    .heads = kQwen2Heads,
    .vocab = {"vocab_size", 151936},
    .positions = {"max_position_embeddings", 32768},
    .attention =
        SelfAttention{
            .qkvBias = kAlways,
            .keyValueHeads = keyValueHeads(32),
            .windows = {.rule = WindowRule::AboveMaxWindowLayers, .isUsed = kUsesWindows, .size = slidingWindow(4096)}},
    .mlp = {.size = {"intermediate_size", 22016}},
};

constinit const Family kOlmo2{
    .modelType = "olmo2",
    .classPrefix = "Olmo2",
    .heads = kOlmo2Heads,
    .vocab = {"vocab_size", 50304},
    .padTokenId = 1,
    .norm = RmsNorm{.eps = {"rms_norm_eps", 1e-5}},
    .attention =
        SelfAttention{.qkvBias = kAttentionBias, .outputBias = kAttentionBias, .queryKeyNorm = ProjectionNorm{}},
    .block = OutputNorm{},
};

constinit const Family kMinistral{
    .modelType = "ministral",
    .classPrefix = "Ministral",
    .heads = kMinistralHeads,
    .positions = {"max_position_embeddings", 131072},
    .attention = SelfAttention{.keyValueHeads = keyValueHeads(8),
                               .windows = {.rule = WindowRule::EveryLayer, .size = slidingWindow(4096)}},
    .mlp = {.size = {"intermediate_size", 14336}},
};

constinit const Family kQwen3{
    .modelType = "qwen3",
    .classPrefix = "Qwen3",
    .heads = kQwen3Heads,
    .vocab = {"vocab_size", 151936},
    .positions = {"max_position_embeddings", 32768},
    .attention =
        SelfAttention{
            .qkvBias = kAttentionBias,
            .outputBias = kAttentionBias,
            .keyValueHeads = keyValueHeads(32),
            .headDim = headDim(128),
            .queryKeyNorm = HeadNorm{},
            .windows = {.rule = WindowRule::AboveMaxWindowLayers, .isUsed = kUsesWindows, .size = slidingWindow(4096)}},
    .mlp = {.size = {"intermediate_size", 22016}},
};

constinit const Family kSmolLm3{
    .modelType = "smollm3",
    .classPrefix = "SmolLM3",
    .heads = kSmolLm3Heads,
    .vocab = {"vocab_size", 128256},
    .hidden = {"hidden_size", 2048},
    .layerCount = {"num_hidden_layers", 36},
    .positions = {"max_position_embeddings", 32768},
    .isTied = kTied,
    .padTokenId = 128004,
    .position = Rope{.theta = {"rope_theta", 2000000.0}, .plainEvery = {"no_rope_layer_interval", 4}},
    .attention = SelfAttention{.qkvBias = kAttentionBias,
                               .outputBias = kAttentionBias,
                               .heads = {"num_attention_heads", 16},
                               .keyValueHeads = keyValueHeads(4),
                               .windows = {.rule = WindowRule::WithoutRotation, .isUsed = kUsesWindows}},
    .mlp = {.hasBias = kMlpBias},
};

constinit const Family kGranite{
    .modelType = "granite",
    .classPrefix = "Granite",
    .heads = kGraniteHeads,
    .embeddings = {.multiplier = {"embedding_multiplier", 1.0}},
    .attention = SelfAttention{.qkvBias = kAttentionBias, .outputBias = kAttentionBias, .scale = MultiplierScale{}},
    .mlp = {.hasBias = kMlpBias},
    .block = PreNorm{.residualMultiplier = {"residual_multiplier", 1.0}},
};

constinit const Family kPhi3{
    .modelType = "phi3",
    .classPrefix = "Phi3",
    .heads = kPhi3Heads,
    .vocab = {"vocab_size", 32064},
    .hidden = {"hidden_size", 3072},
    .positions = {"max_position_embeddings", 4096},
    .padTokenId = 32000,
    .norm = RmsNorm{.eps = {"rms_norm_eps", 1e-5}},
    .position = Rope{.fraction = {"partial_rotary_factor", 1.0}, .roundsUpToEven = true},
    .attention = SelfAttention{.qkv = FusedBlocks{"self_attn.qkv_proj"}, .windows = {.rule = WindowRule::EveryLayer}},
    .mlp = {.kind = FusedGatedMlp{}, .size = {"intermediate_size", 8192}, .activationName = "mlp.activation_fn"},
    .dropouts = {.attentionOutput = {"resid_attn_dropout", kPhi3Dropout},
                 .mlpOutput = {"resid_mlp_dropout", kPhi3Dropout}},
};

constinit const Family kCohere{
    .modelType = "cohere",
    .classPrefix = "Cohere",
    .heads = kCohereHeads,
    .normClass = "LayerNorm",
    .vocab = {"vocab_size", 256000},
    .hidden = {"hidden_size", 8192},
    .layerCount = {"num_hidden_layers", 40},
    .positions = {"max_position_embeddings", 8192},
    .isTied = kTied,
    .padTokenId = 0,
    .norm = CenteredNorm{},
    .position = Rope{.theta = {"rope_theta", 500000.0}, .pairing = Pairing::Neighbours},
    .attention = SelfAttention{.qkvBias = kAttentionBias,
                               .outputBias = kAttentionBias,
                               .heads = {"num_attention_heads", 64},
                               .queryKeyNorm = HeadNorm{.isUsed = {"use_qk_norm", false}, .perHead = true}},
    .mlp = {.size = {"intermediate_size", 22528}},
    .block = ParallelResidual{},
};

}  // namespace cleave::families
