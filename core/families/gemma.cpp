// Google's Gemma: norms of 1 + weight, scaled embeddings, soft caps.
#include "families/config_reader.h"
#include "families/rows.h"

namespace cleave::families {
namespace {

constexpr NumberKey kNoFinalCap{"final_logit_softcapping", 0, {}, /*isNullable=*/true};
constexpr NumberKey kFinalCapOf30{"final_logit_softcapping", 30.0, {}, /*isNullable=*/true};
constexpr NumberKey kScoreCapOf50{"attn_logit_softcapping", 50.0, {}, /*isNullable=*/true};

constexpr HeadClass kGemmaHeads[] = {{"GemmaForCausalLM", CausalHead{}}};
constexpr HeadClass kGemma2Heads[] = {{"Gemma2ForCausalLM", CausalHead{.softCap = kFinalCapOf30}}};
constexpr HeadClass kGemma3Heads[] = {{"Gemma3ForCausalLM", CausalHead{.softCap = kNoFinalCap}}};
constexpr RefusedKey kGemmaRefused[] = {{"use_bidirectional_attention"}};
constexpr ModuleClass kScaled[] = {{"embed_tokens", "TextScaledWordEmbedding"}};

constexpr RmsNorm kGemmaNorm{.addsOne = true};

/// The first releases have "gelu" but mean its tanh approximation, as transformers does.
Result<void> chooseGemma(Family& family, ConfigReader& config) {
  ActivationKey& activation = family.mlp.activation;
  CLEAVE_TRY(const std::string text, config.fields().text(activation.name, std::string(activation.text)));
  if (text == "gelu") activation.name = {};
  return {};
}

}  // namespace

constinit const Family kGemma{
    .modelType = "gemma",
    .classPrefix = "Gemma",
    .heads = kGemmaHeads,
    .vocab = {"vocab_size", 256000},
    .hidden = {"hidden_size", 3072},
    .layerCount = {"num_hidden_layers", 28},
    .positions = {"max_position_embeddings", 8192},
    .isTied = kTied,
    .padTokenId = 0,
    .norm = kGemmaNorm,
    .embeddings = {.isScaledByRoot = true},
    .attention = SelfAttention{.qkvBias = kAttentionBias,
                               .outputBias = kAttentionBias,
                               .heads = {"num_attention_heads", 16},
                               .keyValueHeads = keyValueHeads(16),
                               .headDim = headDim(256)},
    .mlp = {.size = {"intermediate_size", 24576}, .activation = {"hidden_act", "gelu_pytorch_tanh"}},
    .refused = kGemmaRefused,
    .choose = chooseGemma,
};

constinit const Family kGemma2{
    .modelType = "gemma2",
    .classPrefix = "Gemma2",
    .heads = kGemma2Heads,
    .vocab = {"vocab_size", 256000},
    .hidden = {"hidden_size", 2304},
    .layerCount = {"num_hidden_layers", 26},
    .positions = {"max_position_embeddings", 8192},
    .isTied = kTied,
    .padTokenId = 0,
    .norm = kGemmaNorm,
    .embeddings = {.isScaledByRoot = true},
    .attention =
        SelfAttention{.qkvBias = kAttentionBias,
                      .outputBias = kAttentionBias,
                      .heads = {"num_attention_heads", 8},
                      .keyValueHeads = keyValueHeads(4),
                      .headDim = headDim(256),
                      .scale = InverseRootScale{},
                      .softCap = kScoreCapOf50,
                      .windows = {.rule = WindowRule::AllButEveryNth, .size = slidingWindow(4096), .pattern = {"", 2}}},
    .mlp = {.size = {"intermediate_size", 9216}, .activation = {"hidden_activation", "gelu_pytorch_tanh"}},
    .block = Sandwich{},
    .classes = kScaled,
    .refused = kGemmaRefused,
};

constinit const Family kGemma3{
    .modelType = "gemma3_text",
    .classPrefix = "Gemma3",
    .heads = kGemma3Heads,
    .isBidirectional = {"use_bidirectional_attention", false},
    .vocab = {"vocab_size", 262208},
    .hidden = {"hidden_size", 2304},
    .layerCount = {"num_hidden_layers", 26},
    .positions = {"max_position_embeddings", 131072},
    .isTied = kTied,
    .padTokenId = 0,
    .norm = kGemmaNorm,
    .embeddings = {.isScaledByRoot = true},
    .position = Rope{.theta = {"rope_theta", 1000000.0}, .localTheta = {"rope_local_base_freq", 10000.0}},
    .attention = SelfAttention{.qkvBias = kAttentionBias,
                               .outputBias = kAttentionBias,
                               .heads = {"num_attention_heads", 8},
                               .keyValueHeads = keyValueHeads(4),
                               .headDim = headDim(256),
                               .queryKeyNorm = HeadNorm{},
                               .scale = InverseRootScale{},
                               .windows = {.rule = WindowRule::AllButEveryNth,
                                           .size = slidingWindow(4096),
                                           .pattern = {"sliding_window_pattern", 6, "_sliding_window_pattern"}}},
    .mlp = {.size = {"intermediate_size", 9216}, .activation = {"hidden_activation", "gelu_pytorch_tanh"}},
    .block = Sandwich{},
    .classes = kScaled,
};

}  // namespace cleave::families
