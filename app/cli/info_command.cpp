#include "cli/commands.h"
#include "cli/console.h"

#include "base/quantities.h"
#include "pipeline/open.h"

#include <nlohmann/json.hpp>

#include <map>

namespace cleave::cli {
namespace {

std::string configValue(const formats::ModelFolder& folder, const char* key) {
  if (!folder.config || !folder.config->contains(key)) return "";
  const nlohmann::json& value = (*folder.config)[key];
  return value.is_null() ? "" : value.dump();
}

std::string describeModel(const pipeline::Model& model) {
  std::string text =
      fmt::format("{}\n  architecture   {} ({})\n", model.info.source, model.info.architecture, model.info.modelType);
  for (const auto& [key, label] : {std::pair{"num_hidden_layers", "layers"},
                                   {"hidden_size", "hidden size"},
                                   {"num_attention_heads", "heads"},
                                   {"num_key_value_heads", "KV heads"},
                                   {"intermediate_size", "MLP size"},
                                   {"vocab_size", "vocabulary"}}) {
    if (const std::string value = configValue(model.folder, key); !value.empty())
      text += fmt::format("  {:<14} {}\n", label, value);
  }
  std::int64_t parameters = 0, elements = 0, bytes = 0, calls = 0;
  for (const graph::Node& node : model.aten->nodes) {
    if (node.kind == graph::NodeKind::Call) ++calls;
    if (node.kind != graph::NodeKind::Parameter) continue;
    const graph::TensorType& type = model.aten->value(node.results[0]).type;
    ++parameters;
    elements += graph::elementCount(type.shape);
    bytes += graph::sizeInBytes(type);
  }
  text += fmt::format("  parameters     {} in {}, {} as {}\n", elements, counted(parameters, "tensor"),
                      bytesText(bytes), graph::toText(model.info.dtype));
  std::map<std::string, std::int64_t> files;
  for (const auto& [name, tensor] : model.folder.tensors) files[tensor.file] += tensor.bytes;
  if (files.empty()) text += "  weights        none: the model can be planned, and run with --skip-weights\n";
  for (const auto& [file, size] : files) text += fmt::format("  weights        {} ({})\n", file, bytesText(size));
  for (const auto& [parameter, others] : model.aten->tiedNames) {
    for (const std::string& other : others) text += fmt::format("  tied           {} = {}\n", other, parameter);
  }
  return text + fmt::format("  graph          {} captured, {} after decomposition to core ATen\n",
                            counted(std::ssize(model.captured->nodes), "operator"), calls);
}

}  // namespace

void addInfoCommand(CLI::App& app, Chosen& chosen) {
  auto source = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("info", "Say what a model is, without solving anything");
  command->add_option("MODEL", *source, "Model folder or config.json")->required();
  command->callback([source, &chosen] {
    const auto model = pipeline::openModel(*source, {}, consoleProgress());
    endProgress();
    if (!model) {
      chosen.exitCode = report(model.error());
      return;
    }
    const auto written = writeOutput("-", describeModel(**model));
    chosen.exitCode = written ? 0 : report(written.error());
  });
}

}  // namespace cleave::cli
