#include "base/json.h"

#include "base/quantities.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cleave {
namespace {

constexpr std::size_t kQuotedBytes = 60;

constexpr std::size_t kShownItems = 16;

using nlohmann::json;

/// The limit that the text exceeds, as the end of a sentence; empty: it is within the limits. Exact for valid JSON,
/// which is what costs memory.
std::string beyondLimits(std::string_view text, const JsonLimits& limits) {
  std::int64_t elements = 1;
  int depth = 0;
  bool isOpened = false;  // the previous token opened a list or an object
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
    const bool isClosing = c == ']' || c == '}';
    elements += c == ',' || (isOpened && !isClosing);
    isOpened = c == '[' || c == '{';
    depth += isOpened ? 1 : isClosing ? -1 : 0;
    if (depth > limits.depth) return fmt::format("is nested deeper than {} levels", limits.depth);
    if (elements > limits.elements) return fmt::format("holds more than {} values", limits.elements);
    if (c != '"') continue;
    for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
  }
  return {};
}

/// nlohmann's message without its own prefix and without the last token, which may be long or not UTF-8.
std::string reasonOf(std::string_view what) {
  if (what.starts_with('[')) what.remove_prefix(std::min(what.find("] "), what.size() - 2) + 2);
  if (const auto start = what.find("syntax error"); start != std::string_view::npos) what.remove_prefix(start);
  return std::string(what.substr(0, what.find("; last read")));
}

/// Builds the value from nlohmann's SAX events and stops at the first error. The parser is iterative, so depth costs no
/// stack.
class Builder {
 public:
  Builder(std::string_view text, std::string_view where, const JsonLimits& limits)
      : m_text(text), m_where(where), m_limits(limits) {}

  bool null() { return add(json(nullptr)); }
  bool boolean(bool value) { return add(json(value)); }
  bool number_integer(std::int64_t value) { return add(json(value)); }
  bool number_unsigned(std::uint64_t value) { return add(json(value)); }
  bool number_float(double value, const std::string& raw) {
    // The lexer delivers integers beyond 64 bits as floating point numbers.
    const bool isInteger = raw.find_first_of(".eE") == std::string::npos;
    if (!isInteger || m_limits.allowsWideIntegers) return add(json(value));
    return stop(fmt::format("has the integer {}{}, which does not fit 64 bits", raw.substr(0, kQuotedBytes),
                            raw.size() > kQuotedBytes ? "..." : ""));
  }
  bool string(std::string& value) { return add(json(std::move(value))); }
  bool binary(json::binary_t&) { return stop("holds binary data"); }

  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Frame& frame = m_frames.back();
    const auto [member, isNew] = frame.value->get_ref<json::object_t&>().try_emplace(std::move(name));
    frame.key = &member->first;
    frame.slot = &member->second;
    return isNew || stop(fmt::format("has the key {} twice", quotedText(path())));
  }

  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow)
      return stop(fmt::format("has the number {}, which is too large", quotedText(token)));
    const std::string_view read = m_text.substr(0, position);
    const std::size_t line = 1 + static_cast<std::size_t>(std::count(read.begin(), read.end(), '\n'));
    const std::size_t lineStart = read.rfind('\n');
    const std::size_t column = lineStart == std::string_view::npos ? read.size() : read.size() - lineStart - 1;
    const std::string_view none = notANumber(position);
    return stop(fmt::format("is not valid JSON at line {}, column {}: {}", line, column,
                            none.empty() ? reasonOf(error.what())
                                         : fmt::format("{} is {}, for which JSON has no number", nextValue(), none)));
  }

  Result<json> take() {
    if (!m_failure.empty()) return fail(ErrorCode::BadInput, "{} {}.", m_where, m_failure);
    return std::move(m_root);
  }

 private:
  struct Frame {
    json* value;
    const std::string* key = nullptr;  ///< key of the member being read
    json* slot = nullptr;              ///< where the next value goes
  };

  /// The non-finite number, as Python writes it, at the place where reading stopped; empty: another error.
  std::string_view notANumber(std::size_t position) const {
    const std::size_t last = std::max<std::size_t>(1, position) - 1;
    for (const std::string_view text : {"NaN", "Infinity"}) {
      if (!m_text.substr(std::min(last, m_text.size())).starts_with(text)) continue;
      return last > 0 && m_text[last - 1] == '-' ? m_text.substr(last - 1, text.size() + 1) : text;
    }
    return {};
  }

  std::string nextValue() const {
    const bool isMember = !m_frames.empty() && m_frames.back().value->is_object() && m_frames.back().key;
    return isMember ? path() : "a value";
  }

  bool stop(std::string reason) {
    m_failure = std::move(reason);
    return false;
  }

  json* put(json value) {
    if (m_frames.empty()) return &(m_root = std::move(value));
    Frame& frame = m_frames.back();
    if (!frame.value->is_array()) return &(*frame.slot = std::move(value));
    auto& items = frame.value->get_ref<json::array_t&>();
    items.push_back(std::move(value));
    return &items.back();
  }
  bool add(json value) { return put(std::move(value)) != nullptr; }
  bool open(json container) {
    m_frames.push_back({put(std::move(container))});
    return true;
  }
  bool close() {
    m_frames.pop_back();
    return true;
  }

  std::string path() const {
    std::string path;
    for (const Frame& frame : m_frames) {
      if (frame.value->is_array()) {
        path += fmt::format("[{}]", frame.value->size() - 1);
      } else {
        if (!path.empty()) path += '.';
        path += *frame.key;
      }
    }
    return path;
  }

  std::string_view m_text, m_where;
  JsonLimits m_limits;
  json m_root;
  std::vector<Frame> m_frames;
  std::string m_failure;
};

std::string inWords(IntegerRange range) {
  constexpr IntegerRange kAny;
  if (range.max < range.min) return "absent, because no value is valid here";
  if (range.max != kAny.max) {
    if (range.min == kAny.min) return fmt::format("an integer of at most {}", range.max);
    return fmt::format("an integer from {} to {}", range.min, range.max);
  }
  if (range.min == 1) return "a positive integer";
  if (range.min == kAny.min) return "an integer";
  return fmt::format("an integer of at least {}", range.min);
}

std::optional<std::int64_t> integerOf(const nlohmann::json& value, IntegerRange range) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMax) return std::nullopt;
  const auto integer = value.get<std::int64_t>();
  if (integer < range.min || integer > range.max) return std::nullopt;
  return integer;
}

std::optional<bool> flagOf(const nlohmann::json& value) {
  if (!value.is_boolean()) return std::nullopt;
  return value.get<bool>();
}

std::optional<std::string> textOf(const nlohmann::json& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

constexpr std::string_view kTime = "a time in femtoseconds";

std::string atMost(std::size_t items) {
  return items == JsonObject::kAnyNumber ? "" : fmt::format("at most {} ", items);
}

/// nullopt unless `value` is an array whose every item converts.
template <class T, class Convert>
std::optional<std::vector<T>> listOf(const nlohmann::json& value, std::size_t mostItems, Convert&& convert) {
  if (!value.is_array() || value.size() > mostItems) return std::nullopt;
  std::vector<T> items;
  items.reserve(value.size());
  for (const nlohmann::json& item : value) {
    std::optional<T> converted = convert(item);
    if (!converted) return std::nullopt;
    items.push_back(std::move(*converted));
  }
  return items;
}

}  // namespace

Result<json> parseJson(std::string_view text, std::string_view where, const JsonLimits& limits) {
  if (std::ssize(text) > limits.bytes) {
    return fail(ErrorCode::BadInput, "{} has {} bytes of JSON; the limit is {}.", where, text.size(), limits.bytes);
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(ErrorCode::BadInput, "{} is empty, but JSON is required.", where);
  }
  if (const std::string beyond = beyondLimits(text, limits); !beyond.empty()) {
    return fail(ErrorCode::BadInput, "{} {}.", where, beyond);
  }
  // JSON never contains a NUL byte, and nlohmann takes it for the end: the bytes after it would be accepted unread.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return fail(ErrorCode::BadInput, "{} is not valid JSON: byte {} is 0.", where, nul);
  }
  Builder builder(text, where, limits);
  json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Result<nlohmann::json> readJsonFile(const fs::path& file, const JsonLimits& limits) {
  CLEAVE_TRY(const std::string text, readTextFile(file, limits.bytes));
  return parseJson(text, file.string(), limits);
}

std::string jsonText(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string quotedText(std::string_view text) {
  const bool isLong = text.size() > kQuotedBytes;
  std::string_view shown = text.substr(0, kQuotedBytes);
  // A cut between characters: step back over the continuation bytes and the lead byte of a cut character.
  if (isLong && (static_cast<unsigned char>(text[kQuotedBytes]) & 0xC0) == 0x80) {
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xC0) == 0x80) shown.remove_suffix(1);
    if (!shown.empty()) shown.remove_suffix(1);
  }
  std::string result = nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (isLong) result.insert(result.size() - 1, "...");
  return result;
}

bool isUtf8(std::string_view text) { return json::parse(jsonText(text)) == json(text); }

std::optional<double> realOf(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::string describe(const nlohmann::json& value) {
  if (value.is_string()) return quotedText(value.get_ref<const std::string&>());
  const auto isLarge = [](const json& item) { return item.is_structured() && !item.empty(); };
  const bool isShown = value.size() <= kShownItems && std::none_of(value.begin(), value.end(), isLarge);
  if (isShown) {
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() <= kQuotedBytes) return text;
  }
  return value.is_array() ? fmt::format("a list of {}", counted(std::ssize(value), "item")) : "an object";
}

Result<JsonObject> JsonObject::of(const nlohmann::json& value, std::string where) {
  if (!value.is_object())
    return fail(ErrorCode::BadInput, "{} must hold a JSON object, but it holds {}.", where, describe(value));
  std::string prefix = where + ": ";
  return JsonObject(value, std::move(where), std::move(prefix));
}

Result<JsonObject> JsonObject::at(const nlohmann::json& value, std::string path) {
  if (!value.is_object())
    return fail(ErrorCode::BadInput, "{} must be an object, but it is {}.", path, describe(value));
  std::string prefix = path + ".";
  return JsonObject(value, std::move(path), std::move(prefix));
}

const nlohmann::json* JsonObject::find(std::string_view key) const {
  const auto found = m_value->find(key);
  return found == m_value->end() || found->is_null() ? nullptr : &*found;
}

std::string JsonObject::nameOf(std::string_view key) const { return fmt::format("{}{}", m_prefix, key); }

tl::unexpected<Error> JsonObject::wrong(std::string_view key, std::string_view expected) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fail(ErrorCode::BadInput, "{} is missing: it must be {}.", nameOf(key), expected);
  return fail(ErrorCode::BadInput, "{} must be {}, but it is {}.", nameOf(key), expected, describe(*value));
}

template <class T, class Read>
Result<T> JsonObject::read(std::string_view key, std::string_view expected, std::optional<T> fallback,
                           Read&& convert) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr && fallback) return std::move(*fallback);
  std::optional<T> converted;
  if (value != nullptr) converted = convert(*value);
  if (!converted) return wrong(key, expected);
  return std::move(*converted);
}

Result<std::int64_t> JsonObject::integer(std::string_view key, IntegerRange range,
                                         std::optional<std::int64_t> fallback) const {
  return read<std::int64_t>(key, inWords(range), fallback, [&](const auto& value) { return integerOf(value, range); });
}

Result<std::optional<std::int64_t>> JsonObject::optionalInteger(std::string_view key, IntegerRange range) const {
  if (!has(key)) return std::optional<std::int64_t>();
  return integer(key, range);
}

Result<std::uint64_t> JsonObject::count(std::string_view key) const {
  return read<std::uint64_t>(key, "a whole number from 0 to 2^64 - 1", std::nullopt,
                             [](const nlohmann::json& value) -> std::optional<std::uint64_t> {
                               if (!value.is_number_unsigned()) return std::nullopt;
                               return value.get<std::uint64_t>();
                             });
}

Result<double> JsonObject::number(std::string_view key, std::optional<double> fallback) const {
  return read<double>(key, "a number", fallback, [](const nlohmann::json& value) -> std::optional<double> {
    if (!value.is_number()) return std::nullopt;
    return value.get<double>();
  });
}

Result<double> JsonObject::real(std::string_view key, std::optional<double> fallback) const {
  return read<double>(key, "a number", fallback, realOf);
}

Result<Wide> JsonObject::signedWide(std::string_view key, std::string_view expected) const {
  return read<Wide>(key, expected, std::nullopt, [](const nlohmann::json& value) -> std::optional<Wide> {
    constexpr double kMost = 1e35;  // leaves room for sums
    if (value.is_number_unsigned()) return Wide(value.get<std::uint64_t>());
    if (value.is_number_integer()) return Wide(value.get<std::int64_t>());
    if (!value.is_number_float() || !(std::abs(value.get<double>()) <= kMost)) return std::nullopt;
    return static_cast<Wide>(value.get<double>());
  });
}

Result<Wide> JsonObject::wide(std::string_view key, std::string_view expected) const {
  CLEAVE_TRY(const Wide number, signedWide(key, expected));
  if (number < 0) return wrong(key, expected);
  return number;
}

Result<Femtoseconds> JsonObject::time(std::string_view key) const {
  CLEAVE_TRY(const Wide count, wide(key, kTime));
  return Femtoseconds(count);
}

Result<Femtoseconds> JsonObject::timeDifference(std::string_view key) const {
  CLEAVE_TRY(const Wide count, signedWide(key, kTime));
  return Femtoseconds(count);
}

Result<bool> JsonObject::flag(std::string_view key, std::optional<bool> fallback) const {
  return read<bool>(key, "true or false", fallback, flagOf);
}

Result<std::string> JsonObject::text(std::string_view key, std::optional<std::string> fallback) const {
  return read<std::string>(key, "a text", std::move(fallback), textOf);
}

Result<std::vector<std::string>> JsonObject::texts(std::string_view key, std::size_t mostItems) const {
  return read<std::vector<std::string>>(
      key, fmt::format("a list of {}texts", atMost(mostItems)), std::nullopt,
      [&](const nlohmann::json& value) { return listOf<std::string>(value, mostItems, textOf); });
}

Result<std::vector<std::int64_t>> JsonObject::integers(std::string_view key, IntegerRange range,
                                                       std::size_t mostItems) const {
  const std::string expected = fmt::format("a list of {}items, each {}", atMost(mostItems), inWords(range));
  return read<std::vector<std::int64_t>>(key, expected, std::nullopt, [&](const nlohmann::json& value) {
    return listOf<std::int64_t>(value, mostItems, [&](const nlohmann::json& item) { return integerOf(item, range); });
  });
}

Result<JsonObject> JsonObject::object(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr || !value->is_object()) return wrong(key, "an object");
  return JsonObject(*value, nameOf(key), nameOf(key) + ".");
}

Result<JsonArray> JsonObject::array(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr || !value->is_array()) return wrong(key, "a list");
  return JsonArray::at(*value, nameOf(key));
}

Result<JsonArray> JsonArray::at(const nlohmann::json& value, std::string path) {
  if (!value.is_array()) return fail(ErrorCode::BadInput, "{} must be a list, but it is {}.", path, describe(value));
  return JsonArray(value, std::move(path));
}

std::size_t JsonArray::size() const { return m_value->size(); }

const nlohmann::json& JsonArray::operator[](std::size_t index) const { return (*m_value)[index]; }

tl::unexpected<Error> JsonArray::wrong(std::size_t index, std::string_view expected) const {
  return fail(ErrorCode::BadInput, "{} must be {}, but it is {}.", nameOf(index), expected, describe((*this)[index]));
}

Result<std::string> JsonArray::text(std::size_t index) const {
  if (auto text = textOf((*this)[index])) return *std::move(text);
  return wrong(index, "a text");
}

Result<double> JsonArray::real(std::size_t index) const {
  if (const auto real = realOf((*this)[index])) return *real;
  return wrong(index, "a number");
}

Result<bool> JsonArray::flag(std::size_t index) const {
  if (const auto flag = flagOf((*this)[index])) return *flag;
  return wrong(index, "true or false");
}

Result<std::int64_t> JsonArray::integer(std::size_t index, IntegerRange range) const {
  if (const auto integer = integerOf((*this)[index], range)) return *integer;
  return wrong(index, inWords(range));
}

}  // namespace cleave
