#include "base/json_writer.h"
#include "base/quantities.h"
#include "exchange/dtensor_check.h"
#include "exchange/formats.h"
#include "exchange/modules.h"
#include "exchange/notes.h"
#include "exchange/stacks.h"
#include "exchange/styles.h"
#include "plan/text/block_names.h"

#include <fmt/ranges.h>

#include <algorithm>

// clang-format off
/// Writes PyTorch's `parallelize_module` call as a Python file that imports only torch, and the same as JSON:
///
///   {"schema": "cleave.dtensor/1", "model", "mesh": {"tp": 2},
///    "modules": [{"name", "style", "input_layouts", "output_layouts", "use_local_output"}],
///    "loss_parallel": [module], "sum_gradients": [module], "tied": [[parameter, parameter]], "notes": [...]}
///
/// Names are matched by fnmatch, part by part; modules that are not listed stay replicated. `loss_parallel`: modules
/// whose result may stay split, for torch.distributed.tensor.parallel.loss_parallel. `sum_gradients`: replicated
/// modules that each rank uses on its own heads. `sequence` if the sequence is split: {"cut": module, "gather":
/// [module]}; each rank has its part from the `cut` module on, and `gather` modules read all positions. Styles named
/// Conv1D… are defined in the Python file.
///
/// Source: PyTorch 2.11, torch/distributed/tensor/parallel/{api,style,loss}.py.
// clang-format on

namespace cleave::exchange {
namespace {

constexpr std::string_view kConv1D = R"(
class _Conv1DParallel(ParallelStyle):
    """transformers' Conv1D, whose weight is [in, out]."""

    def __init__(self, weight, bias, desired_input, *, input_layouts, output_layouts):
        super().__init__()
        self.weight, self.bias, self.desired_input = weight, bias, desired_input
        self.input_layouts, self.output_layouts = input_layouts, output_layouts

    def _partition(self, name, module, mesh):
        for name, placement in (("weight", self.weight), ("bias", self.bias)):
            parameter = getattr(module, name)
            module.register_parameter(name, nn.Parameter(distribute_tensor(parameter, mesh, [placement]),
                                                         requires_grad=parameter.requires_grad))

    def _input(self, module, inputs, mesh):
        x = DTensor.from_local(inputs[0], mesh, [self.input_layouts], run_check=False)
        return x.redistribute(placements=[self.desired_input])

    def _output(self, module, output, mesh):
        return output.redistribute(placements=[self.output_layouts]).to_local()

    def _apply(self, module, mesh):
        return distribute_module(module, mesh, self._partition, self._input, self._output)


def Conv1DColwise(*, input_layouts=Replicate(), output_layouts=Shard(-1)):
    return _Conv1DParallel(Shard(1), Shard(0), Replicate(), input_layouts=input_layouts, output_layouts=output_layouts)


def Conv1DRowwise(*, input_layouts=Shard(-1), output_layouts=Replicate()):
    return _Conv1DParallel(Shard(0), Replicate(), Shard(-1), input_layouts=input_layouts, output_layouts=output_layouts)

)";

constexpr std::string_view kSumGradients = R"(
def _sum_gradients(model, mesh, pattern):
    """Sums the gradients of modules that each rank uses on its own heads."""

    def add_up(gradient):
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient, group=mesh.get_group())
        return gradient

    for name, module in model.named_modules():
        if fnmatch.fnmatchcase(name, pattern):
            for parameter in module.parameters(recurse=False):
                parameter.register_hook(add_up)

)";

constexpr std::string_view kSequence = R"(
def _redistribute_input(model, mesh, pattern, source, target):
    """Redistributes the input of these modules: their first argument, or hidden_states."""

    def placed(x):
        return DTensor.from_local(x, mesh, [source], run_check=False).redistribute(placements=[target]).to_local()

    def hook(module, args, kwargs):
        if args:
            return (placed(args[0]), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": placed(kwargs["hidden_states"])}

    for name, module in model.named_modules():
        if fnmatch.fnmatchcase(name, pattern):
            module.register_forward_pre_hook(hook, with_kwargs=True)

)";

struct Style {
  std::string_view name, input, output;  ///< class and layouts in PyTorch's terms
};

/// nullopt: the module is not listed.
std::optional<Style> styleOf(const Layer& layer, Form form, bool supportsSequence) {
  const bool gathers = supportsSequence && layer.readsSequence, scatters = supportsSequence && layer.writesSequence;
  const bool isConv1D = layer.isTransposed;
  const std::string_view column = isConv1D ? "Conv1DColwise" : "ColwiseParallel",
                         row = isConv1D ? "Conv1DRowwise" : "RowwiseParallel";
  switch (form) {
    case Form::Column: return Style{column, "Replicate()", "Shard(-1)"};
    // The only layer that gathers positions itself, because no module around it does.
    case Form::ColumnGather: return Style{column, gathers ? "Shard(1)" : "Replicate()", "Replicate()"};
    case Form::Row: return Style{row, "Shard(-1)", scatters ? "Shard(1)" : "Replicate()"};
    case Form::RowSplitInput:
    case Form::Vocab: return Style{row, "Replicate()", "Replicate()"};
    case Form::Whole:
    case Form::InExpert:
    case Form::ByExpert: return std::nullopt;
  }
  return std::nullopt;
}

constexpr std::string_view kNorm = "SequenceParallel(use_local_output=True)";

std::string callOf(const Style& style) {
  if (style.input.empty()) return std::string(kNorm);
  return fmt::format("{}(input_layouts={}, output_layouts={})", style.name, style.input, style.output);
}

struct Module {
  std::string name;
  Style style;
};

/// Content that both forms of this format share.
struct DtensorPlan {
  std::vector<Module> modules;
  std::vector<Module> lossParallel;
  std::vector<std::pair<std::string, std::string>> tied;  ///< parameters
  std::string cut;                    ///< module from which each rank has its part of the positions; empty: the
                                      ///< sequence is not split
  std::vector<std::string> gathered;  ///< modules that read all positions
  std::vector<std::string> summed;    ///< modules whose gradients are summed over the ranks
  std::vector<Note> notes;
  bool hasConv1D = false;
  bool isForInference = false;  ///< the gradients differ from the model's
};

/// A weight that two modules share. `parallelize_module` gives each module a parameter of its own.
void addTied(DtensorPlan& made, const LayerTable& table, const Styled& styled) {
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (table.layers[i].weight != table.layers[j].weight || styled.forms[i] == Form::Whole) continue;
      made.tied.emplace_back(moduleName(table.modelType, table.layers[i].name) + ".weight",
                             moduleName(table.modelType, table.layers[j].name) + ".weight");
    }
  }
}

/// Replicated modules that each rank uses only on its part: norms of heads.
void addSummed(DtensorPlan& made, const LayerTable& table, const Styled& styled) {
  NamedStyles said;
  for (std::size_t i = 0; i < table.regions.size(); ++i) {
    if (!styled.isExpressible[i]) continue;
    for (const std::string& module : table.regions[i].replicatedModules) {
      const auto isLayer = [&](const Layer& layer) { return layer.name == module; };
      if (std::none_of(table.layers.begin(), table.layers.end(), isLayer)) said.emplace_back(module, "sum");
    }
  }
  for (const auto& [name, what] : foldedByNumber(said)) made.summed.push_back(name);
}

/// "model.layers.0.self_attn", from its layers' names.
std::string blockOf(const std::string& name) { return name.substr(0, name.rfind('.')); }

/// True if transformers' modules support the split sequence: each gathering column and scattering row belong to one
/// module (self_attn, mlp), and only norms are between those modules. Embeddings stay replicated up to the first block,
/// because masks and positions are made from them.
bool supportsSequence(const LayerTable& table, const Styled& styled) {
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    const Layer& layer = table.layers[i];
    if (layer.isTransposed || layer.kind == graph::LayerKind::Experts) return false;
    if (layer.kind == graph::LayerKind::Embedding || layer.isHead) continue;
    if (!layer.readsSequence && !layer.writesSequence) continue;
    const Form form = styled.forms[i];
    const bool isModules = blockOf(plan::foldIndex(layer.name).first).find("#.") != std::string::npos;
    const bool isPair = (layer.strategy == rules::Strategy::RowScatter && form == Form::Row) ||
                        (layer.strategy == rules::Strategy::GatherColumn && form == Form::Column);
    if (!isPair || !isModules) return false;
  }
  return table.usesSequence && whyNoHeads(table.modelType).empty();
}

/// Other placements that differ when the sequence is split.
void addSequence(DtensorPlan& made, const LayerTable& table, NamedStyles& said) {
  NamedStyles gathered;
  for (const Layer& layer : table.layers) {
    if (layer.kind == graph::LayerKind::Embedding || layer.isHead || !layer.readsSequence) continue;
    const std::string block = moduleName(table.modelType, blockOf(layer.name));
    if (made.cut.empty()) made.cut = blockOf(block);
    if (std::find(gathered.begin(), gathered.end(), std::pair(block, std::string("gather"))) == gathered.end())
      gathered.emplace_back(block, "gather");
  }
  for (const auto& [name, what] : foldedByNumber(gathered)) made.gathered.push_back(name);
  for (const std::string& module : table.sequenceModules) said.emplace_back(module, std::string(kNorm));
}

Result<DtensorPlan> dtensorPlan(const plan::Plan& plan) {
  const LayerTable table = layerTable(plan);
  CLEAVE_TRY_VOID(checkNames(table));
  Vocabulary vocabulary{.library = "parallelize_module", .supportsTransposed = true, .supportsUneven = true};
  const bool hasSequence = vocabulary.supportsSequence = supportsSequence(table, styledLayers(table, vocabulary));
  Styled styled = styledLayers(table, vocabulary);
  DtensorPlan made;
  std::map<std::string, Style> styleByCall{{std::string(kNorm), {"SequenceParallel", {}, {}}}};
  NamedStyles said;
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    const Layer& layer = table.layers[i];
    const auto style = styleOf(layer, styled.forms[i], hasSequence);
    if (style) styleByCall.emplace(callOf(*style), *style);
    said.emplace_back(moduleName(table.modelType, layer.name), style ? callOf(*style) : std::string());
    if (style && layer.isTransposed) made.hasConv1D = true;
    if (layer.output && table.regions[*layer.output].reachesLoss && styled.forms[i] == Form::ColumnGather)
      made.lossParallel.push_back({moduleName(table.modelType, layer.name), *style});
  }
  if (hasSequence) addSequence(made, table, said);
  made.notes = std::move(styled.notes);
  addTied(made, table, styled);
  addSummed(made, table, styled);
  made.isForInference = !whyNoTraining(table.modelType).empty();
  if (std::string why = whyNoTraining(table.modelType); !why.empty())
    addNote(made.notes, {{}, "training", std::move(why), "this is for inference"});
  if (hasSequence)
    addNote(made.notes, {{},
                         "embeddings",
                         "transformers makes masks and positions from its output",
                         "it is replicated, and split before the first block"});
  made.notes = foldedNotes(made.notes, table);
  for (const auto& [name, call] : foldedByNumber(said)) {
    if (!call.empty()) made.modules.push_back({name, styleByCall.at(call)});
  }
  return made;
}

std::string title(const plan::Plan& plan) {
  return fmt::format("{} on {}", plan.model.architecture.empty() ? "A model" : plan.model.architecture,
                     counted(plan.spec.ranks, "rank"));
}

/// Escapes text so that it cannot end a docstring.
std::string inDocstring(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\\', '/');
  return text;
}

std::string importsOf(const DtensorPlan& made) {
  const bool hasSequence = !made.cut.empty();
  std::vector<std::string_view> tensors{"Replicate", "Shard"}, styles{"ColwiseParallel", "RowwiseParallel"};
  if (made.hasConv1D || hasSequence) tensors.insert(tensors.begin(), "DTensor");
  if (made.hasConv1D) {
    tensors.insert(tensors.end(), {"distribute_module", "distribute_tensor"});
    styles.insert(styles.begin() + 1, "ParallelStyle");
  }
  if (hasSequence) styles.emplace_back("SequenceParallel");
  styles.emplace_back("parallelize_module");
  std::string text;
  if (!made.summed.empty() || hasSequence) text += "import fnmatch\n";
  text += "import inspect\n\nimport torch\nimport torch.distributed as dist\n";
  if (made.hasConv1D) text += "from torch import nn\n";
  return text + fmt::format(
                    "from torch.distributed.tensor import {}\nfrom torch.distributed.tensor.parallel import {}\n"
                    "from torch.overrides import TorchFunctionMode\nfrom torch.utils._pytree import tree_leaves\n\n",
                    fmt::join(tensors, ", "), fmt::join(styles, ", "));
}

/// The inputs of the plan's call by name: {"input_ids": ("int64", [2, 16])}.
std::string inputsOf(const plan::Plan& plan) {
  std::string text = "_INPUTS = {\n";
  for (const graph::Node& node : plan.graph->nodes) {
    if (node.kind != graph::NodeKind::Input) continue;
    const graph::Value& value = plan.graph->value(node.results[0]);
    text += fmt::format("    {}: (\"{}\", [{}]),\n", quotedText(value.name), graph::torchName(value.type.dtype),
                        fmt::join(value.type.shape, ", "));
  }
  return text + "}\n";
}

std::string pythonOf(const plan::Plan& plan, const DtensorPlan& made) {
  std::string text = fmt::format("\"\"\"{}, split by PyTorch's parallelize_module according to a plan of Cleave.\n\n",
                                 inDocstring(title(plan)));
  text += fmt::format("    parallelize(model, torch.distributed.device_mesh.init_device_mesh(\"cuda\", ({},)))\n",
                      plan.spec.ranks);
  if (!made.notes.empty()) text += "\nThis file cannot express:\n\n";
  for (const Note& note : made.notes) text += fmt::format("- {}\n", inDocstring(toText(note)));
  text += "\"\"\"\n";
  text += importsOf(made);
  if (made.hasConv1D) text += kConv1D;
  if (!made.summed.empty()) text += kSumGradients;
  if (!made.cut.empty()) text += kSequence;
  const bool hasLoss = !made.lossParallel.empty();
  text += "\n" + inputsOf(plan) + "\n" + std::string(kDtensorCheck);
  text += fmt::format("\ndef parallelize(model, mesh{}, check=True, example=None):\n",
                      hasLoss ? ", loss_parallel=False" : "");
  text +=
      "    \"\"\"Splits the module. With check, the module is called before and after with example (args, kwargs), "
      "or with\n    random inputs, and ValueError is raised if the results differ.";
  text += hasLoss ? "\n\n    With loss_parallel the logits stay split, as DTensors: compute the loss within "
                    "loss_parallel().\n    "
                  : "";
  text += "\"\"\"\n";
  text += fmt::format(
      "    if mesh.size() != {}:\n        raise ValueError(f\"This plan is for {}, but the mesh has "
      "{{mesh.size()}}.\")\n",
      plan.spec.ranks, counted(plan.spec.ranks, "rank"));
  text += fmt::format(
      "    gradients = {}\n"
      "    check = check{} and not any(p.is_meta for p in model.parameters())\n"
      "    whole = _call_before(model, mesh, example, gradients) if check else None\n",
      made.isForInference ? "False" : "True", hasLoss ? " and not loss_parallel" : "");
  text += "    styles = {\n";
  for (const Module& module : made.modules)
    text += fmt::format("        \"{}\": {},\n", module.name, callOf(module.style));
  text += "    }\n";
  if (hasLoss) text += "    if loss_parallel:\n";
  for (const auto& [name, style] : made.lossParallel) {
    text += fmt::format(
        "        styles[\"{}\"] = ColwiseParallel(input_layouts={}, output_layouts=Shard(-1), "
        "use_local_output=False)\n",
        name, style.input);
  }
  text += "    tied = _tied(model)\n    parallelize_module(model, mesh, styles)\n";
  if (!made.cut.empty())
    text += fmt::format("    _redistribute_input(model, mesh, \"{}\", Replicate(), Shard(1))\n", made.cut);
  for (const std::string& name : made.gathered)
    text += fmt::format("    _redistribute_input(model, mesh, \"{}\", Shard(1), Replicate())\n", name);
  for (const std::string& name : made.summed) text += fmt::format("    _sum_gradients(model, mesh, \"{}\")\n", name);
  for (const auto& [later, earlier] : made.tied) {
    text += fmt::format("    model.{} = model.{}  # tied weights\n", later, earlier);
  }
  text += "    _tie_again(model, tied)\n";
  return text +
         "    if check:\n        _compare_after(model, whole, gradients)\n"
         "    return model\n";
}

}  // namespace

Result<Exported> writeDtensor(const plan::Plan& plan, const Options&) {
  CLEAVE_TRY(const DtensorPlan made, dtensorPlan(plan));
  return Exported{pythonOf(plan, made), sentences(made.notes)};
}

Result<Exported> writeDtensorJson(const plan::Plan& plan, const Options&) {
  CLEAVE_TRY(const DtensorPlan made, dtensorPlan(plan));
  JsonWriter json;
  json.beginObject();
  json.key("schema").value("cleave.dtensor/1");
  json.key("model").value(plan.model.architecture);
  json.key("mesh").beginObject();
  json.key("tp").value(plan.spec.ranks);
  json.endObject();
  json.key("modules").beginArray();
  for (const Module& module : made.modules) {
    json.beginObject();
    json.key("name").value(module.name);
    json.key("style").value(module.style.input.empty() ? "SequenceParallel" : module.style.name);
    if (!module.style.input.empty()) {
      json.key("input_layouts").value(module.style.input);
      json.key("output_layouts").value(module.style.output);
    }
    json.key("use_local_output").value(true);
    json.endObject();
  }
  json.endArray();
  json.key("loss_parallel").beginArray();
  for (const Module& module : made.lossParallel) json.value(module.name);
  json.endArray();
  if (!made.cut.empty()) {
    json.key("sequence").beginObject();
    json.key("cut").value(made.cut);
    json.key("gather").beginArray();
    for (const std::string& name : made.gathered) json.value(name);
    json.endArray();
    json.endObject();
  }
  json.key("sum_gradients").beginArray();
  for (const std::string& name : made.summed) json.value(name);
  json.endArray();
  json.key("tied").beginArray();
  for (const auto& [later, earlier] : made.tied) {
    json.beginArray();
    json.value(later);
    json.value(earlier);
    json.endArray();
  }
  json.endArray();
  writeNotes(json, made.notes);
  json.endObject();
  return Exported{std::move(json).take(), sentences(made.notes)};
}

}  // namespace cleave::exchange
