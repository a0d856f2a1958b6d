// Other decoders: layer norms, plain MLPs, fused projections, and learned positions or linear biases.
#include "families/config_reader.h"
#include "families/rows.h"

namespace cleave::families {
namespace {

constexpr LayerNorm kClassicNorm{.eps = {"layer_norm_epsilon", 1e-5}};
constexpr RefusedKey kCrossAttention[] = {{"add_cross_attention"}};
/// Computes in the slices of pretraining's ranks, without the biases of the sums.
constexpr RefusedKey kByRanks[] = {{"slow_but_exact"}};

// ---- GPT-2

constexpr HeadClass kGpt2Heads[] = {{"GPT2LMHeadModel", CausalHead{}}};
constexpr NumberKey kGpt2Dropout{"resid_pdrop", 0.1};

// ---- OPT

constexpr HeadClass kOptHeads[] = {{"OPTForCausalLM", CausalHead{}}};
constexpr FlagKey kOptBias{"enable_bias", true};

constexpr NumberKey kOptDropout{"dropout", 0.1};

constexpr std::string_view kOptKeys[] = {"do_layer_norm_before", "_remove_final_layer_norm"};

/// OPT-350m has its norms after the residual and no final norm.
Result<void> chooseOpt(Family& family, ConfigReader& config) {
  CLEAVE_TRY(const bool isBefore, config.fields().flag("do_layer_norm_before", true));
  CLEAVE_TRY(const bool isFinalRemoved, config.fields().flag("_remove_final_layer_norm", false));
  if (!isBefore) family.block = PostNorm{"self_attn_layer_norm", "final_layer_norm"};
  if (!isBefore || isFinalRemoved) family.finalNorm = {};
  return {};
}

// ---- GPT-NeoX

constexpr HeadClass kGptNeoxHeads[] = {{"GPTNeoXForCausalLM", CausalHead{.name = "embed_out"}}};
constexpr FlagKey kGptNeoxBias{"attention_bias", true};
constexpr NumberKey kHiddenDropout{"hidden_dropout", 0.0};  // also for Falcon and BLOOM

constexpr OtherName kGptNeoxNames[] = {{"lm_head.", "embed_out."}};

constexpr std::string_view kGptNeoxKeys[] = {"use_parallel_residual"};

Result<void> chooseGptNeox(Family& family, ConfigReader& config) {
  CLEAVE_TRY(const bool isParallel, config.fields().flag("use_parallel_residual", true));
  if (!isParallel) family.block = PreNorm{};
  return {};
}

// ---- Falcon

constexpr HeadClass kFalconHeads[] = {{"FalconForCausalLM", CausalHead{}}, {"RWForCausalLM", CausalHead{}}};
constexpr FlagKey kFalconBias{"bias", false};

constexpr std::string_view kFalconKeys[] = {"alibi",         "new_decoder_architecture", "multi_query",
                                            "parallel_attn", "num_ln_in_parallel_attn",  "num_kv_heads"};

/// Three variants: one key/value head (7B), groups of heads (40B, 180B), and all heads (RW), which uses linear biases.
Result<void> chooseFalcon(Family& family, ConfigReader& config) {
  const JsonObject& fields = config.fields();
  CLEAVE_TRY(const bool isAlibi, fields.flag("alibi", false));
  CLEAVE_TRY(const bool isNew, fields.flag("new_decoder_architecture", false));
  CLEAVE_TRY(const bool isMultiQuery, fields.flag("multi_query", true));
  CLEAVE_TRY(const bool isParallel, fields.flag("parallel_attn", true));
  CLEAVE_TRY(const std::int64_t norms, fields.integer("num_ln_in_parallel_attn", {1, 2}, isNew ? 2 : 1));
  if (isAlibi) family.position = Alibi{.isRounded = true};
  Dropouts& dropouts = family.dropouts;
  if (isParallel) {
    dropouts.sum = dropouts.mlpOutput;
    dropouts.mlpOutput = dropouts.attentionOutput = {};
  }
  if (!isAlibi) dropouts.attention = {};  // transformers applies no attention dropout in this case
  SelfAttention& attention = std::get<SelfAttention>(family.attention);
  if (isNew) {
    attention.qkv = FusedPerHead{"self_attention.query_key_value"};
  } else if (isMultiQuery) {
    attention.keyValueHeads = {"", 1};
  } else {
    attention.qkv = FusedPerHead{"self_attention.query_key_value"};
    attention.keyValueHeads = {"", 0};
  }
  if (isNew && !isParallel) return fields.wrong("parallel_attn", "true if new_decoder_architecture is true");
  if (!isParallel) {
    family.block = PreNorm{};
  } else if (isNew && norms == 2) {
    family.block = ParallelResidual{"ln_attn", "ln_mlp"};
  }
  return {};
}

// ---- BLOOM

constexpr HeadClass kBloomHeads[] = {{"BloomForCausalLM", CausalHead{}}};
constexpr ModuleClass kBloomClasses[] = {{"mlp.gelu_impl", "Gelu"}};

constexpr HeadClass kPhiHeads[] = {{"PhiForCausalLM", CausalHead{.hasBias = kAlways}}};
constexpr NumberKey kPhiDropout{"resid_pdrop", 0.0};
constexpr HeadClass kStarcoder2Heads[] = {{"Starcoder2ForCausalLM", CausalHead{}}};
constexpr FlagKey kStarcoder2Bias{"use_bias", true};
constexpr NumberKey kStarcoder2Dropout{"residual_dropout", 0.0};

}  // namespace

constinit const Family kGpt2{
    .modelType = "gpt2",
    .classPrefix = "GPT2",
    .heads = kGpt2Heads,
    .model = "transformer",
    .layers = "h",
    .finalNorm = "ln_f",
    .layerClass = "Block",
    .vocab = {"vocab_size", 50257},
    .hidden = {"n_embd", 768, "hidden_size"},
    .layerCount = {"n_layer", 12, "num_hidden_layers"},
    .positions = {"n_positions", 1024, "max_position_embeddings"},
    .isTied = kTied,
    .norm = kClassicNorm,
    .embeddings = {.tokens = "wte", .hasPadding = false},
    .position = LearnedPositions{"wpe"},
    .attention = SelfAttention{.name = "attn",
                               .output = "attn.c_proj",
                               .qkv = FusedBlocks{"attn.c_attn"},
                               .layout = WeightLayout::InOut,
                               .qkvBias = kAlways,
                               .outputBias = kAlways,
                               .heads = {"n_head", 12, "num_attention_heads"},
                               .keyValueHeads = {"", 0},
                               .headDim = {"", 0},
                               .scale = HeadSizeScale{.isUsed = {"scale_attn_weights", true},
                                                      .isByLayer = {"scale_attn_by_inverse_layer_idx", false}}},
    .mlp = {.kind = PlainMlp{.up = "mlp.c_fc", .down = "mlp.c_proj"},
            .layout = WeightLayout::InOut,
            .size = {"n_inner", 0, {}, /*isNullable=*/true},
            .hasBias = kAlways,
            .activation = {"activation_function", "gelu_new"},
            .activationName = "mlp.act"},
    .block = PreNorm{"ln_1", "ln_2"},
    .dropouts = {.embeddings = {"drop", {"embd_pdrop", 0.1}},
                 .attention = {"attn_pdrop", 0.1},
                 .attentionOutput = {"attn.resid_dropout", kGpt2Dropout},
                 .mlpOutput = {"mlp.dropout", kGpt2Dropout}},
    .refused = kCrossAttention,
};

constinit const Family kOpt{
    .modelType = "opt",
    .classPrefix = "OPT",
    .heads = kOptHeads,
    .model = "model.decoder",
    .finalNorm = "final_layer_norm",
    .vocab = {"vocab_size", 50272},
    .hidden = {"hidden_size", 768},
    .layerCount = {"num_hidden_layers", 12},
    .isTied = kTied,
    .padTokenId = 1,
    .norm = LayerNorm{.eps = {"", 1e-5}, .isAffine = {"layer_norm_elementwise_affine", true}},
    .embeddings = {.width = {"word_embed_proj_dim", 0}, .projectIn = "project_in", .projectOut = "project_out"},
    .position = LearnedPositions{"embed_positions", 2, PositionFrom::Mask},
    .attention = SelfAttention{.output = "self_attn.out_proj",
                               .qkvBias = kOptBias,
                               .outputBias = kOptBias,
                               .heads = {"num_attention_heads", 12},
                               .keyValueHeads = {"", 0},
                               .headDim = {"", 0},
                               .scale = QueryScale{}},
    .mlp = {.kind = PlainMlp{.name = "", .up = "fc1", .down = "fc2"},
            .size = {"ffn_dim", 3072},
            .hasBias = kOptBias,
            .activation = {"activation_function", "relu"},
            .activationName = "activation_fn"},
    .block = PreNorm{"self_attn_layer_norm", "final_layer_norm"},
    .dropouts = {.attentionOutput = {"", kOptDropout}, .mlpOutput = {"", kOptDropout}, .layer = {"layerdrop", 0.0}},
    .choose = chooseOpt,
    .choosesBy = kOptKeys,
};

constinit const Family kGptNeox{
    .modelType = "gpt_neox",
    .classPrefix = "GPTNeoX",
    .heads = kGptNeoxHeads,
    .model = "gpt_neox",
    .finalNorm = "final_layer_norm",
    .layerClass = "Layer",
    .vocab = {"vocab_size", 50432},
    .hidden = {"hidden_size", 6144},
    .layerCount = {"num_hidden_layers", 44},
    .norm = LayerNorm{},
    .embeddings = {.tokens = "embed_in", .hasPadding = false},
    .position = Rope{.theta = {"rope_theta", 10000.0, "rotary_emb_base"},
                     .fraction = {"partial_rotary_factor", 0.25, "rotary_pct"},
                     .roundsUpToEven = true},
    .attention = SelfAttention{.name = "attention",
                               .output = "attention.dense",
                               .qkv = FusedPerHead{"attention.query_key_value"},
                               .qkvBias = kGptNeoxBias,
                               .outputBias = kGptNeoxBias,
                               .heads = {"num_attention_heads", 64},
                               .keyValueHeads = {"", 0},
                               .headDim = {"", 0}},
    .mlp = {.kind = PlainMlp{.up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h"},
            .size = {"intermediate_size", 24576},
            .hasBias = kAlways,
            .activation = {"hidden_act", "gelu"},
            .activationName = "mlp.act"},
    .block = ParallelResidual{"input_layernorm", "post_attention_layernorm"},
    .dropouts = {.embeddings = {"emb_dropout", kHiddenDropout},
                 .attentionOutput = {"post_attention_dropout", kHiddenDropout},
                 .mlpOutput = {"post_mlp_dropout", kHiddenDropout}},
    .otherNames = kGptNeoxNames,
    .choose = chooseGptNeox,
    .choosesBy = kGptNeoxKeys,
};

constinit const Family kFalcon{
    .modelType = "falcon",
    .classPrefix = "Falcon",
    .heads = kFalconHeads,
    .model = "transformer",
    .layers = "h",
    .finalNorm = "ln_f",
    .vocab = {"vocab_size", 65024},
    .hidden = {"hidden_size", 4544, "n_embed"},
    .isTied = kTied,
    .norm = kClassicNorm,
    .embeddings = {.tokens = "word_embeddings", .hasPadding = false},
    .attention = SelfAttention{.name = "self_attention",
                               .output = "self_attention.dense",
                               .qkv = FusedBlocks{"self_attention.query_key_value"},
                               .qkvBias = kFalconBias,
                               .outputBias = kFalconBias,
                               .heads = {"num_attention_heads", 71, "n_head"},
                               .keyValueHeads = {"num_kv_heads", 0},
                               .headDim = {"", 0}},
    .mlp = {.kind = PlainMlp{.up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h"},
            .size = {"ffn_hidden_size", 0},
            .hasBias = kFalconBias,
            .activation = {"activation", "gelu"},
            .activationName = "mlp.act"},
    .block = ParallelResidual{},
    .dropouts = {.attentionOutput = {"", {"attention_dropout", 0.0}}, .mlpOutput = {"", kHiddenDropout}},
    .choose = chooseFalcon,
    .choosesBy = kFalconKeys,
};

constinit const Family kBloom{
    .modelType = "bloom",
    .classPrefix = "Bloom",
    .heads = kBloomHeads,
    .model = "transformer",
    .layers = "h",
    .finalNorm = "ln_f",
    .layerClass = "Block",
    .vocab = {"vocab_size", 250880},
    .hidden = {"hidden_size", 64, "n_embed"},
    .layerCount = {"n_layer", 2, "num_hidden_layers"},
    .isTied = kTied,
    .norm = kClassicNorm,
    .embeddings = {.tokens = "word_embeddings", .hasPadding = false, .norm = "word_embeddings_layernorm"},
    .position = Alibi{},
    .attention = SelfAttention{.name = "self_attention",
                               .output = "self_attention.dense",
                               .qkv = FusedPerHead{"self_attention.query_key_value"},
                               .qkvBias = kAlways,
                               .outputBias = kAlways,
                               .heads = {"n_head", 8, "num_attention_heads"},
                               .keyValueHeads = {"", 0},
                               .headDim = {"", 0}},
    .mlp = {.kind = PlainMlp{.up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h"},
            .size = {"", 0},
            .hasBias = kAlways,
            .activation = {"", "gelu_pytorch_tanh"},
            .activationName = "mlp.gelu_impl"},
    .block = PreNorm{.isResidualNormed = {"apply_residual_connection_post_layernorm", false}},
    .dropouts = {.attentionOutput = {"self_attention", kHiddenDropout}, .mlpOutput = {"mlp", kHiddenDropout}},
    .classes = kBloomClasses,
    .refused = kByRanks,
};

constinit const Family kPhi{
    .modelType = "phi",
    .classPrefix = "Phi",
    .heads = kPhiHeads,
    .finalNorm = "final_layernorm",
    .vocab = {"vocab_size", 51200},
    .hidden = {"hidden_size", 2048},
    .layerCount = {"num_hidden_layers", 24},
    .norm = LayerNorm{},
    .position = Rope{.fraction = {"partial_rotary_factor", 0.5}},
    .attention = SelfAttention{.output = "self_attn.dense",
                               .qkvBias = kAlways,
                               .outputBias = kAlways,
                               .queryKeyNorm = HeadNorm{.query = "self_attn.q_layernorm",
                                                        .key = "self_attn.k_layernorm",
                                                        .isUsed = {"qk_layernorm", false}}},
    .mlp = {.kind = PlainMlp{},
            .size = {"intermediate_size", 8192},
            .hasBias = kAlways,
            .activation = {"hidden_act", "gelu_new"},
            .activationName = "mlp.activation_fn"},
    .block = ParallelResidual{},
    .dropouts = {.embeddings = {"embed_dropout", {"embd_pdrop", 0.0}},
                 .attentionOutput = {"resid_dropout", kPhiDropout},
                 .mlpOutput = {"resid_dropout", kPhiDropout}},
};

constinit const Family kStarcoder2{
    .modelType = "starcoder2",
    .classPrefix = "Starcoder2",
    .heads = kStarcoder2Heads,
    .vocab = {"vocab_size", 49152},
    .hidden = {"hidden_size", 3072},
    .layerCount = {"num_hidden_layers", 30},
    .positions = {"max_position_embeddings", 4096},
    .isTied = kTied,
    .norm = LayerNorm{.eps = {"norm_epsilon", 1e-5}},
    .attention = SelfAttention{.qkvBias = kStarcoder2Bias,
                               .outputBias = kStarcoder2Bias,
                               .heads = {"num_attention_heads", 24},
                               .keyValueHeads = keyValueHeads(2),
                               .windows = {.rule = WindowRule::EveryLayer}},
    .mlp = {.kind = PlainMlp{.up = "mlp.c_fc", .down = "mlp.c_proj"},
            .size = {"intermediate_size", 12288},
            .hasBias = kStarcoder2Bias,
            .activation = {"hidden_act", "gelu_pytorch_tanh"},
            .activationName = "mlp.act"},
    .dropouts = {.embeddings = {"", {"embedding_dropout", 0.0}},
                 .attentionOutput = {"self_attn", kStarcoder2Dropout},
                 .mlpOutput = {"mlp", kStarcoder2Dropout}},
};

}  // namespace cleave::families
