"""The models of tests/data/families: one row per folder, `FAMILY` or `FAMILY-what`.

A row names its family, the values of the configuration that differ from the family's, and how its batch looks. The
configuration is written as transformers 5 has it (`rope_parameters`); dialects.py says it as 4.x does.
"""

import copy
from dataclasses import dataclass, field

ROPE = {"rope_type": "default", "rope_theta": 10000.0}
SIZES = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
DECODER = dict(SIZES, intermediate_size=48, num_key_value_heads=2, bos_token_id=1, eos_token_id=2, pad_token_id=0)
GEMMA = dict(DECODER, head_dim=8, tie_word_embeddings=True)
MOE = dict(DECODER, moe_intermediate_size=8, num_experts=4, num_experts_per_tok=2, head_dim=8)
ENCODER = dict(SIZES, intermediate_size=48, type_vocab_size=2, max_position_embeddings=24,
               hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def without(values, *names):
    return {key: value for key, value in values.items() if key not in names}


FAMILIES = {
    "llama": ("LlamaForCausalLM", dict(DECODER, rope_parameters=ROPE)),
    "mistral": ("MistralForCausalLM", dict(DECODER, rope_parameters=ROPE, sliding_window=5)),
    "qwen2": ("Qwen2ForCausalLM", dict(DECODER, rope_parameters=ROPE)),
    "qwen3": ("Qwen3ForCausalLM", dict(DECODER, rope_parameters=ROPE, head_dim=8)),
    "gemma": ("GemmaForCausalLM", dict(GEMMA, rope_parameters=ROPE, hidden_act="gelu_pytorch_tanh")),
    "gemma2": ("Gemma2ForCausalLM", dict(
        GEMMA, rope_parameters=ROPE, query_pre_attn_scalar=12, sliding_window=5, final_logit_softcapping=2.0,
        attn_logit_softcapping=1.5, layer_types=["sliding_attention", "full_attention"])),
    "gemma3_text": ("Gemma3ForCausalLM", dict(
        GEMMA, query_pre_attn_scalar=12, sliding_window=5, num_hidden_layers=3, intermediate_size=24,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                         "full_attention": {"rope_type": "default", "rope_theta": 10000.0}})),
    "phi": ("PhiForCausalLM", dict(
        DECODER, intermediate_size=48, num_key_value_heads=4, rope_parameters=dict(ROPE, partial_rotary_factor=0.5))),
    "phi3": ("Phi3ForCausalLM", dict(DECODER, rope_parameters=ROPE, original_max_position_embeddings=64)),
    "gpt2": ("GPT2LMHeadModel", dict(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, n_inner=48, bos_token_id=1, eos_token_id=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, summary_first_dropout=0.0)),
    "opt": ("OPTForCausalLM", dict(
        SIZES, ffn_dim=48, max_position_embeddings=32, dropout=0.0, word_embed_proj_dim=32, pad_token_id=1)),
    "gpt_neox": ("GPTNeoXForCausalLM", dict(
        SIZES, intermediate_size=48, rope_parameters=dict(ROPE, partial_rotary_factor=0.5), bos_token_id=0,
        eos_token_id=2)),
    "falcon": ("FalconForCausalLM", dict(
        SIZES, rope_parameters=ROPE, ffn_hidden_size=48, bos_token_id=1, eos_token_id=2)),
    "bloom": ("BloomForCausalLM", dict(
        vocab_size=64, hidden_size=24, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2, pad_token_id=3)),
    "starcoder2": ("Starcoder2ForCausalLM", dict(
        DECODER, intermediate_size=48, rope_parameters=ROPE, sliding_window=5, norm_epsilon=1e-5)),
    "olmo2": ("Olmo2ForCausalLM", dict(DECODER, rope_parameters=ROPE)),
    "cohere": ("CohereForCausalLM", dict(DECODER, rope_parameters=ROPE, logit_scale=0.25, tie_word_embeddings=True)),
    "granite": ("GraniteForCausalLM", dict(
        DECODER, rope_parameters=ROPE, embedding_multiplier=6.0, attention_multiplier=0.2, residual_multiplier=0.4,
        logits_scaling=3.0)),
    "smollm3": ("SmolLM3ForCausalLM", dict(
        DECODER, num_hidden_layers=3, intermediate_size=24, rope_parameters=ROPE, no_rope_layers=[1, 0, 1],
        tie_word_embeddings=True)),
    "mixtral": ("MixtralForCausalLM", dict(
        DECODER, intermediate_size=8, num_local_experts=4, num_experts_per_tok=2, rope_parameters=ROPE)),
    "qwen2_moe": ("Qwen2MoeForCausalLM", dict(
        without(MOE, "head_dim"), moe_intermediate_size=4, shared_expert_intermediate_size=12, rope_parameters=ROPE)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", dict(MOE, rope_parameters=ROPE, norm_topk_prob=True)),
    "gpt_oss": ("GptOssForCausalLM", dict(
        DECODER, intermediate_size=8, head_dim=8,
        num_local_experts=4, num_experts_per_tok=2, sliding_window=5,
        layer_types=["sliding_attention", "full_attention"],
        rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 4.0, "beta_slow": 1.0,
                         "truncate": False, "original_max_position_embeddings": 16})),
    "deepseek_v3": ("DeepseekV3ForCausalLM", dict(
        without(MOE, "head_dim", "num_experts"), num_key_value_heads=4, intermediate_size=24, moe_intermediate_size=4,
        n_routed_experts=8, n_shared_experts=1, n_group=4, topk_group=2, first_k_dense_replace=1,
        routed_scaling_factor=1.5, norm_topk_prob=True, q_lora_rank=16, kv_lora_rank=16, qk_nope_head_dim=8,
        qk_rope_head_dim=4, v_head_dim=4, rope_parameters=ROPE)),
    "bert": ("BertForMaskedLM", dict(ENCODER, pad_token_id=0)),
    "roberta": ("RobertaForMaskedLM", dict(
        ENCODER, type_vocab_size=1, max_position_embeddings=24, pad_token_id=1, bos_token_id=0, eos_token_id=2)),
}
WIDTHS = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")


@dataclass
class Variant:
    """One folder.

    `padding` is of the second row: "left", "right" or None. `unmasked_pads` has padding tokens and no mask. `task` is
    "causal", "masked" or "classification". `dialect` asks for config-v4.json and config-short.json, `fused` for the
    experts of a layer as one tensor. `scales` multiplies the tensors whose names end so,
    `salt` gives other random weights.
    `published` are values as published configurations have them, where that is otherwise: they go into
    config-published.json. `published_v4` are such values that transformers 5 refuses and 4.57 reads.
    """

    name: str
    family: str
    config: dict = field(default_factory=dict)
    model: str | None = None
    padding: str | None = None
    token_types: bool = False
    task: str = "causal"
    dialect: bool = False
    without_keys: tuple = ()
    fused: bool = False
    salt: str = ""
    unmasked_pads: bool = False
    scales: dict = field(default_factory=dict)
    published: dict = field(default_factory=dict)
    published_v4: dict = field(default_factory=dict)

    @property
    def model_class(self):
        return self.model or FAMILIES[self.family][0]

    @property
    def values(self):
        """A copy of the arguments, because a configuration writes into its dictionaries. Variants are narrow models."""
        base = without(FAMILIES[self.family][1], *self.without_keys)
        if self.name != self.family:
            base = {key: min(value, 24) if key in WIDTHS else value for key, value in base.items()}
        return copy.deepcopy({**base, **self.config})


def row(name, config=None, **options):
    return Variant(name, name.split("-")[0], config or {}, **options)


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16,
        "beta_fast": 4.0, "beta_slow": 1.0}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.1, 1.3, 1.7],
        "long_factor": [1.2, 1.9, 3.1, 4.7]}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
WINDOWS = dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)
MSCALE = dict(YARN, mscale=0.7, mscale_all_dim=1.3)
LEFT, RIGHT = {"padding": "left"}, {"padding": "right"}

VARIANTS = [
    row("llama", dialect=True),
    row("llama-tied-biases", dict(tie_word_embeddings=True, attention_bias=True, mlp_bias=True), **LEFT),
    row("llama-8-heads", dict(num_attention_heads=8, num_key_value_heads=4), **RIGHT),
    row("llama-multi-head", without_keys=("num_key_value_heads",)),
    row("llama-one-kv-head", dict(num_key_value_heads=1, head_dim=12)),
    row("llama-gelu", dict(hidden_act="gelu"), **LEFT),
    row("llama-relu", dict(hidden_act="relu", rms_norm_eps=0.1)),
    row("llama-linear-rope", dict(rope_parameters=LINEAR), dialect=True),
    row("llama-dynamic-rope", dict(rope_parameters=DYNAMIC, max_position_embeddings=8), dialect=True),
    row("llama-dynamic-rope-short", dict(rope_parameters=DYNAMIC), dialect=True),
    row("llama-llama3-rope", dict(rope_parameters=LLAMA3), dialect=True),
    row("llama-yarn-rope", dict(rope_parameters=YARN), dialect=True),
    # Llama always rotates the whole head, so the key has no effect.
    row("llama-partial-rope", dict(rope_parameters=dict(ROPE, partial_rotary_factor=0.5))),
    row("mistral", dialect=True),
    row("mistral-no-window", dict(sliding_window=None, head_dim=12), **LEFT),
    row("mistral-padded-right", dict(num_key_value_heads=4), **RIGHT),
    row("qwen2", dialect=True),
    row("qwen2-windows", dict(WINDOWS, num_hidden_layers=3, tie_word_embeddings=True), dialect=True, **LEFT),
    row("qwen2-yarn-rope", dict(rope_parameters=YARN), dialect=True, **RIGHT),
    row("qwen3", dialect=True),
    row("qwen3-windows-biases", dict(WINDOWS, attention_bias=True, tie_word_embeddings=True, head_dim=12),
        dialect=True, **LEFT),
    row("gemma", dialect=True),
    row("gemma-one-kv-head", dict(num_key_value_heads=1, head_dim=12), dialect=True, **LEFT),
    row("gemma-untied", dict(tie_word_embeddings=False, attention_bias=True), published=dict(hidden_act="gelu")),
    row("gemma2", dialect=True),
    row("gemma2-no-caps", dict(attn_logit_softcapping=None, final_logit_softcapping=None), **RIGHT),
    row("gemma2-final-cap", dict(attn_logit_softcapping=None, num_hidden_layers=3, layer_types=None), **LEFT),
    row("gemma3_text", dialect=True),
    row("gemma3_text-linear-rope", dict(
        attention_bias=True, final_logit_softcapping=2.0, num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"],
        rope_parameters={"sliding_attention": dict(ROPE, rope_theta=100.0), "full_attention": LINEAR}),
        dialect=True, **LEFT),
    # Gemma 3 has the key of this cap and does not read it.
    row("gemma3_text-untied", dict(
        tie_word_embeddings=False, num_hidden_layers=2, layer_types=["full_attention", "sliding_attention"],
        attn_logit_softcapping=1.5), **RIGHT),
    row("gemma3_text-both-ways", dict(
        use_bidirectional_attention=True, num_hidden_layers=2, layer_types=["full_attention", "sliding_attention"])),
    row("phi", dialect=True),
    row("phi-qk-layernorm", dict(qk_layernorm=True, num_key_value_heads=2), dialect=True, **LEFT),
    row("phi-tied", dict(tie_word_embeddings=True, hidden_act="gelu"), **RIGHT),
    row("phi-all-rotated", dict(hidden_size=24, num_attention_heads=4, num_key_value_heads=4,
                                rope_parameters=dict(ROPE, partial_rotary_factor=1.0))),
    row("phi3", dialect=True),
    row("phi3-longrope", dict(rope_parameters=LONG, original_max_position_embeddings=8), dialect=True,
        published_v4=dict(rope_scaling=dict(
            type="su", short_factor=LONG["short_factor"], long_factor=LONG["long_factor"]))),
    row("phi3-longrope-short", dict(rope_parameters=LONG, original_max_position_embeddings=32), dialect=True),
    row("phi3-odd-part", dict(rope_parameters=dict(ROPE, partial_rotary_factor=0.4)), **RIGHT),
    row("phi3-partial-rope", dict(rope_parameters=dict(ROPE, partial_rotary_factor=0.75)), dialect=True, **LEFT),
    row("phi3-partial-longrope", dict(
        rope_parameters=dict(LONG, partial_rotary_factor=0.5, short_factor=[1.0, 1.3], long_factor=[1.2, 3.1]),
        original_max_position_embeddings=8), dialect=True),
    row("phi3-window", dict(sliding_window=5, tie_word_embeddings=True, num_key_value_heads=4), **RIGHT),
    row("gpt2", dialect=True),
    row("gpt2-inverse-layer", dict(scale_attn_by_inverse_layer_idx=True), dialect=True, **RIGHT),
    row("gpt2-unscaled", dict(scale_attn_weights=False, tie_word_embeddings=False, activation_function="relu"),
        **LEFT),
    row("gpt2-upcast", dict(reorder_and_upcast_attn=True, scale_attn_by_inverse_layer_idx=True,
                            activation_function="gelu", n_inner=None, n_embd=24)),
    row("opt", dialect=True),
    row("opt-350m", dict(do_layer_norm_before=False, word_embed_proj_dim=16), dialect=True),
    row("opt-350m-padded-left", dict(do_layer_norm_before=False, word_embed_proj_dim=16), **LEFT),
    row("opt-padded-left", **LEFT),
    row("opt-padded-right", dict(activation_function="gelu", tie_word_embeddings=False), **RIGHT),
    row("opt-no-biases", dict(enable_bias=False, layer_norm_elementwise_affine=False, _remove_final_layer_norm=True)),
    row("gpt_neox", dialect=True),
    row("gpt_neox-sequential", dict(use_parallel_residual=False, rope_parameters=dict(ROPE, partial_rotary_factor=1.0)),
        dialect=True, **LEFT),
    row("gpt_neox-odd-part", dict(rope_parameters=dict(ROPE, partial_rotary_factor=0.4)), **LEFT),
    row("gpt_neox-no-biases", dict(attention_bias=False, tie_word_embeddings=True, hidden_act="gelu_fast",
                                   rope_parameters=dict(LINEAR, partial_rotary_factor=0.25)), **RIGHT),
    row("falcon", dict(multi_query=True, parallel_attn=True, bias=False, new_decoder_architecture=False),
        dialect=True),
    row("falcon-40b", dict(new_decoder_architecture=True, num_kv_heads=2, bias=False), dialect=True, **LEFT),
    row("falcon-11b", dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1,
                           tie_word_embeddings=False), dialect=True),
    row("falcon-rw", dict(alibi=True, bias=True, parallel_attn=False, multi_query=False), dialect=True),
    row("falcon-rw-padded-left", dict(alibi=True, bias=True, parallel_attn=False, multi_query=False), **LEFT),
    row("falcon-rw-6-heads", dict(alibi=True, bias=True, parallel_attn=False, multi_query=False, hidden_size=24,
                                  num_attention_heads=6), **RIGHT),
    row("falcon-multi-head", dict(multi_query=False, parallel_attn=True, bias=True, activation="relu")),
    row("falcon-sequential", dict(multi_query=True, parallel_attn=False, bias=True), **RIGHT),
    row("bloom", dialect=True),
    row("bloom-padded-left", **LEFT),
    row("bloom-6-heads", dict(n_head=6, apply_residual_connection_post_layernorm=True), dialect=True, **RIGHT),
    row("starcoder2", dialect=True),
    row("starcoder2-no-biases", dict(use_bias=False, sliding_window=None, tie_word_embeddings=False,
                                     num_key_value_heads=1), **LEFT),
    row("olmo2", dialect=True),
    row("olmo2-tied-biases", dict(attention_bias=True, tie_word_embeddings=True, num_key_value_heads=4), **LEFT),
    row("cohere", dialect=True),
    row("cohere-qk-norm", dict(use_qk_norm=True, attention_bias=True), dialect=True, **LEFT),
    row("cohere-untied", dict(tie_word_embeddings=False, logit_scale=0.7), **RIGHT),
    row("granite", dialect=True),
    row("granite-tied-biases", dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True), **LEFT),
    row("smollm3", dialect=True),
    row("smollm3-windows", dict(
        use_sliding_window=True, sliding_window=5, attention_bias=True, mlp_bias=True, num_hidden_layers=3,
        no_rope_layers=None, no_rope_layer_interval=2, intermediate_size=16), **RIGHT),
    row("mixtral", dialect=True),
    row("mixtral-fused", dict(num_key_value_heads=4), fused=True, **LEFT),
    row("mixtral-window", dict(sliding_window=5, num_experts_per_tok=1, head_dim=12, num_key_value_heads=1), **RIGHT),
    row("mixtral-3-of-6", dict(num_local_experts=6, num_experts_per_tok=3, intermediate_size=4, hidden_act="gelu",
                               tie_word_embeddings=True)),
    row("mixtral-quick-gelu", dict(hidden_act="quick_gelu")),
    row("mixtral-tanh", dict(hidden_act="tanh")),
    row("qwen2_moe", dialect=True),
    row("qwen2_moe-norm-topk", dict(norm_topk_prob=True, decoder_sparse_step=2, num_hidden_layers=3,
                                    tie_word_embeddings=True, intermediate_size=16), dialect=True, **LEFT),
    row("qwen2_moe-mlp-only", dict(WINDOWS, mlp_only_layers=[1]), **RIGHT),
    row("qwen2_moe-fused", dict(qkv_bias=False), fused=True),
    row("qwen3_moe", dialect=True, salt="a"),
    row("qwen3_moe-mixed", dict(mlp_only_layers=[0], norm_topk_prob=False, attention_bias=True), dialect=True,
        **LEFT),
    row("qwen3_moe-sparse-step", dict(decoder_sparse_step=2, tie_word_embeddings=True, num_experts_per_tok=3,
                                      num_key_value_heads=4), **RIGHT),
    row("qwen3_moe-fused", fused=True, salt="a"),
    row("gpt_oss", dialect=True, scales={"gate_up_proj": 4.0}),
    row("gpt_oss-padded-left", dict(layer_types=["full_attention", "sliding_attention"], num_key_value_heads=4),
        scales={"gate_up_proj": 4.0}, **LEFT),
    row("gpt_oss-swiglu", dict(swiglu_limit=1.5, swiglu_alpha=1.1, attention_bias=False, rope_parameters=ROPE,
                               tie_word_embeddings=True), **RIGHT),
    row("deepseek_v3", dialect=True),
    row("deepseek_v3-no-q-lora", dict(q_lora_rank=None, rope_interleave=False, n_group=1, topk_group=1),
        dialect=True, **LEFT),
    row("deepseek_v3-yarn-rope", dict(rope_parameters=MSCALE, attention_bias=True, n_shared_experts=2),
        dialect=True, **RIGHT),
    row("deepseek_v3-unnormed", dict(norm_topk_prob=False, first_k_dense_replace=0, n_group=2, topk_group=1,
                                     num_experts_per_tok=3, tie_word_embeddings=True, n_routed_experts=6)),
    row("deepseek_v3-fused", fused=True),
    row("bert", task="masked", token_types=True, padding="right", dialect=True),
    row("bert-no-mask", dict(hidden_act="gelu_new"), task="masked"),
    row("bert-untied", dict(tie_word_embeddings=False, hidden_act="relu"), task="masked", padding="left"),
    row("bert-classification", dict(num_labels=3), task="classification", token_types=True, padding="right",
        model="BertForSequenceClassification", dialect=True),
    row("roberta", task="masked", padding="right", dialect=True),
    row("roberta-padded-left", task="masked", padding="left"),
    row("roberta-no-mask", task="masked", unmasked_pads=True),
    row("roberta-classification", dict(num_labels=5), task="classification", padding="right",
        model="RobertaForSequenceClassification", dialect=True),
    # published.py describes how these files differ from those of save_pretrained.
    row("gpt2-published", dict(n_positions=16), dialect=True),
    row("bloom-published", **LEFT),
    row("bert-published", dict(max_position_embeddings=16, vocab_size=48), task="masked", token_types=True,
        padding="right"),
    row("roberta-published", dict(max_position_embeddings=16, vocab_size=48), task="masked", padding="right"),
    row("gpt_neox-published"),
    row("llama-published", dict(tie_word_embeddings=True), dialect=True),
    row("opt-published", **RIGHT),
    row("deepseek_v3-published", dict(hidden_size=16, n_routed_experts=6, n_group=2, topk_group=1)),
]
