#include "graph/graph.h"

#include "base/characters.h"
#include "graph/graph_builder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

/// The text form of a graph: one line per node, in order.
///
///   graph tiny
///   root TinyModel
///   scope fc Linear
///   tied fc.weight head.weight
///   frozen fc.bias
///   x: f32[2,8] = input
///   fc.weight: f32[16,8] = parameter @fc
///   linear_0: f32[2,16] = aten::linear(x, fc.weight, None) @fc #3
///   max_0: f32[2], max_1: i64[2] = aten::max.dim(linear_0, -1, false)
///   return y=linear_0
///
/// Arguments: value names, None, integers, reals (always with '.', 'e', inf or nan), true/false, "strings", lists in
/// [], dtypes as :f32, the run's device as `device`. Names with characters other than [A-Za-z0-9_./-] are in backticks.

namespace cleave::graph {
namespace {

bool isPlainNameChar(char c) { return isAsciiLetterOrDigit(c) || c == '_' || c == '.' || c == '-' || c == '/'; }

bool isKeyword(std::string_view word) {
  return word == "None" || word == "true" || word == "false" || word == "device" || word == "inf" || word == "nan";
}

std::string quotedName(const std::string& name) {
  const bool isPlain = !name.empty() && !isKeyword(name) && (isAsciiLetter(name[0]) || name[0] == '_') &&
                       std::ranges::all_of(name, isPlainNameChar);
  return isPlain ? name : '`' + name + '`';
}

std::string realText(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (std::isnan(value)) return "nan";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string stringText(const std::string& value) {
  std::string text = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

struct ArgumentText {
  const Graph& graph;
  std::string name(ValueId value) const { return value.isValid() ? quotedName(graph.value(value).name) : "None"; }
  template <class List, class Item>
  std::string list(const List& items, Item item) const {
    std::string text = "[";
    for (std::size_t i = 0; i < items.size(); ++i) text += (i ? ", " : "") + item(items[i]);
    return text + "]";
  }
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(ValueId value) const { return name(value); }
  std::string operator()(const ValueList& values) const {
    return list(values, [&](ValueId v) { return name(v); });
  }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return realText(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return stringText(value); }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return list(values, [](std::int64_t v) { return std::to_string(v); });
  }
  std::string operator()(const std::vector<double>& values) const { return list(values, realText); }
  std::string operator()(const std::vector<bool>& values) const {
    return list(values, [](bool v) { return std::string(v ? "true" : "false"); });
  }
  std::string operator()(DType dtype) const { return ":" + std::string(toText(dtype)); }
  std::string operator()(DeviceArgument) const { return "device"; }
};

void appendNode(std::string& text, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const Value& value = graph.value(node.results[i]);
    text += (i ? ", " : "") + quotedName(value.name) + ": " + toText(value.type);
  }
  text += " = ";
  switch (node.kind) {
    case NodeKind::Input: text += "input"; break;
    case NodeKind::Parameter: text += "parameter"; break;
    case NodeKind::Constant: text += "constant"; break;
    case NodeKind::Call:
      text += graph.opName(node) + "(";
      for (std::size_t i = 0; i < node.args.size(); ++i)
        text += (i ? ", " : "") + std::visit(ArgumentText{graph}, node.args[i]);
      text += ")";
      break;
  }
  if (node.scope.index() != 0) text += " @" + quotedName(graph.scope(node.scope).path);
  if (node.origin.isValid()) text += " #" + std::to_string(node.origin.index());
  text += '\n';
}

/// Recursive-descent reader of one line. Every error has the line and column.
class LineReader {
 public:
  LineReader(std::string_view line, int number) : m_line(line), m_number(number) {}

  template <class... Args>
  tl::unexpected<Error> error(fmt::format_string<Args...> text, Args&&... args) const {
    return fail(ErrorCode::BadInput, "Graph text, line {}, column {}: {}", m_number, m_at + 1,
                fmt::format(text, std::forward<Args>(args)...));
  }
  void skipSpace() {
    while (m_at < m_line.size() && (m_line[m_at] == ' ' || m_line[m_at] == '\t')) ++m_at;
  }
  bool atEnd() {
    skipSpace();
    return m_at >= m_line.size();
  }
  char peek() {
    skipSpace();
    return m_at < m_line.size() ? m_line[m_at] : '\0';
  }
  bool accept(std::string_view token) {
    skipSpace();
    if (m_line.substr(m_at, token.size()) != token) return false;
    m_at += token.size();
    return true;
  }
  Result<void> expect(std::string_view token) {
    if (!accept(token)) return error("expected \"{}\"", token);
    return {};
  }
  Result<std::string> name() {
    skipSpace();
    if (accept("`")) {
      const auto end = m_line.find('`', m_at);
      if (end == std::string_view::npos) return error("the closing backtick of a name is missing");
      std::string text(m_line.substr(m_at, end - m_at));
      m_at = end + 1;
      return text;
    }
    const std::size_t start = m_at;
    while (m_at < m_line.size() && isPlainNameChar(m_line[m_at])) ++m_at;
    if (m_at == start) return error("expected a name");
    return std::string(m_line.substr(start, m_at - start));
  }
  std::string_view wordUntil(std::string_view stops) {
    skipSpace();
    const std::size_t start = m_at;
    m_at = std::min(m_line.find_first_of(stops, m_at), m_line.size());
    return m_line.substr(start, m_at - start);
  }
  Result<TensorType> type() {
    TensorType type;
    const auto dtype = parseDType(wordUntil("["));
    if (!dtype) return error("expected a tensor type such as f32[2,8]");
    type.dtype = *dtype;
    CLEAVE_TRY_VOID(expect("["));
    while (!accept("]")) {
      CLEAVE_TRY(const std::int64_t size, integer(wordUntil(",] ")));
      type.shape.push_back(size);
      if (peek() != ']') CLEAVE_TRY_VOID(expect(","));
    }
    return type;
  }
  Result<std::int64_t> integer(std::string_view word) const {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size() || word.empty())
      return error("\"{}\" is not an integer", word);
    return value;
  }
  Result<std::string> string() {
    CLEAVE_TRY_VOID(expect("\""));
    std::string text;
    while (m_at < m_line.size() && m_line[m_at] != '"') {
      if (m_line[m_at] == '\\') ++m_at;
      if (m_at < m_line.size()) text += m_line[m_at++];
    }
    CLEAVE_TRY_VOID(expect("\""));
    return text;
  }

 private:
  std::string_view m_line;
  int m_number;
  std::size_t m_at = 0;
};

class GraphReader {
 public:
  Result<Graph> read(std::string_view text) {
    int number = 0;
    std::string graphName;
    while (!text.empty()) {
      const auto end = text.find('\n');
      LineReader line(text.substr(0, end), ++number);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.atEnd() || line.peek() == '%') continue;  // empty, or a comment
      CLEAVE_TRY_VOID(readLine(line));
    }
    return std::move(m_builder).finish();
  }

 private:
  Result<void> readLine(LineReader& line) {
    if (line.accept("graph ")) return readGraphName(line);
    if (line.accept("root ")) return readRoot(line);
    if (line.accept("scope ")) return readScope(line);
    if (line.accept("tied ")) return readTied(line);
    if (line.accept("frozen ")) return readFrozen(line);
    if (line.accept("return")) return readOutputs(line);
    return readNode(line);
  }

  Result<void> readGraphName(LineReader& line) {
    CLEAVE_TRY(const std::string name, line.name());
    if (m_anyNode) return line.error("the graph's name must come first");
    m_builder = GraphBuilder(name);
    return {};
  }

  Result<void> readRoot(LineReader& line) {
    CLEAVE_TRY(const std::string className, line.name());
    m_builder.scope("", className);
    return {};
  }

  Result<void> readScope(LineReader& line) {
    CLEAVE_TRY(const std::string path, line.name());
    std::string className;
    if (!line.atEnd()) {
      CLEAVE_TRY(className, line.name());
    }
    m_builder.scope(path, className);
    return {};
  }

  Result<void> readTied(LineReader& line) {
    CLEAVE_TRY(const std::string parameter, line.name());
    while (!line.atEnd()) {
      CLEAVE_TRY(const std::string other, line.name());
      m_builder.addTiedName(parameter, other);
    }
    return {};
  }

  Result<void> readFrozen(LineReader& line) {
    while (!line.atEnd()) {
      CLEAVE_TRY(const std::string parameter, line.name());
      m_builder.freeze(parameter);
    }
    return {};
  }

  Result<void> readOutputs(LineReader& line) {
    while (!line.atEnd()) {
      CLEAVE_TRY(const std::string name, line.name());
      CLEAVE_TRY_VOID(line.expect("="));
      CLEAVE_TRY(const ValueId value, valueNamed(line));
      m_builder.addOutput(name, value);
      line.accept(",");
    }
    return {};
  }

  Result<ValueId> valueNamed(LineReader& line) {
    CLEAVE_TRY(const std::string name, line.name());
    const auto found = m_values.find(name);
    if (found == m_values.end()) return line.error("value \"{}\" is not defined before this line", name);
    return found->second;
  }

  Result<void> readNode(LineReader& line) {
    m_anyNode = true;
    std::vector<std::string> names;
    std::vector<TensorType> types;
    do {
      CLEAVE_TRY(names.emplace_back(), line.name());
      CLEAVE_TRY_VOID(line.expect(":"));
      CLEAVE_TRY(types.emplace_back(), line.type());
    } while (line.accept(","));
    CLEAVE_TRY_VOID(line.expect("="));
    const std::string op(line.wordUntil("( @#"));
    std::vector<Argument> args;
    const bool isCall = op.find("::") != std::string::npos;
    if (isCall) {
      CLEAVE_TRY(args, arguments(line));
    }
    ScopeId scope(0);
    NodeId origin;
    if (line.accept("@")) {
      CLEAVE_TRY(const std::string path, line.name());
      scope = m_builder.scope(path);
    }
    if (line.accept("#")) {
      CLEAVE_TRY(const std::int64_t number, line.integer(line.wordUntil(" ")));
      origin = NodeId(static_cast<std::size_t>(number));
    }
    if (!line.atEnd()) return line.error("unexpected text at the end");
    std::vector<ValueId> results;
    if (isCall) {
      results = m_builder.addCall(op, std::move(args), std::move(types), scope, origin);
    } else if (op == "input") {
      results = {m_builder.addInput(names[0], types[0], origin)};
    } else if (op == "parameter") {
      results = {m_builder.addParameter(names[0], types[0], scope, origin)};
    } else if (op == "constant") {
      const std::size_t bytes = static_cast<std::size_t>(sizeInBytes(types[0]));
      results = {m_builder.addConstant(names[0], types[0], std::vector<std::byte>(bytes), scope, origin)};
    } else {
      return line.error("\"{}\" is not input, parameter, constant or an operator such as aten::add.Tensor", op);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!m_values.emplace(names[i], results[i]).second)
        return line.error("two values have the name \"{}\"", names[i]);
      m_builder.renameValue(results[i], names[i]);
    }
    return {};
  }

  Result<std::vector<Argument>> arguments(LineReader& line) {
    std::vector<Argument> args;
    CLEAVE_TRY_VOID(line.expect("("));
    while (!line.accept(")")) {
      CLEAVE_TRY(args.emplace_back(), argument(line));
      if (line.peek() != ')') CLEAVE_TRY_VOID(line.expect(","));
    }
    return args;
  }

  Result<Argument> argument(LineReader& line) {
    if (line.peek() == '"') {
      CLEAVE_TRY(std::string text, line.string());
      return Argument(std::move(text));
    }
    if (line.accept(":")) {
      const auto dtype = parseDType(line.wordUntil(",)] "));
      if (!dtype) return line.error("expected a dtype after ':'");
      return Argument(*dtype);
    }
    if (line.accept("[")) return listArgument(line);
    return scalarArgument(line);
  }

  Result<Argument> scalarArgument(LineReader& line) {
    const char first = line.peek();
    if (first == '`') {
      CLEAVE_TRY(const ValueId value, valueNamed(line));
      return Argument(value);
    }
    const std::string word(line.wordUntil(",)] "));
    if (word == "None") return Argument();
    if (word == "device") return Argument(DeviceArgument{});
    if (word == "true" || word == "false") return Argument(word == "true");
    if (isAsciiDigit(first) || first == '-' || word == "inf" || word == "nan") return number(line, word);
    const auto found = m_values.find(word);
    if (found == m_values.end()) return line.error("value \"{}\" is not defined before this line", word);
    return Argument(found->second);
  }

  Result<Argument> number(LineReader& line, const std::string& word) {
    if (word.find_first_of(".einf") == std::string::npos) {
      CLEAVE_TRY(const std::int64_t value, line.integer(word));
      return Argument(value);
    }
    double value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size()) return line.error("\"{}\" is not a number", word);
    return Argument(value);
  }

  Result<Argument> listArgument(LineReader& line) {
    std::vector<Argument> items;
    while (!line.accept("]")) {
      CLEAVE_TRY(items.emplace_back(), scalarArgument(line));
      if (line.peek() != ']') CLEAVE_TRY_VOID(line.expect(","));
    }
    const auto all = [&]<class T>(T) {
      for (const Argument& item : items) {
        if (!std::holds_alternative<T>(item)) return false;
      }
      return true;
    };
    const auto collect = [&]<class T>(std::vector<T> list) {
      for (const Argument& item : items) list.push_back(std::get<T>(item));
      return Argument(std::move(list));
    };
    if (all(std::int64_t{})) return collect(std::vector<std::int64_t>{});
    if (all(double{})) return collect(std::vector<double>{});
    if (all(bool{})) return collect(std::vector<bool>{});
    ValueList values;
    for (const Argument& item : items) {
      if (const auto* value = std::get_if<ValueId>(&item)) {
        values.push_back(*value);
      } else if (std::holds_alternative<std::monostate>(item)) {
        values.push_back(ValueId());
      } else {
        return line.error("the list has items of different kinds");
      }
    }
    return Argument(std::move(values));
  }

  GraphBuilder m_builder;
  std::unordered_map<std::string, ValueId> m_values;
  bool m_anyNode = false;
};

}  // namespace

std::string toText(const Graph& graph) {
  std::string text;
  if (!graph.name.empty()) text += "graph " + quotedName(graph.name) + '\n';
  if (!graph.scopes.empty() && !graph.scopes[0].className.empty())
    text += "root " + quotedName(graph.scopes[0].className) + '\n';
  for (std::size_t i = 1; i < graph.scopes.size(); ++i) {
    const Scope& scope = graph.scopes[i];
    text +=
        "scope " + quotedName(scope.path) + (scope.className.empty() ? "" : " " + quotedName(scope.className)) + '\n';
  }
  for (const Value& value : graph.values) {
    const auto tied = graph.tiedNames.find(value.name);
    if (tied == graph.tiedNames.end()) continue;
    text += "tied " + quotedName(value.name);
    for (const std::string& other : tied->second) text += ' ' + quotedName(other);
    text += '\n';
  }
  if (!graph.frozen.empty()) {
    text += "frozen";
    for (const Value& value : graph.values) {
      if (graph.frozen.contains(value.name)) text += ' ' + quotedName(value.name);
    }
    text += '\n';
  }
  for (NodeId id : idRange<NodeId>(graph.nodes.size())) appendNode(text, graph, id);
  if (!graph.outputs.empty()) {
    text += "return";
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      text += (i ? ", " : " ") + quotedName(graph.outputs[i].name) + "=" +
              quotedName(graph.value(graph.outputs[i].value).name);
    }
    text += '\n';
  }
  return text;
}

Result<Graph> parseGraph(std::string_view text) { return GraphReader().read(text); }

}  // namespace cleave::graph
