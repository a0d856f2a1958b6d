#include "base/json.h"
#include "base/quantities.h"
#include "pipeline/source/describe_model.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::pipeline {
namespace {

constexpr std::size_t kLabelWidth = 14;

std::string line(std::string_view label, std::string_view text) {
  return fmt::format("  {:<{}} {}\n", label, kLabelWidth, text);
}

/// A table with aligned columns: kind, elements, bytes, percentage.
std::string tableOf(std::string_view title, const std::vector<ParameterCount>& counts, const ParameterCount& all) {
  std::size_t width = 0, digits = std::to_string(all.elements).size();
  for (const ParameterCount& count : counts) width = std::max(width, count.kind.size());
  std::string text;
  for (const ParameterCount& count : counts) {
    const double percent =
        all.bytes == 0 ? 0 : 100.0 * static_cast<double>(count.bytes) / static_cast<double>(all.bytes);
    text += line(text.empty() ? title : "", fmt::format("{:<{}}  {:>{}}  {:>9}  {:5.1f} %", count.kind, width,
                                                        count.elements, digits, bytesText(count.bytes), percent));
  }
  return text;
}

nlohmann::ordered_json jsonOf(const std::vector<ParameterCount>& counts, std::string_view key) {
  auto list = nlohmann::ordered_json::array();
  for (const ParameterCount& count : counts) {
    list.push_back({{std::string(key), count.kind},
                    {"tensors", count.tensors},
                    {"parameters", count.elements},
                    {"bytes", count.bytes}});
  }
  return list;
}

template <class Value>
nlohmann::ordered_json jsonOf(const std::vector<std::pair<std::string, Value>>& pairs) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [key, value] : pairs) object[key] = value;
  return object;
}

}  // namespace

std::string toText(const ModelDescription& made) {
  const ParameterCount all = made.all();
  std::string text = made.info.source + '\n';
  text += line("architecture", fmt::format("{} ({}), {}", made.info.architecture, made.info.modelType, made.task));
  text += line("computes in", graph::toText(made.info.dtype));
  if (!made.info.quantization.empty()) text += line("quantized", made.info.quantization);
  for (const auto& [name, size] : made.sizes) text += line(name, size);
  text += line("parameters",
               fmt::format("{} in {}, {}", all.elements, counted(all.tensors, "tensor"), bytesText(all.bytes)));
  text += tableOf("by module", made.byModule, all) + tableOf("by dtype", made.byDtype, all);
  if (made.files.empty()) text += line("weights", "none");
  for (const auto& [file, bytes] : made.files) text += line("weights", fmt::format("{} ({})", file, bytesText(bytes)));
  for (const auto& [other, parameter] : made.tied) text += line("tied", fmt::format("{} = {}", other, parameter));
  text += line("graph",
               fmt::format("{} captured, {} after decomposition to core ATen",
                           counted(static_cast<std::int64_t>(made.capturedOperators), "operator"), made.atenOperators));
  for (const auto& [input, shape] : made.inputs) text += line("input", input + ' ' + shape);
  for (const auto& [what, answer] : made.supported) text += line(what, answer);
  if (!made.ignoredKeys.empty()) {
    text += line("ignored", fmt::format("{}: {} models do not read {}", fmt::join(made.ignoredKeys, ", "),
                                        made.info.modelType, made.ignoredKeys.size() == 1 ? "it" : "them"));
  }
  return text;
}

std::string toJson(const ModelDescription& made) {
  const ParameterCount all = made.all();
  nlohmann::ordered_json json;
  json["schema"] = "cleave.info/1";
  json["source"] = made.info.source;
  json["architecture"] = made.info.architecture;
  json["model_type"] = made.info.modelType;
  json["task"] = made.task;
  json["dtype"] = graph::toText(made.info.dtype);
  json["quantization"] =
      made.info.quantization.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(made.info.quantization);
  json["sizes"] = jsonOf(made.sizes);
  json["parameters"] = all.elements;
  json["tensors"] = all.tensors;
  json["bytes"] = all.bytes;
  json["by_module"] = jsonOf(made.byModule, "module");
  json["by_dtype"] = jsonOf(made.byDtype, "dtype");
  json["weights"] = jsonOf(made.files);
  json["tied"] = jsonOf(made.tied);
  json["operators"] = {{"captured", made.capturedOperators}, {"aten", made.atenOperators}};
  json["inputs"] = jsonOf(made.inputs);
  json["supported"] = jsonOf(made.supported);
  json["ignored_keys"] = made.ignoredKeys;
  return jsonText(json, 1);
}

}  // namespace cleave::pipeline
