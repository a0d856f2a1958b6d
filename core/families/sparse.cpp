// Mixtures of experts.
#include "families/config_reader.h"
#include "families/rows.h"

namespace cleave::families {
namespace {

constexpr FlagKey kNotNormalised{"norm_topk_prob", false};
constexpr IntegerKey kSparseStep{"decoder_sparse_step", 1};

constexpr HeadClass kMixtralHeads[] = {{"MixtralForCausalLM", CausalHead{}}};
constexpr HeadClass kQwen2MoeHeads[] = {{"Qwen2MoeForCausalLM", CausalHead{}}};
constexpr HeadClass kQwen3MoeHeads[] = {{"Qwen3MoeForCausalLM", CausalHead{}}};
constexpr HeadClass kGptOssHeads[] = {{"GptOssForCausalLM", CausalHead{}}};
constexpr HeadClass kDeepseekV3Heads[] = {{"DeepseekV3ForCausalLM", CausalHead{}}};

constexpr ModuleClass kMixtralClasses[] = {{"block_sparse_moe", "SparseMoeBlock"},
                                           {"block_sparse_moe.gate", "TopKRouter"},
                                           {"block_sparse_moe.experts", "Experts"}};
constexpr ModuleClass kQwenClasses[] = {{"mlp.gate", "TopKRouter"}, {"mlp.experts", "Experts"}};
constexpr ModuleClass kGptOssClasses[] = {{"mlp.router", "TopKRouter"}, {"mlp.experts", "Experts"}};
constexpr ModuleClass kDeepseekClasses[] = {{"mlp.gate", "TopkRouter"}, {"mlp.experts", "Experts"}};

/// The names before transformers 5.
constexpr OtherName kMixtralNames[] = {{".mlp.", ".block_sparse_moe."}};

/// With this key the loss has a term that balances the experts.
constexpr RefusedKey kRouterLoss[] = {{"output_router_logits"}};

}  // namespace

constinit const Family kMixtral{
    .modelType = "mixtral",
    .classPrefix = "Mixtral",
    .heads = kMixtralHeads,
    .positions = {"max_position_embeddings", 131072},
    .norm = RmsNorm{.eps = {"rms_norm_eps", 1e-5}},
    .position = Rope{.theta = {"rope_theta", 1000000.0}},
    .attention = SelfAttention{.keyValueHeads = keyValueHeads(8), .windows = {.rule = WindowRule::EveryLayer}},
    .experts = {.rule = SparseRule::EveryLayer,
                .name = "block_sparse_moe",
                .router = "block_sparse_moe.gate",
                .gate = "w1",
                .up = "w3",
                .down = "w2",
                .count = {"num_local_experts", 8, "num_experts"},
                .size = {"intermediate_size", 14336}},
    .classes = kMixtralClasses,
    .otherNames = kMixtralNames,
    .refused = kRouterLoss,
};

constinit const Family kQwen2Moe{
    .modelType = "qwen2_moe",
    .classPrefix = "Qwen2Moe",
    .heads = kQwen2MoeHeads,
    .vocab = {"vocab_size", 151936},
    .hidden = {"hidden_size", 2048},
    .layerCount = {"num_hidden_layers", 24},
    .positions = {"max_position_embeddings", 32768},
    .attention = SelfAttention{.qkvBias = {"qkv_bias", true},
                               .heads = {"num_attention_heads", 16},
                               .keyValueHeads = keyValueHeads(16),
                               .windows = {.rule = WindowRule::EvenBelowMaxWindowLayers,
                                           .isUsed = kUsesWindows,
                                           .size = slidingWindow(4096)}},
    .mlp = {.size = {"intermediate_size", 5632}},
    .experts = {.rule = SparseRule::EveryStep,
                .step = kSparseStep,
                .count = {"num_experts", 60},
                .perToken = {"num_experts_per_tok", 4},
                .areSharesNormalised = kNotNormalised,
                .shared = "mlp.shared_expert",
                .sharedSize = {"shared_expert_intermediate_size", 5632},
                .sharedGate = "mlp.shared_expert_gate"},
    .classes = kQwenClasses,
    .refused = kRouterLoss,
};

constinit const Family kQwen3Moe{
    .modelType = "qwen3_moe",
    .classPrefix = "Qwen3Moe",
    .heads = kQwen3MoeHeads,
    .vocab = {"vocab_size", 151936},
    .hidden = {"hidden_size", 2048},
    .layerCount = {"num_hidden_layers", 24},
    .positions = {"max_position_embeddings", 32768},
    .attention =
        SelfAttention{.qkvBias = kAttentionBias,
                      .outputBias = kAttentionBias,
                      .keyValueHeads = keyValueHeads(4),
                      .queryKeyNorm = HeadNorm{},
                      .windows = {.rule = WindowRule::EveryLayer, .isUsed = kUsesWindows, .size = slidingWindow(4096)}},
    .mlp = {.size = {"intermediate_size", 6144}},
    .experts = {.rule = SparseRule::EveryStep,
                .step = kSparseStep,
                .count = {"num_experts", 128, "num_local_experts"},
                .perToken = {"num_experts_per_tok", 8},
                .size = {"moe_intermediate_size", 768},
                .areSharesNormalised = kNotNormalised},
    .classes = kQwenClasses,
    .refused = kRouterLoss,
};

constinit const Family kGptOss{
    .modelType = "gpt_oss",
    .classPrefix = "GptOss",
    .heads = kGptOssHeads,
    .vocab = {"vocab_size", 201088},
    .hidden = {"hidden_size", 2880},
    .layerCount = {"num_hidden_layers", 36},
    .positions = {"max_position_embeddings", 131072},
    .norm = RmsNorm{.eps = {"rms_norm_eps", 1e-5}},
    .position = Rope{.theta = {"rope_theta", 150000.0}, .isYarnByDefault = true},
    .attention =
        SelfAttention{.qkvBias = {"attention_bias", true},
                      .outputBias = {"attention_bias", true},
                      .heads = {"num_attention_heads", 64},
                      .keyValueHeads = keyValueHeads(8),
                      .headDim = headDim(64),
                      .sinks = "self_attn.sinks",
                      .windows = {.rule = WindowRule::AllButEveryNth, .size = slidingWindow(128), .pattern = {"", 2}}},
    .experts = {.rule = SparseRule::EveryLayer,
                .className = "MLP",
                .router = "mlp.router",
                .routerBias = kAlways,
                .form = ExpertForm::ClampedSwiglu,
                .routing = Routing::TopThenSoftmax,
                .count = {"num_local_experts", 128, "num_experts"},
                .perToken = {"num_experts_per_tok", 4, "experts_per_token"},
                .size = {"intermediate_size", 2880},
                .alpha = {"swiglu_alpha", 1.702},
                .limit = {"swiglu_limit", 7.0}},
    .classes = kGptOssClasses,
    .refused = kRouterLoss,
};

constinit const Family kDeepseekV3{
    .modelType = "deepseek_v3",
    .classPrefix = "DeepseekV3",
    .heads = kDeepseekV3Heads,
    .vocab = {"vocab_size", 129280},
    .hidden = {"hidden_size", 7168},
    .layerCount = {"num_hidden_layers", 61},
    .positions = {"max_position_embeddings", 4096},
    .attention = LatentAttention{},
    .mlp = {.size = {"intermediate_size", 18432}},
    .experts = {.rule = SparseRule::FromLayer,
                .step = {"first_k_dense_replace", 3},
                .className = "MoE",
                .correctionBias = "mlp.gate.e_score_correction_bias",
                .routing = Routing::GroupedSigmoid,
                .count = {"n_routed_experts", 256, "num_local_experts"},
                .perToken = {"num_experts_per_tok", 8},
                .size = {"moe_intermediate_size", 2048},
                .areSharesNormalised = {"norm_topk_prob", true},
                .sharesFactor = {"routed_scaling_factor", 2.5},
                .groups = {"n_group", 8},
                .groupsKept = {"topk_group", 4},
                .shared = "mlp.shared_experts",
                .sharedCount = {"n_shared_experts", 1}},
    .classes = kDeepseekClasses,
    .refused = kRouterLoss,
};

}  // namespace cleave::families
