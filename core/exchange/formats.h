#pragma once
/// A plan in the words of other programs. One format is one file and one row of the table.
///
///     CLEAVE_TRY(const Exported exported, formatNamed("tp-plan")->write(plan, {}));
///     exported.text;       // {"tp_plan": {"model.layers.*.self_attn.q_proj": "colwise", ...}}
///     exported.sentences;  // what the format cannot say, and what its reader will do instead
#include "base/progress.h"
#include "plan/plan.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::exchange {

struct Options {
  int transformers = 5;  ///< major version that tp-plan is for: 4 or 5
  Progress progress = {};
};

struct Exported {
  std::string text;
  std::vector<std::string> sentences;
};

struct Format {
  std::string_view name;       ///< as the command line has it
  std::string_view what;       ///< for its help
  std::string_view extension;  ///< that such files have, without the dot
  /// BadInput, BadUsage: a plan or options that the format is not for.
  Result<Exported> (*write)(const plan::Plan& plan, const Options& options);
  bool isPicture = false;  ///< drawn by Graphviz, which takes its time: nothing to read
};
std::span<const Format> formats();
const Format* formatNamed(std::string_view name);  ///< null: there is none

Result<Exported> writeTpPlan(const plan::Plan& plan, const Options& options);
Result<Exported> writeDtensor(const plan::Plan& plan, const Options& options);
Result<Exported> writeDtensorJson(const plan::Plan& plan, const Options& options);
Result<Exported> writeMegatron(const plan::Plan& plan, const Options& options);
Result<Exported> writeVllm(const plan::Plan& plan, const Options& options);
Result<Exported> writeTorchtitan(const plan::Plan& plan, const Options& options);
Result<Exported> writeSpmdTypes(const plan::Plan& plan, const Options& options);
Result<Exported> writeMarkdown(const plan::Plan& plan, const Options& options);

}  // namespace cleave::exchange
