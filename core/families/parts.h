#pragma once
/// The parts that Transformer families are made of: each alternative carries its config keys (keys.h) and the names of
/// its modules, as in the checkpoint. A family (family.h) is a row that composes them; the reader (model_config.h)
/// fills in their values; one small function each computes them (libtorch/models).
///
/// Names of modules are paths relative to what contains them: of attention, MLP and norms of a block relative to the
/// block, of the rest relative to the model. An empty name: there is none. Formulas, and the order of operations, are
/// those of transformers' modelling files.
#include "families/keys.h"

#include <span>
#include <variant>

namespace cleave::families {

// ---- norms

/// weight · x / rms(x), in float32. `addsOne`: (1 + weight), multiplied in float32 (Gemma).
struct RmsNorm {
  NumberKey eps{"rms_norm_eps", 1e-6};
  bool addsOne = false;
};
/// torch.nn.LayerNorm. `isAffine` false: without weight and bias.
struct LayerNorm {
  NumberKey eps{"layer_norm_eps", 1e-5};
  FlagKey isAffine = kAlways;
};
/// Layer norm without bias, written out in float32 (Cohere).
struct CenteredNorm {
  NumberKey eps{"layer_norm_eps", 1e-5};
};
using Norm = std::variant<RmsNorm, LayerNorm, CenteredNorm>;

// ---- positions

/// How features of a head pair up to be rotated.
enum class Pairing : std::uint8_t {
  Halves,     ///< i with i + size/2
  Neighbours  ///< 2i with 2i + 1
};

/// Rotary embeddings (rope.h). Layers of kinds in `layer_types` may have parameters of their own.
struct Rope {
  NumberKey theta{"rope_theta", 10000.0};
  NumberKey fraction{"", 1.0};  ///< of a head's features, from the first on
  bool takesOneMore = false;    ///< where they are odd in number, the next turns too, as a partner of the last
  Pairing pairing = Pairing::Halves;
  NumberKey localTheta = {};     ///< layers with a window have this base, and no scaling; 0: as the others
  bool isYarnByDefault = false;  ///< where the config has no rope_parameters (GPT-OSS)
  IntegerKey plainEvery = {};    ///< every n-th layer does not rotate, unless `no_rope_layers` says which; 0: all do
};

/// Where a learned position comes from.
enum class PositionFrom : std::uint8_t {
  Index,      ///< 0, 1, ...
  Mask,       ///< counted over the tokens that are not padding; padding is one before the first (OPT)
  PaddingId,  ///< counted over the tokens that are not pad_token_id, from pad_token_id + 1 on (RoBERTa)
};
struct LearnedPositions {
  std::string_view name;
  std::int64_t extraRows = 0;  ///< in the table, beside max_position_embeddings; positions begin behind them
  PositionFrom from = PositionFrom::Index;
};

/// Attention with linear biases. `isRounded`: slopes in bfloat16, and divided by the root of the head size (Falcon).
struct Alibi {
  bool isRounded = false;
};
struct NoPositions {};
using Position = std::variant<Rope, LearnedPositions, Alibi, NoPositions>;

// ---- embeddings

struct Embeddings {
  std::string_view tokens = "embed_tokens";
  bool hasPadding = true;  ///< the row of pad_token_id is not trained
  NumberKey multiplier{"", 1.0};
  bool isScaledByRoot = false;  ///< multiplied by the root of the hidden size, rounded to the parameters' dtype
  IntegerKey width = {};        ///< word_embed_proj_dim; 0, or the hidden size: no projections
  std::string_view projectIn = {}, projectOut = {};
  std::string_view tokenTypes = {};
  IntegerKey typeCount = {};
  std::string_view norm = {};
};

// ---- attention

/// torch.nn.Linear holds [out, in]; transformers' Conv1D [in, out].
enum class WeightLayout : std::uint8_t { OutIn, InOut };

struct SeparateQkv {
  std::string_view query = "self_attn.q_proj", key = "self_attn.k_proj", value = "self_attn.v_proj";
};
/// One projection: all queries, then all keys, then all values.
struct FusedBlocks {
  std::string_view name;
};
/// One projection: for each key/value head its queries, its key and its value.
struct FusedPerHead {
  std::string_view name;
};
using Qkv = std::variant<SeparateQkv, FusedBlocks, FusedPerHead>;

struct NoHeadNorm {};
/// Of the features of each head. `perHead`: each head has weights of its own (Cohere).
struct HeadNorm {
  std::string_view query = "self_attn.q_norm", key = "self_attn.k_norm";
  FlagKey isUsed = kAlways;
  bool perHead = false;
};
/// Of all features of all heads, before they are cut into heads (OLMo 2).
struct ProjectionNorm {
  std::string_view query = "self_attn.q_norm", key = "self_attn.k_norm";
};
using QueryKeyNorm = std::variant<NoHeadNorm, HeadNorm, ProjectionNorm>;

/// What scores are multiplied by, unless it is the root of the head size's inverse.
struct HeadSizeScale {
  FlagKey isUsed = kAlways;    ///< scale_attn_weights: else scores are not scaled
  FlagKey isByLayer = kNever;  ///< and divided by the number of the layer, from 1 on
};
struct InverseRootScale {
  NumberKey number{"query_pre_attn_scalar", 256};
};
struct MultiplierScale {
  NumberKey number{"attention_multiplier", 1.0};
};
/// The head size's, applied to the projected queries (OPT).
struct QueryScale {};
using AttentionScale = std::variant<HeadSizeScale, InverseRootScale, MultiplierScale, QueryScale>;

/// Which layers attend through a sliding window, unless `layer_types` says it.
enum class WindowRule : std::uint8_t {
  Never,
  EveryLayer,                ///< `sliding_window` holds for all layers
  AboveMaxWindowLayers,      ///< from layer `max_window_layers` on
  EvenBelowMaxWindowLayers,  ///< layers 0, 2, ... below it
  AllButEveryNth,            ///< all but each `pattern`-th
  WithoutRotation,           ///< layers that do not rotate
};
struct Windows {
  WindowRule rule = WindowRule::Never;
  FlagKey isUsed = kAlways;
  IntegerKey size{"sliding_window", 0, {}, /*isNullable=*/true};  ///< 0: none
  IntegerKey pattern = {};
  IntegerKey maxWindowLayers{"max_window_layers", 28};
};

struct SelfAttention {
  std::string_view name = "self_attn";
  std::string_view output = "self_attn.o_proj";
  Qkv qkv = SeparateQkv{};
  WeightLayout layout = WeightLayout::OutIn;
  FlagKey qkvBias = kNever, outputBias = kNever;
  IntegerKey heads{"num_attention_heads", 32};
  IntegerKey keyValueHeads{"num_key_value_heads", 0, {}, /*isNullable=*/true};  ///< 0: as many as query heads
  IntegerKey headDim{"head_dim", 0, {}, /*isNullable=*/true};                   ///< 0: hidden size by heads
  QueryKeyNorm queryKeyNorm = NoHeadNorm{};
  AttentionScale scale = HeadSizeScale{};
  NumberKey softCap = {};       ///< scores become cap · tanh(scores / cap); 0: none
  std::string_view sinks = {};  ///< a learned score for each head that takes attention from all positions (GPT-OSS)
  Windows windows = {};
};

/// Multi-head latent attention (DeepSeek): queries and keys/values through narrow projections.
struct LatentAttention {
  std::string_view name = "self_attn";
  IntegerKey heads{"num_attention_heads", 128};
  IntegerKey queryRank{"q_lora_rank", 1536, {}, /*isNullable=*/true};  ///< 0 (null): queries are projected at once
  IntegerKey keyValueRank{"kv_lora_rank", 512};
  IntegerKey plainDim{"qk_nope_head_dim", 128};
  IntegerKey rotatedDim{"qk_rope_head_dim", 64};
  IntegerKey valueDim{"v_head_dim", 128};
  FlagKey hasBias{"attention_bias", false};
  FlagKey isInterleaved{"rope_interleave", true};
};
using Attention = std::variant<SelfAttention, LatentAttention>;

// ---- MLP

/// down(activation(gate(x)) · up(x))
struct GatedMlp {
  std::string_view name = "mlp", gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
};
/// The same with gate and up in one projection, gate first.
struct FusedGatedMlp {
  std::string_view name = "mlp", gateUp = "mlp.gate_up_proj", down = "mlp.down_proj";
};
/// down(activation(up(x)))
struct PlainMlp {
  std::string_view name = "mlp", up = "mlp.fc1", down = "mlp.fc2";
};
using MlpKind = std::variant<GatedMlp, FusedGatedMlp, PlainMlp>;

struct Mlp {
  MlpKind kind = GatedMlp{};
  WeightLayout layout = WeightLayout::OutIn;
  IntegerKey size{"intermediate_size", 11008};  ///< 0: four times the hidden size
  FlagKey hasBias = kNever;
  ActivationKey activation{"hidden_act", "silu"};
  std::string_view activationName = "mlp.act_fn";
};

// ---- experts

/// Which of a token's scores become the shares of its experts.
enum class Routing : std::uint8_t {
  SoftmaxThenTop,  ///< the k largest of softmax(scores)
  TopThenSoftmax,  ///< softmax of the k largest scores
  GroupedSigmoid,  ///< sigmoid(scores); the best groups by score + bias, in them the best experts (DeepSeek V3)
};
/// How the experts' weights lie, and what they compute.
enum class ExpertForm : std::uint8_t {
  Gated,          ///< gate_up [experts, 2 features, hidden], gate first; down [experts, hidden, features]
  ClampedSwiglu,  ///< gate_up [experts, hidden, 2 features], gate and up in turn; down [experts, features, hidden];
                  ///< biases; see graph::kMoeExperts (GPT-OSS)
};
/// Which layers have experts.
enum class SparseRule : std::uint8_t {
  Never,
  EveryLayer,
  EveryStep,  ///< each `decoder_sparse_step`-th, but for those in `mlp_only_layers`
  FromLayer,  ///< from `first_k_dense_replace` on
};

struct Experts {
  SparseRule rule = SparseRule::Never;
  IntegerKey step = {};  ///< of the rule
  std::string_view name = "mlp", className = "SparseMoeBlock";
  std::string_view router = "mlp.gate";
  FlagKey routerBias = kNever;
  std::string_view correctionBias = {};  ///< added to scores where experts are chosen, not where they count
  /// In a checkpoint that has a tensor for each expert: `experts.3.<gate>.weight`, ...
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
  ExpertForm form = ExpertForm::Gated;
  Routing routing = Routing::SoftmaxThenTop;
  IntegerKey count{"num_experts", 8, "num_local_experts"};
  IntegerKey perToken{"num_experts_per_tok", 2};
  IntegerKey size{"moe_intermediate_size", 1408};  ///< of one expert
  FlagKey areSharesNormalised = kAlways;           ///< to the sum 1
  NumberKey sharesFactor{"", 1.0};
  IntegerKey groups{"", 1}, groupsKept{"", 1};
  NumberKey alpha{"", 1.702}, limit{"", 7.0};  ///< ClampedSwiglu
  /// An MLP that all tokens take.
  std::string_view shared = {};
  IntegerKey sharedSize = {};        ///< its features
  IntegerKey sharedCount = {};       ///< or so many times those of one expert
  std::string_view sharedGate = {};  ///< a sigmoid gate of the shared MLP
};

// ---- dropout

/// Elements become 0 with a probability, where a model is trained with it (libtorch/models/model.h). `name`: the
/// torch.nn.Dropout, or the module whose code drops without one. A probability of 0: there is none.
struct Dropout {
  std::string_view name = {};
  NumberKey probability = {};
};

/// Where a family drops; the name of that of embeddings is relative to the model, the others to the block.
struct Dropouts {
  Dropout embeddings = {};
  NumberKey attention{"attention_dropout", 0.0};  ///< of what softmax makes of the scores
  Dropout attentionOutput = {}, mlpOutput = {};
  Dropout sum = {};      ///< of what attention and MLP of a ParallelResidual give together (Falcon)
  NumberKey layer = {};  ///< of a whole layer to be left out, which Cleave does not do (OPT)
};

// ---- blocks

/// x + f(norm(x)), twice.
struct PreNorm {
  std::string_view attentionNorm = "input_layernorm", mlpNorm = "post_attention_layernorm";
  NumberKey residualMultiplier{"", 1.0};
  FlagKey isResidualNormed = kNever;  ///< norm(x) + f(norm(x)) (BLOOM)
};
/// norm(x + f(x)), twice.
struct PostNorm {
  std::string_view attentionNorm, mlpNorm;
};
/// x + norm(f(x)), twice.
struct NormBehind {
  std::string_view attentionNorm = "post_attention_layernorm", mlpNorm = "post_feedforward_layernorm";
};
/// x + norm(f(norm(x))), twice.
struct Sandwich {
  std::string_view attentionNorm = "input_layernorm", afterAttention = "post_attention_layernorm";
  std::string_view mlpNorm = "pre_feedforward_layernorm", afterMlp = "post_feedforward_layernorm";
};
/// x + attention(norm(x)) + mlp(norm(x)); an empty `mlpNorm`: both read the same norm.
struct ParallelResidual {
  std::string_view attentionNorm = "input_layernorm", mlpNorm = {};
};
using Block = std::variant<PreNorm, PostNorm, NormBehind, Sandwich, ParallelResidual>;

// ---- heads

struct CausalHead {
  std::string_view name = "lm_head";
  FlagKey hasBias = kNever;
  NumberKey multiplier{"", 1.0}, divisor{"", 1.0};
  NumberKey softCap = {};  ///< 0: none
};
/// Predicts the tokens in place, not the next ones.
struct MaskedHead {
  std::string_view dense, norm, decoder, bias;  ///< paths from the root
  bool hasOwnActivation = false;                ///< gelu, whatever the config says (RoBERTa)
};
/// A label for each sequence, from its first token. `pooler`: a path in the model; else the first dense layer is the
/// head's own.
struct ClassifierHead {
  std::string_view dense, output;
  IntegerKey labels{"num_labels", 2};
  std::string_view dropout = {};                       ///< module in front of `output`
  bool dropsInput = false;                             ///< and it is in front of `dense` too
  NumberKey dropoutProbability{"classifier_dropout"};  ///< absent or null: that of the embeddings
};
using Head = std::variant<CausalHead, MaskedHead, ClassifierHead>;

}  // namespace cleave::families
