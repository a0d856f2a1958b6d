#include "rules/rule_text.h"

#include "base/characters.h"
#include "base/checked.h"
#include "graph/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cleave::rules {

namespace {

using graph::Argument;
using graph::TensorType;
using graph::ValueId;
using graph::ValueList;

bool isLetter(char c) { return c >= 'a' && c <= 'z'; }
bool isWordChar(char c) { return isAsciiLetterOrDigit(c) || c == '_' || c == ':' || c == '.'; }

class CallParser {
 public:
  CallParser(std::string_view text, const std::map<char, std::int64_t>& sizes) : m_text(text), m_sizes(sizes) {}

  Result<CallText> parse() {
    m_call.op = std::string(word());
    if (m_call.op.empty()) return expected("an operator such as aten::add.Tensor");
    if (!take('(')) return expected("'('");
    while (!take(')')) {
      if (!m_call.args.empty() && !take(',')) return expected("',' or ')'");
      CLEAVE_TRY(Argument argument, parseArgument(kMostNesting));
      m_call.args.push_back(std::move(argument));
    }
    if (acceptText("->")) {
      do {
        CLEAVE_TRY(TensorType type, parseType());
        m_call.results.push_back(std::move(type));
      } while (take(','));
    }
    if (take('@')) {
      CLEAVE_TRY(const std::int64_t ranks, parseSum());
      if (ranks < 1 || ranks > 1 << 20) return expected("a number of ranks");
      m_call.ranks = static_cast<int>(ranks);
    }
    skipSpaces();
    if (m_at != m_text.size()) return expected("the end");
    return std::move(m_call);
  }

 private:
  static constexpr int kMostNesting = 2;

  tl::unexpected<Error> expected(std::string_view what) const {
    return fail(ErrorCode::BadUsage, "\"{}\": expected {} at \"{}\"", m_text, what,
                m_text.substr(std::min(m_at, m_text.size()), 20));
  }
  void skipSpaces() {
    while (m_at < m_text.size() && m_text[m_at] == ' ') ++m_at;
  }
  char peek() {
    skipSpaces();
    return m_at < m_text.size() ? m_text[m_at] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++m_at;
    return true;
  }
  bool acceptText(std::string_view text) {
    skipSpaces();
    if (!m_text.substr(m_at).starts_with(text)) return false;
    m_at += text.size();
    return true;
  }
  std::string_view word() {
    skipSpaces();
    std::size_t end = m_at;
    while (end < m_text.size() && isWordChar(m_text[end])) ++end;
    const auto out = m_text.substr(m_at, end - m_at);
    m_at = end;
    return out;
  }
  std::string_view peekWord() {
    const std::size_t at = m_at;
    const auto out = word();
    m_at = at;
    return out;
  }

  Result<std::int64_t> parseFactor() {
    if (take('-')) {
      CLEAVE_TRY(const std::int64_t value, parseFactor());
      return -value;
    }
    const char c = peek();
    if (isLetter(c)) {
      const auto bound = m_sizes.find(c);
      if (bound == m_sizes.end()) return expected("a number (the letter has no size)");
      ++m_at;
      return bound->second;
    }
    std::int64_t value = 0;
    const char* begin = m_text.data() + m_at;
    const auto [end, error] = std::from_chars(begin, m_text.data() + m_text.size(), value);
    if (error != std::errc()) return expected("a number");
    m_at += static_cast<std::size_t>(end - begin);
    return value;
  }
  Result<std::int64_t> parseProduct() {
    CLEAVE_TRY(std::int64_t value, parseFactor());
    while (take('*')) {
      CLEAVE_TRY(const std::int64_t factor, parseFactor());
      const auto next = checkedMul(value, factor);
      if (!next) return expected("a smaller number");
      value = *next;
    }
    return value;
  }
  Result<std::int64_t> parseSum() {
    CLEAVE_TRY(std::int64_t value, parseProduct());
    while (peek() == '+' || (peek() == '-' && !m_text.substr(m_at).starts_with("->"))) {
      const bool isPlus = take('+') || !take('-');
      CLEAVE_TRY(const std::int64_t term, parseProduct());
      const auto next = checkedAdd(value, isPlus ? term : -term);
      if (!next) return expected("a smaller number");
      value = *next;
    }
    return value;
  }

  Result<TensorType> parseType() {
    const auto dtype = graph::parseDType(word());
    if (!dtype || !take('[')) return expected("a tensor such as f32[2,8]");
    TensorType type{*dtype, {}};
    while (!take(']')) {
      if (!type.shape.empty() && !take(',')) return expected("',' or ']'");
      CLEAVE_TRY(const std::int64_t size, parseSum());
      if (size < 0) return expected("a size of at least 0");
      type.shape.push_back(size);
    }
    return type;
  }

  Result<ValueId> parseTensor() {
    CLEAVE_TRY(TensorType type, parseType());
    OperandText operand{std::move(type), {}, {}};
    skipSpaces();
    if (peek() == 'S' || peek() == 'R') {
      const std::size_t length = peek() == 'R' ? 1 : m_text.substr(m_at).find(')') + 1;
      const auto placement = length == 0 ? std::nullopt : Placement::parse(m_text.substr(m_at, length));
      if (!placement) return expected("a placement such as S(1)");
      operand.placement = *placement;
      m_at += length;
    }
    if (take('<')) {
      CLEAVE_TRY(const std::int64_t below, parseSum());
      if (!take('>')) return expected("'>'");
      operand.valuesBelow = below;
    }
    m_call.operands.push_back(std::move(operand));
    return ValueId(m_call.operands.size() - 1);
  }

  bool isTensorNext() {
    const auto next = peekWord();
    return graph::parseDType(next).has_value() && m_text.substr(m_at + next.size()).starts_with("[");
  }

  Result<Argument> parseArgument(int nesting) {
    const char c = peek();
    if (c == '[') return parseList(nesting - 1);
    if (c == '"') return parseQuoted();
    if (c == ':') {
      ++m_at;
      const auto dtype = graph::parseDType(word());
      if (!dtype) return expected("a dtype");
      return Argument(*dtype);
    }
    if (isTensorNext()) {
      CLEAVE_TRY(const ValueId value, parseTensor());
      return Argument(value);
    }
    if (acceptKeyword("None")) return Argument();
    if (acceptKeyword("true")) return Argument(true);
    if (acceptKeyword("false")) return Argument(false);
    if (acceptKeyword("device")) return Argument(graph::DeviceArgument());
    if (acceptText("-inf")) return Argument(-HUGE_VAL);
    if (auto real = acceptReal()) return Argument(*real);
    CLEAVE_TRY(const std::int64_t value, parseSum());
    return Argument(value);
  }

  bool acceptKeyword(std::string_view keyword) {
    if (peekWord() != keyword) return false;
    word();
    return true;
  }

  std::optional<double> acceptReal() {
    skipSpaces();
    std::size_t end = m_at;
    const auto isPart = [&](char ch) {
      return isAsciiDigit(ch) || ch == '.' || ch == 'e' ||
             ((ch == '-' || ch == '+') && (end == m_at || m_text[end - 1] == 'e'));
    };
    while (end < m_text.size() && isPart(m_text[end])) ++end;
    const auto text = m_text.substr(m_at, end - m_at);
    const bool isReal = text.find('.') != text.npos || (text.find('e') != text.npos && text.front() != 'e');
    if (!isReal) return acceptKeyword("inf") ? std::optional(HUGE_VAL) : std::nullopt;
    double value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
    m_at = end;
    return value;
  }

  Result<Argument> parseQuoted() {
    const std::size_t end = m_text.find('"', m_at + 1);
    if (end == m_text.npos) return expected("a closing quote");
    std::string text(m_text.substr(m_at + 1, end - m_at - 1));
    m_at = end + 1;
    return Argument(std::move(text));
  }

  Result<Argument> parseList(int nesting) {
    if (nesting < 1) return expected("a flat list");
    take('[');
    std::vector<Argument> items;
    while (!take(']')) {
      if (!items.empty() && !take(',')) return expected("',' or ']'");
      CLEAVE_TRY(Argument item, parseArgument(1));
      items.push_back(std::move(item));
    }
    const auto isTensor = [](const Argument& a) {
      return std::holds_alternative<ValueId>(a) || std::holds_alternative<std::monostate>(a);
    };
    if (!items.empty() && std::all_of(items.begin(), items.end(), isTensor)) {
      ValueList list;
      for (const Argument& item : items) {
        list.push_back(std::holds_alternative<ValueId>(item) ? std::get<ValueId>(item) : ValueId());
      }
      return Argument(std::move(list));
    }
    return homogeneous(items);
  }

  template <class T>
  static std::optional<Argument> listOf(const std::vector<Argument>& items) {
    std::vector<T> list;
    for (const Argument& item : items) {
      const auto* value = std::get_if<T>(&item);
      if (value == nullptr) return std::nullopt;
      list.push_back(*value);
    }
    return Argument(std::move(list));
  }
  Result<Argument> homogeneous(const std::vector<Argument>& items) const {
    if (auto list = listOf<std::int64_t>(items)) return *std::move(list);
    if (auto list = listOf<double>(items)) return *std::move(list);
    if (auto list = listOf<bool>(items)) return *std::move(list);
    return expected("a list of one kind");
  }

  std::string_view m_text;
  const std::map<char, std::int64_t>& m_sizes;
  std::size_t m_at = 0;
  CallText m_call;
};

std::string listText(const std::vector<std::string>& items) { return fmt::format("[{}]", fmt::join(items, ", ")); }

std::string operandText(const OperandText& operand) {
  std::string out = graph::toText(operand.type);
  if (operand.placement.isSplit()) out += " " + operand.placement.text();
  if (operand.valuesBelow) out += fmt::format(" <{}>", *operand.valuesBelow);
  return out;
}

std::string realText(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

struct ArgumentWriter {
  const CallText& call;
  std::string tensor(ValueId value) const {
    return value.isValid() ? operandText(call.operands[value.index()]) : "None";
  }
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(ValueId value) const { return tensor(value); }
  std::string operator()(const ValueList& values) const {
    std::vector<std::string> items;
    for (const ValueId value : values) items.push_back(tensor(value));
    return listText(items);
  }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return realText(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return '"' + value + '"'; }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
  std::string operator()(const std::vector<double>& values) const {
    std::vector<std::string> items;
    for (const double value : values) items.push_back(realText(value));
    return listText(items);
  }
  std::string operator()(const std::vector<bool>& values) const {
    std::vector<std::string> items;
    for (const bool value : values) items.push_back(value ? "true" : "false");
    return listText(items);
  }
  std::string operator()(graph::DType dtype) const { return ":" + std::string(graph::toText(dtype)); }
  std::string operator()(graph::DeviceArgument) const { return "device"; }
};

}  // namespace

Result<CallText> parseCall(std::string_view text, const std::map<char, std::int64_t>& sizes) {
  return CallParser(text, sizes).parse();
}

std::string sizeLetters(std::string_view text) {
  std::string out;
  const auto open = text.find('(');
  bool isQuoted = false;
  for (std::size_t i = open == text.npos ? text.size() : open; i < text.size(); ++i) {
    if (text[i] == '"') isQuoted = !isQuoted;
    const bool isAlone =
        isLetter(text[i]) && !isWordChar(text[i - 1]) && (i + 1 == text.size() || !isWordChar(text[i + 1]));
    if (isAlone && !isQuoted && out.find(text[i]) == out.npos) out += text[i];
  }
  return out;
}

std::string toText(const CallText& call) {
  std::vector<std::string> args, results;
  for (const Argument& argument : call.args) args.push_back(std::visit(ArgumentWriter{call}, argument));
  for (const TensorType& type : call.results) results.push_back(graph::toText(type));
  std::string out = fmt::format("{}({})", call.op, fmt::join(args, ", "));
  if (!results.empty()) out += fmt::format(" -> {}", fmt::join(results, ", "));
  if (call.ranks > 0) out += fmt::format(" @{}", call.ranks);
  return out;
}

Result<graph::Graph> oneNodeGraph(const CallText& call) {
  graph::GraphBuilder builder("rule");
  for (std::size_t i = 0; i < call.operands.size(); ++i) builder.addInput(fmt::format("x{}", i), call.operands[i].type);
  builder.addCall(call.op, call.args, call.results);
  return std::move(builder).finish();
}

std::string toText(const Verdict& verdict) {
  if (const auto* conflict = std::get_if<Conflict>(&verdict)) return "conflict: " + conflict->reason;
  std::vector<std::string> claims;
  for (const Claim& claim : std::get<std::vector<Claim>>(verdict)) {
    std::vector<std::string> results;
    for (const Placement& placement : claim.results) results.push_back(placement.text());
    claims.push_back(results.size() == 1 ? results.front() : fmt::format("({})", fmt::join(results, ", ")));
  }
  return fmt::format("{}", fmt::join(claims, " | "));
}

}  // namespace cleave::rules
