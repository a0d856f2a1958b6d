#pragma once
/// The rows of the table in family.cpp, by what they have in common.
#include "families/family.h"

namespace cleave::families {

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
