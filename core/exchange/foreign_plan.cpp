#include "exchange/foreign_plan.h"

#include "base/json.h"
#include "launch/shell_word.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

/// Style names in transformers 4 and 5 (distributed/tensor_parallel.py, integrations/tensor_parallel.py,
/// distributed/expert_parallel.py), and PyTorch's classes.

namespace cleave::exchange {
namespace {

constexpr std::size_t kMostEntries = 5000;
constexpr JsonLimits kLimits{.bytes = 4 << 20, .depth = 16, .elements = 200'000};

struct NamedStyle {
  std::string_view name;
  StyleKind kind;
};
constexpr std::array kStyles{
    NamedStyle{"colwise", StyleKind::Column},
    NamedStyle{"local_colwise", StyleKind::Column},
    NamedStyle{"colwise_rep", StyleKind::ColumnGather},
    NamedStyle{"colwise_gather_output", StyleKind::ColumnGather},
    NamedStyle{"rowwise", StyleKind::Row},
    NamedStyle{"local_rowwise", StyleKind::Row},
    NamedStyle{"rowwise_rep", StyleKind::RowSplitInput},
    NamedStyle{"rowwise_split_input", StyleKind::RowSplitInput},
    NamedStyle{"embedding_rowwise", StyleKind::Vocab},
    NamedStyle{"vocab_parallel_rowwise", StyleKind::Vocab},
    NamedStyle{"packed_colwise", StyleKind::InExpert},
    NamedStyle{"packed_rowwise", StyleKind::InExpert},
    NamedStyle{"local_packed_rowwise", StyleKind::InExpert},
    NamedStyle{"moe_tp_experts", StyleKind::InExpert},
    NamedStyle{"grouped_gemm", StyleKind::ByExpert},
    NamedStyle{"ep_dispatch_experts", StyleKind::ByExpert},
    NamedStyle{"replicate", StyleKind::Whole},
    NamedStyle{"replicated_with_grad_allreduce", StyleKind::SumGradient},
    NamedStyle{"sequence_parallel", StyleKind::HelpsNoLayer},
    NamedStyle{"all_reduce", StyleKind::Sum},
    NamedStyle{"gather", StyleKind::Helper},
    NamedStyle{"local", StyleKind::Helper},
    NamedStyle{"local_params", StyleKind::Helper},
    NamedStyle{"mla_kv_a_proj", StyleKind::Helper},
    NamedStyle{"moe_identity_expert", StyleKind::HelpsNoLayer},
    NamedStyle{"ep_router", StyleKind::Helper},
};

std::optional<StyleKind> kindOf(std::string_view style) {
  const auto found = std::find_if(kStyles.begin(), kStyles.end(), [&](const auto& s) { return s.name == style; });
  return found == kStyles.end() ? std::nullopt : std::optional(found->kind);
}

/// PyTorch's classes, and those in the Python file that `export` writes.
std::optional<StyleKind> kindOf(std::string_view style, std::string_view input, std::string_view output) {
  const bool wholeIn = input == "Replicate()", wholeOut = output == "Replicate()", partOut = output == "Shard(-1)";
  if (style == "ColwiseParallel" || style == "Conv1DColwise") {
    if (!wholeIn) return std::nullopt;
    return partOut    ? std::optional(StyleKind::Column)
           : wholeOut ? std::optional(StyleKind::ColumnGather)
                      : std::nullopt;
  }
  if (style == "RowwiseParallel" || style == "Conv1DRowwise") {
    if (!wholeOut) return std::nullopt;
    return input == "Shard(-1)" ? std::optional(StyleKind::Row)
           : wholeIn            ? std::optional(StyleKind::RowSplitInput)
                                : std::nullopt;
  }
  if (style == "SequenceParallel" || style == "PrepareModuleInput" || style == "PrepareModuleOutput")
    return StyleKind::Helper;
  return std::nullopt;
}

/// Names of an object, each with a style.
Result<void> addStyles(ForeignPlan& plan, const nlohmann::json& styles, const std::string& where,
                       bool areBelowBase = false) {
  if (!styles.is_object())
    return fail(ErrorCode::BadInput, "{} must be an object, but it is {}.", where, describe(styles));
  for (const auto& [name, style] : styles.items()) {
    if (!style.is_string()) {
      return fail(ErrorCode::BadInput, "{}: the style of {} must be a text, but it is {}.", where, quotedText(name),
                  describe(style));
    }
    const std::string text = style.get<std::string>();
    plan.entries.push_back({name, text, kindOf(text), areBelowBase});
  }
  return {};
}

Result<std::optional<int>> ranksOf(const JsonObject& fields, std::string_view key) {
  constexpr std::int64_t kMostRanks = 4096;
  CLEAVE_TRY(const auto ranks, fields.optionalInteger(key, {.min = 1, .max = kMostRanks}));
  return ranks ? std::optional(static_cast<int>(*ranks)) : std::nullopt;
}

Result<ForeignPlan> dtensorPlan(const JsonObject& fields, std::string where) {
  ForeignPlan plan{.where = std::move(where), .library = Library::PyTorch};
  CLEAVE_TRY(const JsonObject mesh, fields.object("mesh"));
  CLEAVE_TRY(plan.ranks, ranksOf(mesh, "tp"));
  CLEAVE_TRY(const JsonArray modules, fields.array("modules"));
  for (std::size_t i = 0; i < modules.size(); ++i) {
    CLEAVE_TRY(const JsonObject module, modules.object(i));
    CLEAVE_TRY(std::string name, module.text("name"));
    CLEAVE_TRY(const std::string style, module.text("style"));
    // If not given, PyTorch's defaults apply.
    const bool isColumn = style == "ColwiseParallel", isRow = style == "RowwiseParallel";
    CLEAVE_TRY(const std::string input, module.text("input_layouts", isRow ? "Shard(-1)" : "Replicate()"));
    CLEAVE_TRY(const std::string output, module.text("output_layouts", isColumn ? "Shard(-1)" : "Replicate()"));
    plan.entries.push_back(
        {std::move(name), fmt::format("{}({} to {})", style, input, output), kindOf(style, input, output)});
  }
  return plan;
}

/// Makes the model on the meta device, without memory for its weights.
constexpr std::string_view kPrintsOwnPlan =
    "import json, sys, torch, transformers as t; c = t.AutoConfig.from_pretrained(sys.argv[1]); "
    "torch.set_default_device('meta'); print(json.dumps(getattr(t, c.architectures[0])(c).tp_plan))";

Result<ForeignPlan> stylesPlan(const JsonObject& fields, const std::string& where) {
  ForeignPlan plan{.where = where};
  CLEAVE_TRY(plan.ranks, ranksOf(fields, "tp_size"));
  bool isDocument = false;
  for (const std::string_view key : {"base_model_tp_plan", "tp_plan", "ep_plan"}) {
    const nlohmann::json* styles = fields.find(key);
    if (!styles) continue;
    isDocument = true;
    CLEAVE_TRY_VOID(addStyles(plan, *styles, fmt::format("{}: {}", where, key), key == "base_model_tp_plan"));
  }
  plan.isBare = !isDocument;
  if (plan.isBare) CLEAVE_TRY_VOID(addStyles(plan, fields.json(), where));
  return plan;
}

Result<ForeignPlan> planOf(const nlohmann::json& json, const std::string& where) {
  CLEAVE_TRY(const JsonObject fields, JsonObject::of(json, where));
  CLEAVE_TRY(const std::string schema, fields.text("schema", ""));
  const bool isDtensor = schema == "cleave.dtensor/1";
  if (!schema.empty() && !isDtensor) {
    return fail(ErrorCode::BadInput,
                "{} has schema {}, so it is not a plan of transformers or PyTorch. Give the output of `export "
                "--format tp-plan` or `dtensor-json`, or an object of names and styles.",
                where, quotedText(schema));
  }
  CLEAVE_TRY(ForeignPlan plan, isDtensor ? dtensorPlan(fields, where) : stylesPlan(fields, where));
  // The export of a plan that splits nothing has no names either.
  const bool isDocument = isDtensor || fields.has("tp_plan") || fields.has("base_model_tp_plan");
  if (plan.entries.empty() && !isDocument)
    return fail(ErrorCode::BadInput, "{} lists no module: it is the plan of a model that stays replicated.", where);
  if (plan.entries.size() > kMostEntries) {
    return fail(ErrorCode::BadInput, "{} lists {} modules; the limit is {}.", where, plan.entries.size(), kMostEntries);
  }
  return plan;
}

}  // namespace

Result<ForeignPlan> readForeignPlan(const std::filesystem::path& file) {
  CLEAVE_TRY(const std::string text, readTextFile(file, kLimits.bytes));
  return foreignPlanOf(text, file.string());
}

Result<ForeignPlan> foreignPlanOf(std::string_view text, const std::string& where) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(text, where, kLimits));
  return planOf(json, where);
}

Result<ForeignPlan> ownPlan(const std::filesystem::path& folder) {
  const std::filesystem::path file = std::filesystem::is_directory(folder) ? folder / "config.json" : folder;
  CLEAVE_TRY(const nlohmann::json json, readJsonFile(file, kLimits));
  CLEAVE_TRY(const JsonObject fields, JsonObject::of(json, file.string()));
  if (!fields.has("base_model_tp_plan") && !fields.has("tp_plan")) {
    return fail(ErrorCode::BadInput,
                "{} has no base_model_tp_plan and no tp_plan, because transformers keeps them in its code. Write the "
                "plan to a file for --tp-plan: python -c \"{}\" {} > own.json",
                file.string(), kPrintsOwnPlan, shellWord(folder.string()));
  }
  CLEAVE_TRY(ForeignPlan plan, planOf(json, file.string()));
  plan.isOwn = true;
  return plan;
}

}  // namespace cleave::exchange
