#pragma once
/// Plans of other libraries: module names, and a style for each. They are read and converted to demands for a solve.
///
///     CLEAVE_TRY(const ForeignPlan foreign, readForeignPlan("own.json"));
///     const ForeignDemands demands = demandsOf(foreign, *model->aten, "llama");
///     demands.problems;   // "`model.layers.*.self_attn.q_proj` is colwise ..., but ... expects a replicated input"
///     options.pins = demands.pins;
///
/// A file is one of: the output of `export --format tp-plan` or `dtensor-json`; a JSON object of names and styles, like
/// transformers' `model.tp_plan` or a config class's `base_model_tp_plan`; a config.json with `base_model_tp_plan` and
/// `tp_plan`. The input is untrusted and bounded.
#include "plan/plan.h"
#include "solve/problem/pins.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::exchange {

/// Effect of a style on a layer.
enum class StyleKind : std::uint8_t {
  Column,
  ColumnGather,
  Row,
  RowSplitInput,
  Vocab,     ///< for an embedding
  InExpert,  ///< for a parameter or module of experts
  ByExpert,
  Whole,
  Helper,       ///< splits nothing itself: for gradients, or modules around parameters
  SumGradient,  ///< for a module without a layer: its gradient is summed over the ranks
  Sum,          ///< for a module: its result is summed
  HelpsNoLayer  ///< a helper only for modules that are not layers
};

struct ForeignEntry {
  std::string name;               ///< "model.layers.*.mlp.up_proj"; `covers` defines what it matches
  std::string style;              ///< as written in the plan: "colwise"
  std::optional<StyleKind> kind;  ///< nullopt: Cleave does not know the style
  bool isBelowBase = false;       ///< entry of `base_model_tp_plan`: any first part may precede the name
};

enum class Library : std::uint8_t { Transformers, PyTorch };

struct ForeignPlan {
  std::string where;  ///< name of the file, for messages
  Library library = Library::Transformers;
  std::optional<int> ranks;  ///< number of ranks the plan declares
  bool isBare = false;       ///< only names and styles: a tp_plan, or a base_model_tp_plan
  bool isOwn = false;        ///< the model's own plan, from its config
  std::vector<ForeignEntry> entries;
};

/// BadInput names the file, the place and the error.
Result<ForeignPlan> readForeignPlan(const std::filesystem::path& file);
/// The same for a text; `where` names it in messages.
Result<ForeignPlan> foreignPlanOf(std::string_view text, const std::string& where);
/// The plan in a model folder's config.json. If it has no plan, BadInput says how to get one.
Result<ForeignPlan> ownPlan(const std::filesystem::path& folder);

struct ForeignDemands {
  std::vector<solve::Pin> pins;              ///< one per layer: layers that are not listed are replicated
  std::vector<std::string> redistributable;  ///< values that a row-split layer takes its part of
  std::vector<std::string> problems;         ///< sentences: reasons why the library would reject the plan, or compute
                                             ///< something else
  std::vector<std::string> notes;            ///< sentences: other differences in the library
  std::size_t namedLayers = 0, layers = 0;   ///< number of layers with weights
};
/// The first problems, one per line, and the number of the others.
std::string problemsText(const ForeignDemands& demands, std::string_view separator = "\n");
ForeignDemands demandsOf(const ForeignPlan& foreign, const graph::Graph& graph, const std::string& modelType);

/// Sentences about where a plan made for these demands differs from the library's behaviour.
std::vector<std::string> differencesOf(const plan::Plan& plan);

}  // namespace cleave::exchange
