#include "base/json_writer.h"
#include "base/quantities.h"
#include "exchange/dtensor_check.h"
#include "exchange/formats.h"
#include "exchange/modules.h"
#include "exchange/notes.h"
#include "exchange/stacks.h"
#include "exchange/styles.h"
#include "plan/block_names.h"

#include <fmt/ranges.h>

#include <algorithm>

// clang-format off
/// PyTorch's `parallelize_module`, as a Python file that imports torch alone, and the same as JSON:
///
///   {"schema": "cleave.dtensor/1", "model", "mesh": {"tp": 2},
///    "modules": [{"name", "style", "input_layouts", "output_layouts", "use_local_output"}],
///    "loss_parallel": [module], "sum_gradients": [module], "tied": [[parameter, parameter]], "notes": [...]}
///
/// Names are matched by fnmatch, part by part; modules that are not named stay whole. `loss_parallel`: modules whose
/// result may stay parts, for torch.distributed.tensor.parallel.loss_parallel. `sum_gradients`: modules that ranks have
/// whole and use on their own heads. `sequence`, where ranks have parts of it: {"cut": module, "gather": [module]},
/// which read their part from the one on, and all positions. Styles of the name Conv1D… stand in the Python file.
///
/// Source: PyTorch 2.11, torch/distributed/tensor/parallel/{api,style,loss}.py.
// clang-format on

namespace cleave::exchange {
namespace {

constexpr std::string_view kConv1D = R"(
class _Conv1DParallel(ParallelStyle):
    """transformers' Conv1D, whose weight lies [in, out]."""

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
    """Each rank uses these modules on its own heads: their gradients are the sum over the ranks."""

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
    """What these modules read is placed otherwise: their first argument, or hidden_states."""

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
  std::string_view name, input, output;  ///< class, layouts in Python's words
};

/// Nullopt: the module is not named.
std::optional<Style> styleOf(const Layer& layer, Form form, bool saysSequence) {
  const bool gathers = saysSequence && layer.readsSequence, scatters = saysSequence && layer.writesSequence;
  const bool isConv1D = layer.isTransposed;
  const std::string_view column = isConv1D ? "Conv1DColwise" : "ColwiseParallel",
                         row = isConv1D ? "Conv1DRowwise" : "RowwiseParallel";
  switch (form) {
    case Form::Column: return Style{column, "Replicate()", "Shard(-1)"};
    // The one layer that gathers positions itself: no module around it does.
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

/// What both forms of this format say.
struct DtensorPlan {
  std::vector<Module> modules;
  std::vector<Module> lossParallel;
  std::vector<std::pair<std::string, std::string>> tied;  ///< parameters
  std::string cut;                    ///< module from which on each rank has its part of the positions; empty: none
  std::vector<std::string> gathered;  ///< modules that read all positions
  std::vector<std::string> summed;    ///< modules whose gradients ranks add up
  std::vector<Note> notes;
  bool hasConv1D = false;
  bool isForInference = false;  ///< gradients are not those of the model
};

/// One weight that two modules have, each of which `parallelize_module` makes a parameter of its own.
void addTied(DtensorPlan& made, const LayerTable& table, const Styled& styled) {
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (table.layers[i].weight != table.layers[j].weight || styled.forms[i] == Form::Whole) continue;
      made.tied.emplace_back(moduleName(table.modelType, table.layers[i].name) + ".weight",
                             moduleName(table.modelType, table.layers[j].name) + ".weight");
    }
  }
}

/// Modules that every rank has whole and uses on its part alone: norms of heads.
void addSummed(DtensorPlan& made, const LayerTable& table, const Styled& styled) {
  Said said;
  for (std::size_t i = 0; i < table.regions.size(); ++i) {
    if (!styled.isSpoken[i]) continue;
    for (const std::string& module : table.regions[i].replicatedModules) {
      const auto isLayer = [&](const Layer& layer) { return layer.name == module; };
      if (std::none_of(table.layers.begin(), table.layers.end(), isLayer)) said.emplace_back(module, "sum");
    }
  }
  for (const auto& [name, what] : foldedByNumber(said)) made.summed.push_back(name);
}

/// "model.layers.0.self_attn" of its layers' names.
std::string blockOf(const std::string& name) { return name.substr(0, name.rfind('.')); }

/// Whether the modules of transformers can be told of the sequence: what lies between a column that gathers and a row
/// that scatters is a module of its own (self_attn, mlp), and between those lie norms alone. What embeddings give stays
/// whole up to the first block: masks and positions are made from it.
bool saysSequence(const LayerTable& table, const Styled& styled) {
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

/// What else is placed otherwise where ranks have parts of the sequence.
void addSequence(DtensorPlan& made, const LayerTable& table, Said& said) {
  Said gathered;
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
  Vocabulary vocabulary{.library = "parallelize_module", .saysTransposed = true, .saysUneven = true};
  const bool hasSequence = vocabulary.saysSequence = saysSequence(table, styledLayers(table, vocabulary));
  Styled styled = styledLayers(table, vocabulary);
  DtensorPlan made;
  std::map<std::string, Style> styleByCall{{std::string(kNorm), {"SequenceParallel", {}, {}}}};
  Said said;
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
                         "transformers makes masks and positions from what they give",
                         "it is whole on every rank, and cut in front of the first block"});
  made.notes = foldedNotes(made.notes, table);
  for (const auto& [name, call] : foldedByNumber(said)) {
    if (!call.empty()) made.modules.push_back({name, styleByCall.at(call)});
  }
  return made;
}

std::string title(const plan::Plan& plan) {
  return fmt::format("{} on {}", plan.model.architecture.empty() ? "A model" : plan.model.architecture,
                     counted(plan.ranks, "rank"));
}

/// Text in a docstring cannot end it.
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

/// The inputs of the plan's call, by name: {"input_ids": ("int64", [2, 16])}.
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
  std::string text = fmt::format("\"\"\"{}, split by PyTorch's parallelize_module as a plan of Cleave has it.\n\n",
                                 inDocstring(title(plan)));
  text += fmt::format("    parallelize(model, torch.distributed.device_mesh.init_device_mesh(\"cuda\", ({},)))\n",
                      plan.ranks);
  if (!made.notes.empty()) text += "\nWhat this cannot say of the plan:\n\n";
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
      "    \"\"\"Splits the module. check calls it before and after, with example, (args, kwargs), or random inputs,\n"
      "    and raises ValueError if the results differ.";
  text +=
      hasLoss
          ? "\n\n    With loss_parallel logits stay parts, as DTensors: compute the loss within loss_parallel().\n    "
          : "";
  text += "\"\"\"\n";
  text += fmt::format(
      "    if mesh.size() != {}:\n        raise ValueError(f\"This plan is for {}, but the mesh has "
      "{{mesh.size()}}.\")\n",
      plan.ranks, counted(plan.ranks, "rank"));
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
    text += fmt::format("    model.{} = model.{}  # they are tied\n", later, earlier);
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
  json.key("tp").value(plan.ranks);
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
