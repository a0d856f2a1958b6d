#pragma once
/// The parts of Transformer families. Each alternative has its config keys (keys.h) and the names of its modules in the
/// checkpoint. A family (family.h) is a row that composes parts, the reader (model_config.h) fills in their values, and
/// one small function for each computes it (libtorch/models).
///
/// Names of modules are relative paths: those of attention, MLP and norms are relative to the block, the others to the
/// model. An empty name means that the module does not exist. Formulas and the order of operations are those of
/// transformers' modelling files.
#include "families/keys.h"

#include <span>
#include <variant>

namespace cleave::families {

// ---- norms

/// weight · x / rms(x), in float32. With `addsOne`: (1 + weight), multiplied in float32 (Gemma).
struct RmsNorm {
  NumberKey eps{"rms_norm_eps", 1e-6};
  bool addsOne = false;
};
/// torch.nn.LayerNorm. `isAffine` false: no weight and bias.
struct LayerNorm {
  NumberKey eps{"layer_norm_eps", 1e-5};
  FlagKey isAffine = kAlways;
};
/// Layer norm without bias, computed step by step in float32 (Cohere).
struct CenteredNorm {
  NumberKey eps{"layer_norm_eps", 1e-5};
};
using Norm = std::variant<RmsNorm, LayerNorm, CenteredNorm>;

// ---- positions

/// The pairs of features of a head that are rotated together.
enum class Pairing : std::uint8_t {
  Halves,     ///< i with i + size/2
  Neighbours  ///< 2i with 2i + 1
};

/// Rotary embeddings (rope.h). Each kind of layer in `layer_types` may have its own parameters.
struct Rope {
  NumberKey theta{"rope_theta", 10000.0};
  NumberKey fraction{"", 1.0};  ///< rotated fraction of a head's features, from the first one
  bool roundsUpToEven = false;  ///< if the number of features is odd, the next one is the partner of the last
  Pairing pairing = Pairing::Halves;
  NumberKey localTheta = {};     ///< base of layers with a window, which have no scaling; 0: same as the others
  bool isYarnByDefault = false;  ///< default without rope_parameters in the config (GPT-OSS)
  IntegerKey plainEvery = {};    ///< every n-th layer does not rotate, unless `no_rope_layers` is given; 0: all rotate
};

/// The origin of learned positions.
enum class PositionFrom : std::uint8_t {
  Index,      ///< 0, 1, ...
  Mask,       ///< counts the tokens that are not padding; padding has the position before the first (OPT)
  PaddingId,  ///< counts the tokens that are not pad_token_id, from pad_token_id + 1 (RoBERTa)
};
struct LearnedPositions {
  std::string_view name;
  std::int64_t extraRows = 0;  ///< rows of the table beyond max_position_embeddings; positions start after them
  PositionFrom from = PositionFrom::Index;
};

/// Attention with linear biases. `isRounded`: slopes are bfloat16, divided by the square root of the head size
/// (Falcon).
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
  bool isScaledByRoot = false;  ///< multiplied by the square root of the hidden size, rounded to the parameters' dtype
  IntegerKey width = {};        ///< word_embed_proj_dim; 0 or the hidden size: no projections
  std::string_view projectIn = {}, projectOut = {};
  std::string_view tokenTypes = {};
  IntegerKey typeCount = {};
  std::string_view norm = {};
};

// ---- attention

/// torch.nn.Linear stores [out, in], transformers' Conv1D [in, out].
enum class WeightLayout : std::uint8_t { OutIn, InOut };

struct SeparateQkv {
  std::string_view query = "self_attn.q_proj", key = "self_attn.k_proj", value = "self_attn.v_proj";
};
/// One projection with all queries, then all keys, then all values.
struct FusedBlocks {
  std::string_view name;
};
/// One projection with, for each key/value head, its queries, its key and its value.
struct FusedPerHead {
  std::string_view name;
};
using Qkv = std::variant<SeparateQkv, FusedBlocks, FusedPerHead>;

struct NoHeadNorm {};
/// Norm over the features of each head. `perHead`: each head has its own weights (Cohere).
struct HeadNorm {
  std::string_view query = "self_attn.q_norm", key = "self_attn.k_norm";
  FlagKey isUsed = kAlways;
  bool perHead = false;
};
/// Norm over all features of all heads, before the view that makes heads (OLMo 2).
struct ProjectionNorm {
  std::string_view query = "self_attn.q_norm", key = "self_attn.k_norm";
};
using QueryKeyNorm = std::variant<NoHeadNorm, HeadNorm, ProjectionNorm>;

/// Factor of the scores: 1 / sqrt(head size), or a value from the config.
struct HeadSizeScale {
  FlagKey isUsed = kAlways;    ///< scale_attn_weights; false: scores are not scaled
  FlagKey isByLayer = kNever;  ///< also divides by the layer's number, which starts at 1
};
struct InverseRootScale {
  NumberKey number{"query_pre_attn_scalar", 256};
};
struct MultiplierScale {
  NumberKey number{"attention_multiplier", 1.0};
};
/// The factor of the head size, applied to the projected queries (OPT).
struct QueryScale {};
using AttentionScale = std::variant<HeadSizeScale, InverseRootScale, MultiplierScale, QueryScale>;

/// The layers with a sliding window, unless `layer_types` lists them.
enum class WindowRule : std::uint8_t {
  Never,
  EveryLayer,                ///< all layers have the window of `sliding_window`
  AboveMaxWindowLayers,      ///< layers from `max_window_layers` on
  EvenBelowMaxWindowLayers,  ///< layers 0, 2, ... below it
  AllButEveryNth,            ///< all except every `pattern`-th
  WithoutRotation,           ///< layers without rotation
};
struct Windows {
  WindowRule rule = WindowRule::Never;
  FlagKey isUsed = kAlways;
  IntegerKey size{"sliding_window", 0, {}, /*isNullable=*/true};  ///< 0: no window
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
  IntegerKey headDim{"head_dim", 0, {}, /*isNullable=*/true};                   ///< 0: hidden size / heads
  QueryKeyNorm queryKeyNorm = NoHeadNorm{};
  AttentionScale scale = HeadSizeScale{};
  NumberKey softCap = {};       ///< scores become cap · tanh(scores / cap); 0: no cap
  std::string_view sinks = {};  ///< a learned score for each head that takes part in every softmax (GPT-OSS)
  Windows windows = {};
};

/// Multi-head latent attention (DeepSeek): queries, keys and values pass through narrow projections.
struct LatentAttention {
  std::string_view name = "self_attn";
  IntegerKey heads{"num_attention_heads", 128};
  IntegerKey queryRank{"q_lora_rank", 1536, {}, /*isNullable=*/true};  ///< 0 (null): one projection for queries
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

/// The function from a token's scores to the shares of its experts.
enum class Routing : std::uint8_t {
  SoftmaxThenTop,  ///< the k largest of softmax(scores)
  TopThenSoftmax,  ///< softmax of the k largest scores
  GroupedSigmoid,  ///< sigmoid(scores); selects the best groups by score + bias, then the best experts in them
                   ///< (DeepSeek V3)
};
/// Layout and formula of the experts' weights.
enum class ExpertForm : std::uint8_t {
  Gated,          ///< gate_up [experts, 2 features, hidden], gate first; down [experts, hidden, features]
  ClampedSwiglu,  ///< gate_up [experts, hidden, 2 features], gate and up alternate; down [experts, features, hidden];
                  ///< biases; see graph::kMoeExperts (GPT-OSS)
};
/// The layers with experts.
enum class SparseRule : std::uint8_t {
  Never,
  EveryLayer,
  EveryStep,  ///< every `decoder_sparse_step`-th, except those in `mlp_only_layers`
  FromLayer,  ///< layers from `first_k_dense_replace` on
};

struct Experts {
  SparseRule rule = SparseRule::Never;
  IntegerKey step = {};  ///< parameter of the rule
  std::string_view name = "mlp", className = "SparseMoeBlock";
  std::string_view router = "mlp.gate";
  FlagKey routerBias = kNever;
  std::string_view correctionBias = {};  ///< added to scores for the selection of experts, but not in their shares
  /// Names in a checkpoint with a tensor for each expert: `experts.3.<gate>.weight`, ...
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
  ExpertForm form = ExpertForm::Gated;
  Routing routing = Routing::SoftmaxThenTop;
  IntegerKey count{"num_experts", 8, "num_local_experts"};
  IntegerKey perToken{"num_experts_per_tok", 2};
  IntegerKey size{"moe_intermediate_size", 1408};  ///< of one expert
  FlagKey areSharesNormalised = kAlways;           ///< shares are scaled to the sum 1
  NumberKey sharesFactor{"", 1.0};
  IntegerKey groups{"", 1}, groupsKept{"", 1};
  NumberKey alpha{"", 1.702}, limit{"", 7.0};  ///< ClampedSwiglu
  /// An MLP that processes all tokens.
  std::string_view shared = {};
  IntegerKey sharedSize = {};        ///< or this many times the features of one expert
  IntegerKey sharedCount = {};       ///< or this many times the features of one expert
  std::string_view sharedGate = {};  ///< a sigmoid gate of the shared MLP
};

// ---- dropout

/// Elements become 0 with this probability in training (libtorch/models/model.h). `name`: the torch.nn.Dropout, or the
/// module whose code applies dropout without one. A probability of 0 means no dropout.
struct Dropout {
  std::string_view name = {};
  NumberKey probability = {};
};

/// The dropouts of a family. The name for embeddings is relative to the model, the others to the block.
struct Dropouts {
  Dropout embeddings = {};
  NumberKey attention{"attention_dropout", 0.0};  ///< on the softmax of the scores
  Dropout attentionOutput = {}, mlpOutput = {};
  Dropout sum = {};      ///< on the sum of attention and MLP of a ParallelResidual (Falcon)
  NumberKey layer = {};  ///< probability to skip a whole layer, which Cleave does not support (OPT)
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
struct OutputNorm {
  std::string_view attentionNorm = "post_attention_layernorm", mlpNorm = "post_feedforward_layernorm";
};
/// x + norm(f(norm(x))), twice.
struct Sandwich {
  std::string_view attentionNorm = "input_layernorm", afterAttention = "post_attention_layernorm";
  std::string_view mlpNorm = "pre_feedforward_layernorm", afterMlp = "post_feedforward_layernorm";
};
/// x + attention(norm(x)) + mlp(norm(x)). If `mlpNorm` is empty, both read the same norm.
struct ParallelResidual {
  std::string_view attentionNorm = "input_layernorm", mlpNorm = {};
};
using Block = std::variant<PreNorm, PostNorm, OutputNorm, Sandwich, ParallelResidual>;

// ---- heads

struct CausalHead {
  std::string_view name = "lm_head";
  FlagKey hasBias = kNever;
  NumberKey multiplier{"", 1.0}, divisor{"", 1.0};
  NumberKey softCap = {};  ///< 0: no cap
};
/// Predicts the tokens at their own positions, not the next ones.
struct MaskedHead {
  std::string_view dense, norm, decoder, bias;  ///< paths from the root
  bool hasOwnActivation = false;                ///< always gelu; the config is not read (RoBERTa)
};
/// A label for each sequence, from its first token. `pooler`: a path in the model. If it is empty, the first dense
/// layer belongs to the head.
struct ClassifierHead {
  std::string_view dense, output;
  IntegerKey labels{"num_labels", 2};
  std::string_view dropout = {};                       ///< module before `output`
  bool dropsInput = false;                             ///< the module is also before `dense`
  NumberKey dropoutProbability{"classifier_dropout"};  ///< absent or null: same as for the embeddings
};
using Head = std::variant<CausalHead, MaskedHead, ClassifierHead>;

}  // namespace cleave::families
