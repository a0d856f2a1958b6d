#pragma once
/// The rows of the table in family_table.cpp, grouped by similarity.
#include "families/family.h"

namespace cleave::families {

// Keys that many families have, each with its own default.
inline constexpr FlagKey kAttentionBias{"attention_bias", false};
inline constexpr FlagKey kUsesWindows{"use_sliding_window", false};
inline constexpr FlagKey kTied{"tie_word_embeddings", true};
constexpr IntegerKey keyValueHeads(std::int64_t count) { return {"num_key_value_heads", count, {}, true}; }
constexpr IntegerKey headDim(std::int64_t size) { return {"head_dim", size, {}, true}; }
constexpr IntegerKey slidingWindow(std::int64_t size) { return {"sliding_window", size, {}, true}; }

// llama_like.cpp
extern const Family kLlama, kMistral, kQwen2, kOlmo2, kMinistral, kQwen3, kSmolLm3, kGranite, kPhi3, kCohere;
// gemma.cpp
extern const Family kGemma, kGemma2, kGemma3;
// classic.cpp
extern const Family kGpt2, kOpt, kGptNeox, kFalcon, kBloom, kPhi, kStarcoder2;
// sparse.cpp
extern const Family kMixtral, kQwen2Moe, kQwen3Moe, kGptOss, kDeepseekV3;
// encoders.cpp
extern const Family kBert, kRoberta;

}  // namespace cleave::families
