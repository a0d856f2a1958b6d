// Encoders: every token attends to every other, and norms come after the residual.
#include "families/config_reader.h"
#include "families/rows.h"

namespace cleave::families {
namespace {

constexpr HeadClass kBertHeads[] = {
    {"BertForMaskedLM", MaskedHead{.dense = "cls.predictions.transform.dense",
                                   .norm = "cls.predictions.transform.LayerNorm",
                                   .decoder = "cls.predictions.decoder",
                                   .bias = "cls.predictions.bias"}},
    {"BertForSequenceClassification",
     ClassifierHead{.dense = "bert.pooler.dense", .output = "classifier", .dropout = "dropout"}},
};
constexpr HeadClass kRobertaHeads[] = {
    {"RobertaForMaskedLM", MaskedHead{.dense = "lm_head.dense",
                                      .norm = "lm_head.layer_norm",
                                      .decoder = "lm_head.decoder",
                                      .bias = "lm_head.bias",
                                      .hasOwnActivation = true}},
    {"RobertaForSequenceClassification", ClassifierHead{.dense = "classifier.dense",
                                                        .output = "classifier.out_proj",
                                                        .dropout = "classifier.dropout",
                                                        .dropsInput = true}},
};
constexpr ModuleClass kClasses[] = {
    {"embeddings", "Embeddings"},
    {"encoder", "Encoder"},
    {"attention", "Attention"},
    {"attention.self", "SelfAttention"},
    {"attention.output", "SelfOutput"},
    {"intermediate", "Intermediate"},
    {"output", "Output"},
};
/// Names in checkpoints that were converted from TensorFlow.
constexpr OtherName kNames[] = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}};
constexpr RefusedKey kEncoderRefused[] = {{"is_decoder"}, {"add_cross_attention"}};
constexpr NumberKey kEncoderDropout{"hidden_dropout_prob", 0.1};

/// Older versions of transformers also had attention by relative position.
constexpr std::string_view kPositionKind = "position_embedding_type";
constexpr std::string_view kChoosing[] = {kPositionKind};
Result<void> refuseRelativePositions(Family& family, ConfigReader& config) {
  CLEAVE_TRY(const std::string text, config.fields().text(kPositionKind, "absolute"));
  if (text == "absolute") return {};
  return config.fields().wrong(
      kPositionKind, fmt::format("absolute, the only value that Cleave supports for {} models", family.modelType));
}

constexpr Family encoder(std::string_view modelType, std::string_view prefix, std::span<const HeadClass> heads,
                         std::string_view model) {
  return {
      .modelType = modelType,
      .classPrefix = prefix,
      .heads = heads,
      .model = model,
      .layers = "encoder.layer",
      .finalNorm = {},
      .layerClass = "Layer",
      .isCausal = false,
      .vocab = {"vocab_size", 30522},
      .hidden = {"hidden_size", 768},
      .layerCount = {"num_hidden_layers", 12},
      .positions = {"max_position_embeddings", 512},
      .isTied = kTied,
      .padTokenId = 0,
      .norm = LayerNorm{.eps = {"layer_norm_eps", 1e-12}},
      .embeddings = {.tokens = "embeddings.word_embeddings",
                     .tokenTypes = "embeddings.token_type_embeddings",
                     .typeCount = {"type_vocab_size", 2},
                     .norm = "embeddings.LayerNorm"},
      .position = LearnedPositions{"embeddings.position_embeddings"},
      .attention =
          SelfAttention{.name = "attention.self",
                        .output = "attention.output.dense",
                        .qkv = SeparateQkv{"attention.self.query", "attention.self.key", "attention.self.value"},
                        .qkvBias = kAlways,
                        .outputBias = kAlways,
                        .heads = {"num_attention_heads", 12},
                        .keyValueHeads = {"", 0},
                        .headDim = {"", 0}},
      .mlp = {.kind = PlainMlp{.name = "", .up = "intermediate.dense", .down = "output.dense"},
              .size = {"intermediate_size", 3072},
              .hasBias = kAlways,
              .activation = {"hidden_act", "gelu"},
              .activationName = "intermediate.intermediate_act_fn"},
      .block = PostNorm{"attention.output.LayerNorm", "output.LayerNorm"},
      .dropouts = {.embeddings = {"embeddings.dropout", kEncoderDropout},
                   .attention = {"attention_probs_dropout_prob", 0.1},
                   .attentionOutput = {"attention.output.dropout", kEncoderDropout},
                   .mlpOutput = {"output.dropout", kEncoderDropout}},
      .classes = kClasses,
      .otherNames = kNames,
      .refused = kEncoderRefused,
      .choose = refuseRelativePositions,
      .choosesBy = kChoosing,
  };
}

constexpr Family roberta() {
  Family family = encoder("roberta", "Roberta", kRobertaHeads, "roberta");
  family.vocab.value = 50265;
  family.padTokenId = 1;
  family.position = LearnedPositions{"embeddings.position_embeddings", 0, PositionFrom::PaddingId};
  return family;
}

}  // namespace

constinit const Family kBert = encoder("bert", "Bert", kBertHeads, "bert");
constinit const Family kRoberta = roberta();

}  // namespace cleave::families
