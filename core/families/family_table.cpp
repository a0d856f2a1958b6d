#include "families/family_table.h"

#include "families/rows.h"

#include <algorithm>

namespace cleave::families {
namespace {

constexpr const Family* kFamilies[] = {
    &kLlama,   &kMistral, &kQwen2,   &kOlmo2,    &kMinistral, &kQwen3,  &kGemma,      &kGemma2,     &kGemma3,
    &kPhi,     &kPhi3,    &kGpt2,    &kOpt,      &kGptNeox,   &kFalcon, &kBloom,      &kStarcoder2, &kCohere,
    &kGranite, &kSmolLm3, &kMixtral, &kQwen2Moe, &kQwen3Moe,  &kGptOss, &kDeepseekV3, &kBert,       &kRoberta,
};

}  // namespace

std::span<const Family* const> families() { return kFamilies; }

const Family* findFamily(std::string_view modelType) {
  const auto* row = std::ranges::find(kFamilies, modelType, [](const Family* family) { return family->modelType; });
  return row == std::end(kFamilies) ? nullptr : *row;
}

KnownClass findClass(std::string_view className) {
  for (const Family* family : kFamilies) {
    const auto head = std::ranges::find(family->heads, className, &HeadClass::className);
    if (head != family->heads.end()) return {family, &*head};
  }
  return {};
}

}  // namespace cleave::families
