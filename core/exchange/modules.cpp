#include "exchange/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

/// Source: transformers 5.23, models/*/modeling_*.py; tests/python/exported_plans.py checks this table against them.

namespace cleave::exchange {
namespace {

/// `view(batch, -1, self.num_heads, ...)`: with a part of the heads it fails, or misreads them as positions.
constexpr std::array<std::string_view, 4> kCountingHeads{"gpt2", "bloom", "falcon", "opt"};

struct OddModule {
  std::string_view modelType, ending, why;
};
constexpr std::array<OddModule, 3> kOddModules{{
    {"opt", "embed_positions", "the module counts positions itself, and no hook can correct them"},
    {"bert", "cls.predictions.decoder", "it shares its bias with another module"},
    {"roberta", "lm_head.decoder", "it shares its bias with another module"},
}};

struct Renamed {
  std::string_view modelType, before, after;
};
constexpr std::array<Renamed, 2> kRenamed{{
    {"mixtral", ".block_sparse_moe", ".mlp"},
    {"gpt_neox", "embed_out", "lm_head"},
}};

}  // namespace

std::string whyNoHeads(std::string_view modelType) {
  if (std::find(kCountingHeads.begin(), kCountingHeads.end(), modelType) == kCountingHeads.end()) return {};
  return fmt::format("transformers' {} attention uses the head count of the whole model", modelType);
}

std::string whyNotModule(std::string_view modelType, std::string_view name) {
  for (const OddModule& module : kOddModules) {
    if (module.modelType == modelType && name.ends_with(module.ending)) return std::string(module.why);
  }
  return {};
}

std::string whyNoTraining(std::string_view modelType) {
  if (modelType != "falcon") return {};
  return "falcon adds the attention result to the MLP result in place, which PyTorch does not allow for a split "
         "layer that needs a gradient";
}

bool isBuffer(std::string_view name) { return name.ends_with(".e_score_correction_bias"); }

std::string moduleName(std::string_view modelType, const std::string& name) {
  std::string result = name;
  for (const Renamed& renamed : kRenamed) {
    if (renamed.modelType != modelType) continue;
    if (const auto at = result.find(renamed.before); at != std::string::npos)
      result.replace(at, renamed.before.size(), renamed.after);
  }
  return result;
}

}  // namespace cleave::exchange
