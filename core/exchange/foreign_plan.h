#pragma once
/// Plans that other libraries are given: names of modules, and a style for each. Read, and turned into demands that a
/// solve takes.
///
///     CLEAVE_TRY(const ForeignPlan foreign, readForeignPlan("own.json"));
///     const ForeignDemands demands = demandsOf(foreign, *model->aten, "llama");
///     demands.problems;   // "`model.layers.*.self_attn.q_proj` is colwise, and ... expects it whole"
///     options.pins = demands.pins;
///
/// A file is one of: what `export --format tp-plan` or `dtensor-json` writes; a JSON object of names and styles, as
/// transformers' `model.tp_plan` or a config class's `base_model_tp_plan` is; a config.json with `base_model_tp_plan`
/// and `tp_plan`. Foreign input: bounded.
#include "plan/plan.h"
#include "solve/problem/pins.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::exchange {

/// What a style does to a layer.
enum class StyleKind : std::uint8_t {
  Column,
  ColumnGather,
  Row,
  RowSplitInput,
  Vocab,     ///< of an embedding
  InExpert,  ///< of a parameter or module of experts
  ByExpert,
  Whole,
  Helper,       ///< splits nothing by itself: gradients, modules around parameters
  SumGradient,  ///< of a module without a layer: its gradient is added up over the ranks
  Sum,          ///< of a module: its result is
  HelpsNoLayer  ///< a helper for modules that are no layers
};

struct ForeignEntry {
  std::string name;               ///< "model.layers.*.mlp.up_proj"; see `covers` for what it matches
  std::string style;              ///< as it stands there: "colwise"
  std::optional<StyleKind> kind;  ///< nullopt: this program does not know the style
  bool isBehindBase = false;      ///< of `base_model_tp_plan`: in front of the name may be any first part
};

enum class Library : std::uint8_t { Transformers, PyTorch };

struct ForeignPlan {
  std::string where;  ///< for sentences: the file
  Library library = Library::Transformers;
  std::optional<int> ranks;  ///< that it says it is for
  bool isBare = false;       ///< names and styles alone: a tp_plan, or a base_model_tp_plan
  bool isOwn = false;        ///< a model's own: of its config
  std::vector<ForeignEntry> entries;
};

/// BadInput says what is wrong with the file, and where.
Result<ForeignPlan> readForeignPlan(const std::filesystem::path& file);
/// The same of text; `where` names it in sentences.
Result<ForeignPlan> foreignPlanOf(std::string_view text, const std::string& where);
/// Of a model folder's config.json. BadInput where it has none, with what to type instead.
Result<ForeignPlan> ownPlan(const std::filesystem::path& folder);

struct ForeignDemands {
  std::vector<solve::Pin> pins;              ///< one a layer: what is not named is whole
  std::vector<std::string> redistributable;  ///< values that a row's layer takes its part of
  std::vector<std::string> problems;         ///< sentences: the library would refuse it, or compute something else
  std::vector<std::string> notes;            ///< sentences: what else the library makes of it
  std::size_t namedLayers = 0, layers = 0;   ///< with weights
};
/// The first of the problems, one a line, and how many there are behind them.
std::string problemsText(const ForeignDemands& demands, std::string_view separator = "\n");
ForeignDemands demandsOf(const ForeignPlan& foreign, const graph::Graph& graph, const std::string& modelType);

/// Where a plan that was made for these demands is not what the library would do: sentences.
std::vector<std::string> differencesOf(const plan::Plan& plan);

}  // namespace cleave::exchange
