#include "formats/bounded_json.h"

#include <algorithm>
#include <unordered_set>
#include <variant>

namespace cleave::formats {
namespace {

constexpr std::size_t kQuotedBytes = 60;

/// Builds the value from nlohmann's SAX events (its parser is iterative: depth costs no stack) and stops at the first
/// breach.
template <class Json>
class BoundedBuilder {
 public:
  BoundedBuilder(std::string_view text, std::string_view where, const JsonLimits& limits)
      : m_text(text), m_where(where), m_limits(limits) {}

  bool null() { return add(Json(nullptr)) != nullptr; }
  bool boolean(bool value) { return add(Json(value)) != nullptr; }
  bool number_integer(std::int64_t value) { return add(Json(value)) != nullptr; }
  bool number_unsigned(std::uint64_t value) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    return value <= kMax ? add(Json(value)) != nullptr : wideInteger(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(double value, const std::string& raw) {
    // The lexer hands integers that do not fit 64 bits over as floating point.
    const bool isInteger = raw.find_first_of(".eE") == std::string::npos;
    return isInteger ? wideInteger(value, raw) : add(Json(value)) != nullptr;
  }
  bool string(std::string& value) { return add(Json(std::move(value))) != nullptr; }
  bool binary(typename Json::binary_t&) { return stop("holds binary data"); }

  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Frame& frame = m_frames.back();
    auto& members = frame.value->template get_ref<typename Json::object_t&>();
    bool isNew = true;
    if constexpr (kIsOrdered) {
      // ordered_map is a vector whose own insertion searches linearly.
      isNew = frame.keys.insert(name).second;
      members.emplace_back(std::move(name), nullptr);
      frame.key = &members.back().first;
      frame.slot = &members.back().second;
    } else {
      const auto [member, inserted] = members.try_emplace(std::move(name));
      isNew = inserted;
      frame.key = &member->first;
      frame.slot = &member->second;
    }
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
    return stop(fmt::format("is not valid JSON at line {}, column {}: {}", line, column, reasonOf(error.what())));
  }

  Result<Json> take() {
    if (!m_failure.empty()) return fail(ErrorCode::BadInput, "{} {}.", m_where, m_failure);
    return std::move(m_root);
  }

 private:
  static constexpr bool kIsOrdered = std::is_same_v<Json, nlohmann::ordered_json>;

  struct Frame {
    Json* value;
    const std::string* key = nullptr;  ///< of the member being read
    Json* slot = nullptr;              ///< where its value goes
    std::conditional_t<kIsOrdered, std::unordered_set<std::string>, std::monostate> keys = {};
  };

  bool stop(std::string reason) {
    m_failure = std::move(reason);
    return false;
  }

  bool wideInteger(double value, const std::string& digits) {
    if (m_limits.allowsWideIntegers) return add(Json(value)) != nullptr;
    return stop(fmt::format("has the integer {}{}, which does not fit 64 bits", digits.substr(0, kQuotedBytes),
                            digits.size() > kQuotedBytes ? "..." : ""));
  }

  Json* add(Json value) {
    if (++m_elements > m_limits.elements) {
      stop(fmt::format("holds more than {} values", m_limits.elements));
      return nullptr;
    }
    if (m_frames.empty()) return &(m_root = std::move(value));
    Frame& frame = m_frames.back();
    if (frame.value->is_array()) {
      auto& items = frame.value->template get_ref<typename Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    return &(*frame.slot = std::move(value));
  }

  bool open(Json container) {
    if (std::ssize(m_frames) >= m_limits.depth) {
      return stop(fmt::format("is nested deeper than {} levels", m_limits.depth));
    }
    Json* value = add(std::move(container));
    if (value == nullptr) return false;
    m_frames.push_back({value});
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

  /// nlohmann's sentence without its prefix and without the text it last read, which may be long or not UTF-8.
  static std::string reasonOf(std::string_view what) {
    if (const auto start = what.find("syntax error"); start != std::string_view::npos) what.remove_prefix(start);
    return std::string(what.substr(0, what.find("; last read")));
  }

  std::string_view m_text, m_where;
  JsonLimits m_limits;
  Json m_root;
  std::vector<Frame> m_frames;
  std::int64_t m_elements = 0;
  std::string m_failure;
};

template <class Json>
Result<Json> parseBounded(std::string_view text, std::string_view where, const JsonLimits& limits) {
  if (std::ssize(text) > limits.bytes) {
    return fail(ErrorCode::BadInput, "{} has {} bytes of JSON; at most {} are accepted.", where, text.size(),
                limits.bytes);
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(ErrorCode::BadInput, "{} is empty: JSON was expected.", where);
  }
  BoundedBuilder<Json> builder(text, where, limits);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string inWords(IntegerRange range) {
  constexpr IntegerRange kAny;
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

std::optional<std::string> textOf(const nlohmann::json& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

/// nullopt unless `value` is an array whose every item converts.
template <class T, class Convert>
std::optional<std::vector<T>> listOf(const nlohmann::json& value, Convert&& convert) {
  if (!value.is_array()) return std::nullopt;
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

Result<nlohmann::json> parseJson(std::string_view text, std::string_view where, const JsonLimits& limits) {
  return parseBounded<nlohmann::json>(text, where, limits);
}

Result<nlohmann::ordered_json> parseOrderedJson(std::string_view text, std::string_view where,
                                                const JsonLimits& limits) {
  return parseBounded<nlohmann::ordered_json>(text, where, limits);
}

Result<nlohmann::json> readJsonFile(const fs::path& file, const JsonLimits& limits) {
  CLEAVE_TRY(const std::string text, readTextFile(file, limits.bytes));
  return parseJson(text, file.string(), limits);
}

std::string quotedText(std::string_view text) {
  const bool isLong = text.size() > kQuotedBytes;
  std::string_view shown = text.substr(0, kQuotedBytes);
  // Cut between characters: step back over the continuation bytes and the lead byte of a character that was cut.
  if (isLong && (static_cast<unsigned char>(text[kQuotedBytes]) & 0xC0) == 0x80) {
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xC0) == 0x80) shown.remove_suffix(1);
    if (!shown.empty()) shown.remove_suffix(1);
  }
  std::string result = nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (isLong) result.insert(result.size() - 1, "...");
  return result;
}

std::string describe(const nlohmann::json& value) {
  if (value.is_string()) return quotedText(value.get_ref<const std::string&>());
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() <= kQuotedBytes) return text;
  return value.is_array() ? fmt::format("a list of {} items", value.size()) : "an object";
}

Result<JsonObject> JsonObject::of(const nlohmann::json& value, std::string where) {
  if (!value.is_object())
    return fail(ErrorCode::BadInput, "{} must hold a JSON object, but it holds {}.", where, describe(value));
  return JsonObject(value, std::move(where), {});
}

const nlohmann::json* JsonObject::find(std::string_view key) const {
  const auto found = m_value->find(key);
  return found == m_value->end() || found->is_null() ? nullptr : &*found;
}

std::string JsonObject::nameOf(std::string_view key) const {
  return fmt::format("{}: {}{}", m_where, m_prefix, key);
}

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

Result<double> JsonObject::number(std::string_view key, std::optional<double> fallback) const {
  return read<double>(key, "a number", fallback, [](const nlohmann::json& value) -> std::optional<double> {
    if (!value.is_number()) return std::nullopt;
    return value.get<double>();
  });
}

Result<bool> JsonObject::flag(std::string_view key, std::optional<bool> fallback) const {
  return read<bool>(key, "true or false", fallback, [](const nlohmann::json& value) -> std::optional<bool> {
    if (!value.is_boolean()) return std::nullopt;
    return value.get<bool>();
  });
}

Result<std::string> JsonObject::text(std::string_view key, std::optional<std::string> fallback) const {
  return read<std::string>(key, "a text", std::move(fallback), textOf);
}

Result<std::vector<std::string>> JsonObject::texts(std::string_view key) const {
  return read<std::vector<std::string>>(key, "a list of texts", std::nullopt,
                                        [](const nlohmann::json& value) { return listOf<std::string>(value, textOf); });
}

Result<std::vector<std::int64_t>> JsonObject::integers(std::string_view key, IntegerRange range) const {
  return read<std::vector<std::int64_t>>(
      key, fmt::format("a list, each item {}", inWords(range)), std::nullopt, [&](const nlohmann::json& value) {
        return listOf<std::int64_t>(value, [&](const nlohmann::json& item) { return integerOf(item, range); });
      });
}

Result<JsonObject> JsonObject::object(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr || !value->is_object()) return wrong(key, "an object");
  return JsonObject(*value, m_where, fmt::format("{}{}.", m_prefix, key));
}

}  // namespace cleave::formats
