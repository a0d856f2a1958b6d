#pragma once
/// Exports of a plan for other programs. Each format is one file and one row of the table.
///
///     CLEAVE_TRY(const Exported exported, formatNamed("tp-plan")->write(plan, {}));
///     exported.text;       // {"tp_plan": {"model.layers.*.self_attn.q_proj": "colwise", ...}}
///     exported.sentences;  // what the format cannot express, and what its reader does instead
#include "base/progress.h"
#include "plan/plan.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::exchange {

struct Options {
  int transformers = 5;  ///< transformers' major version for tp-plan: 4 or 5
  Progress progress = {};
};

struct Exported {
  std::string text;
  std::vector<std::string> sentences;
};

struct Format {
  std::string_view name;       ///< name on the command line
  std::string_view what;       ///< description for the help text
  std::string_view extension;  ///< file name extension, without the dot
  /// BadInput, BadUsage: the format does not support the plan or the options.
  Result<Exported> (*write)(const plan::Plan& plan, const Options& options);
  bool isPicture = false;  ///< drawn by Graphviz, which takes time; the output is not text
};
std::span<const Format> formats();
const Format* formatNamed(std::string_view name);  ///< null: no such format

Result<Exported> writeTpPlan(const plan::Plan& plan, const Options& options);
Result<Exported> writeDtensor(const plan::Plan& plan, const Options& options);
Result<Exported> writeDtensorJson(const plan::Plan& plan, const Options& options);
Result<Exported> writeMegatron(const plan::Plan& plan, const Options& options);
Result<Exported> writeVllm(const plan::Plan& plan, const Options& options);
Result<Exported> writeTorchtitan(const plan::Plan& plan, const Options& options);
Result<Exported> writeSpmdTypes(const plan::Plan& plan, const Options& options);
Result<Exported> writeMarkdown(const plan::Plan& plan, const Options& options);

}  // namespace cleave::exchange
