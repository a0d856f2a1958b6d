#pragma once
/// Archives of exported programs for tests: a zip writer, and a small program as JSON that tests can corrupt.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::test {

/// Writes uncompressed entries as PyTorch does: sizes after the bytes, alignment in the extra field. It shares no code
/// with the reader.
class ZipBuilder {
 public:
  struct Entry {
    std::string name, content;
    std::uint16_t flags = 0x0808, method = 0;
    std::string localName = {};  ///< in the entry's own header; empty: the same name
    std::int64_t claimed = -1;   ///< size in the directory; negative: the real size
    std::int64_t header = -1;    ///< header offset in the directory; negative: the real offset
  };

  ZipBuilder& add(std::string name, std::string content) {
    entries.push_back({std::move(name), std::move(content)});
    return *this;
  }
  std::string bytes() const {
    std::string file, directory;
    for (const Entry& entry : entries) {
      const std::string& local = entry.localName.empty() ? entry.name : entry.localName;
      const auto start = static_cast<std::int64_t>(file.size());
      const std::size_t padding = (64 - (file.size() + 34 + local.size()) % 64) % 64;
      number(file, 0x04034b50, 4), number(file, 0, 2), number(file, entry.flags, 2), number(file, entry.method, 2);
      number(file, 0, 16), number(file, local.size(), 2), number(file, padding + 4, 2);
      file += local;
      number(file, 0x4246, 2), number(file, padding, 2);
      file.append(padding, 'Z');
      file += entry.content;
      number(file, 0x08074b50, 4), number(file, 0, 4);
      number(file, entry.content.size(), 4), number(file, entry.content.size(), 4);
      const auto claimed = static_cast<std::uint64_t>(entry.claimed < 0 ? std::ssize(entry.content) : entry.claimed);
      number(directory, 0x02014b50, 4), number(directory, 0, 4), number(directory, entry.flags, 2);
      number(directory, entry.method, 2), number(directory, 0, 8), number(directory, claimed, 4);
      number(directory, claimed, 4), number(directory, entry.name.size(), 2), number(directory, 0, 12);
      number(directory, static_cast<std::uint64_t>(entry.header < 0 ? start : entry.header), 4);
      directory += entry.name;
    }
    const std::size_t start = file.size();
    file += directory;
    number(file, 0x06054b50, 4), number(file, 0, 4), number(file, entries.size(), 2), number(file, entries.size(), 2);
    number(file, directory.size(), 4), number(file, start, 4), number(file, 0, 2);
    return file;
  }

  std::vector<Entry> entries;

 private:
  static void number(std::string& to, std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) to += i < 8 ? static_cast<char>(value >> (8 * i) & 0xFF) : '\0';
  }
};

/// linear(x, fc.weight) of x f32[batch, 4] and fc.weight f32[3, 4]; `batch` is a symbol in a dynamic program.
struct TinyProgram {
  nlohmann::json program, weights;
  std::string weightBytes;

  static TinyProgram make(bool isDynamic = false) {
    using nlohmann::json;
    const auto fixed = [](std::int64_t size) { return json{{"as_int", size}}; };
    const json batch =
        isDynamic
            ? json{{"as_expr", {{"expr_str", "Symbol('s7', positive=True, integer=True)"}, {"hint", {{"as_int", 2}}}}}}
            : fixed(2);
    const auto tensor = [&](const json& rows, std::int64_t columns) {
      return json{{"dtype", 7},
                  {"sizes", {rows, fixed(columns)}},
                  {"requires_grad", false},
                  {"device", {{"type", "cpu"}, {"index", nullptr}}},
                  {"strides", {fixed(columns), fixed(1)}},
                  {"storage_offset", fixed(0)},
                  {"layout", 7}};
    };
    const auto named = [](const char* name) { return json{{"as_tensor", {{"name", name}}}}; };
    const json call = {{"target", "torch.ops.aten.linear.default"},
                       {"inputs",
                        {{{"name", "input"}, {"arg", named("x")}, {"kind", 1}},
                         {{"name", "weight"}, {"arg", named("p_w")}, {"kind", 1}}}},
                       {"outputs", {named("linear")}},
                       {"metadata",
                        {{"stack_trace", "File \"net.py\", line 7, in forward\n    return self.fc(x)"},
                         {"nn_module_stack", "L__self__,,net.Net;L__self___fc,fc,torch.nn.modules.linear.Linear"}}}};
    TinyProgram made;
    made.program = {
        {"graph_module",
         {{"graph",
           {{"inputs", {named("p_w"), named("x")}},
            {"outputs", {named("linear")}},
            {"nodes", {call}},
            {"tensor_values", {{"p_w", tensor(fixed(3), 4)}, {"x", tensor(batch, 4)}, {"linear", tensor(batch, 3)}}},
            {"sym_int_values", json::object()},
            {"sym_bool_values", json::object()}}},
          {"signature",
           {{"input_specs",
             {{{"parameter", {{"arg", {{"name", "p_w"}}}, {"parameter_name", "fc.weight"}}}},
              {{"user_input", {{"arg", named("x")}}}}}},
            {"output_specs", {{{"user_output", {{"arg", named("linear")}}}}}}}},
          {"module_call_graph", json::array()}}},
        {"opset_version", {{"aten", 10}}},
        {"range_constraints", isDynamic ? json{{"s7", {{"min_val", 2}, {"max_val", 64}}}} : json::object()},
        {"schema_version", {{"major", 8}, {"minor", 17}}},
        {"torch_version", "2.11.0"}};
    made.weights = {{"config",
                     {{"fc.weight",
                       {{"path_name", "weight_0"},
                        {"is_param", true},
                        {"use_pickle", false},
                        {"tensor_meta", tensor(fixed(3), 4)}}}}}};
    made.weightBytes.assign(3 * 4 * 4, '\0');
    return made;
  }

  nlohmann::json& graph() { return program["graph_module"]["graph"]; }
  nlohmann::json& signature() { return program["graph_module"]["signature"]; }
  nlohmann::json& call() { return graph()["nodes"][0]; }
  nlohmann::json& weight() { return weights["config"]["fc.weight"]; }

  ZipBuilder zip() const {
    ZipBuilder zip;
    zip.add("net/data/weights/weight_0", weightBytes);
    zip.add("net/data/weights/model_weights_config.json", weights.dump());
    zip.add("net/data/constants/model_constants_config.json", R"({"config":{}})");
    zip.add("net/models/model.json", program.dump());
    zip.add("net/byteorder", "little");
    return zip;
  }
  std::string bytes() const { return zip().bytes(); }
};

}  // namespace cleave::test
