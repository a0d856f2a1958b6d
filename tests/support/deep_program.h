#pragma once
/// An exported program of any depth, without weights, for tests and benchmarks. It repeats the only layer of an archive
/// with other names.
///
///     DeepProgram(CLEAVE_TEST_DATA "/torch-versions/tiny-2.11.0.pt2").bytes(80);
#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/zip_archive.h"
#include "tests/support/exported_archive.h"
#include "tests/support/need.h"

namespace cleave::test {

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

class DeepProgram {
  using json = nlohmann::json;

 public:
  explicit DeepProgram(const std::string& archive) : m_zip(need(formats::ZipArchive::open(archive))) {
    for (const formats::ZipEntry& entry : m_zip.entries()) {
      if (entry.name.ends_with("/models/model.json")) m_program = parsed(entry);
      if (entry.name.ends_with("weights_config.json")) m_weights = parsed(entry);
      if (entry.name.ends_with("constants_config.json")) m_constants = parsed(entry);
    }
  }

  /// `namesModules`: calls name their modules.
  std::string bytes(int layers, bool namesModules = true) {
    json& graph = m_program["graph_module"]["graph"];
    splitNodes(graph["nodes"]);
    json nodes = json::array();
    for (const json& node : m_before) nodes.push_back(node);
    for (const json& node : m_layer) nodes.push_back(node);
    std::string last = m_output;
    for (int layer = 1; layer < layers; ++layer) {
      for (const json& node : m_layer) nodes.push_back(renamed(node, layer, last));
      last = nameIn(layer, m_output);
    }
    for (const json& node : m_after) nodes.push_back(json::parse(quotedReplaced(node.dump(), m_output, last)));
    if (!namesModules)
      for (json& node : nodes) node["metadata"].erase("nn_module_stack");
    graph["nodes"] = nodes;
    graph["outputs"] = json::parse(quotedReplaced(graph["outputs"].dump(), m_output, last));
    json& outputs = m_program["graph_module"]["signature"]["output_specs"];
    outputs = json::parse(quotedReplaced(outputs.dump(), m_output, last));
    addParameters(graph, layers);
    ZipBuilder zip;
    for (auto* config : {&m_weights, &m_constants})
      for (auto& [name, payload] : (*config)["config"].items()) payload["path_name"] = "empty";
    zip.add("deep/data/weights/empty", "").add("deep/data/constants/empty", "");
    zip.add("deep/data/weights/model_weights_config.json", m_weights.dump());
    zip.add("deep/data/constants/model_constants_config.json", m_constants.dump());
    zip.add("deep/models/model.json", m_program.dump());
    return zip.bytes();
  }

 private:
  json parsed(const formats::ZipEntry& entry) { return json::parse(need(m_zip.text(entry, 1 << 24))); }
  static bool isOfLayer(const json& node, const char* layer) {
    return node["metadata"].value("nn_module_stack", "").find(layer) != std::string::npos;
  }
  static std::string quotedReplaced(const std::string& text, const std::string& from, const std::string& to) {
    return replaced(text, "\"" + from + "\"", "\"" + to + "\"");
  }
  std::string nameIn(int layer, const std::string& name) const { return name + "_of_" + std::to_string(layer); }

  void splitNodes(const json& nodes) {
    for (const json& node : nodes) {
      const bool isLayer = isOfLayer(node, "layers.0");
      (isLayer ? m_layer : m_layer.empty() ? m_before : m_after).push_back(node);
    }
    m_input = m_before.back()["outputs"][0]["as_tensor"]["name"];
    m_output = m_layer.back()["outputs"][0]["as_tensor"]["name"];
    const auto add = [&](const json& tensor) { m_own.push_back(tensor["name"]); };
    for (const json& node : m_layer) {
      for (const json& output : node["outputs"]) {
        if (output.contains("as_tensor")) add(output["as_tensor"]);
        if (output.contains("as_tensors")) std::for_each(output["as_tensors"].begin(), output["as_tensors"].end(), add);
      }
    }
  }
  json renamed(const json& node, int layer, const std::string& input) const {
    std::string text = node.dump();
    for (const std::string& name : m_own)
      if (text.find("\"" + name + "\"") != std::string::npos) text = quotedReplaced(text, name, nameIn(layer, name));
    text = quotedReplaced(text, m_input, input);  // must come last, because the input is the previous layer's result
    text = replaced(text, "layers_0_", "layers_" + std::to_string(layer) + "_");
    return json::parse(replaced(text, "layers.0", "layers." + std::to_string(layer)));
  }
  void addParameters(json& graph, int layers) {
    json& specs = m_program["graph_module"]["signature"]["input_specs"];
    const json oldSpecs = specs;
    for (const json& spec : oldSpecs) {
      const char* kind = spec.contains("parameter") ? "parameter" : "buffer";
      if (!spec.contains(kind)) continue;
      const std::string own = spec[kind][kind + std::string("_name")], graphName = spec[kind]["arg"]["name"];
      if (own.find("layers.0.") == std::string::npos) continue;
      for (int layer = 1; layer < layers; ++layer) {
        const auto numbered = [&](const std::string& text) {
          return replaced(replaced(text, "layers.0.", "layers." + std::to_string(layer) + "."), "layers_0_",
                          "layers_" + std::to_string(layer) + "_");
        };
        specs.push_back(json::parse(numbered(spec.dump())));
        graph["inputs"].push_back({{"as_tensor", {{"name", numbered(graphName)}}}});
        graph["tensor_values"][numbered(graphName)] = graph["tensor_values"][graphName];
        for (json* config : {&m_weights, &m_constants})
          if ((*config)["config"].contains(own)) (*config)["config"][numbered(own)] = (*config)["config"][own];
      }
    }
  }

  formats::ZipArchive m_zip;
  json m_program, m_weights, m_constants;
  std::vector<json> m_before, m_layer, m_after;
  std::vector<std::string> m_own;
  std::string m_input, m_output;
};

}  // namespace cleave::test
