#include "settings/value_form.h"

#include "base/files.h"
#include "base/quantities.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace cleave::settings {
namespace {

template <class T>
std::optional<T> parseWhole(std::string_view text) {
  T value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// The form of T whose values are written as those numbers.
template <class T, class Convert>
TextForm<T> convertedFrom(const TextForm<std::int64_t>& number, Convert convert) {
  TextForm<T> form;
  static_cast<ValueForm&>(form) = number;
  form.text = [](T value) {
    if constexpr (std::is_same_v<T, int>) {
      return std::to_string(value);
    } else {
      return std::to_string(value.count());
    }
  };
  form.parse = [number, convert](std::string_view flag, std::string_view text) -> Result<T> {
    CLEAVE_TRY(const std::int64_t value, number.parse(flag, text));
    return convert(value);
  };
  return form;
}

std::optional<double> parseReal(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty() ? std::optional(value) : std::nullopt;
}

template <class T>
TextForm<T> whole(T least, T most, const char* type) {
  TextForm<T> form;
  form.kind = ValueKind::Number;
  form.type = type;
  form.least = static_cast<double>(least);
  form.most = static_cast<double>(most);
  form.text = [](T value) { return std::to_string(value); };
  form.parse = [=](std::string_view flag, std::string_view text) -> Result<T> {
    if (const auto value = parseWhole<T>(text)) return *value;
    return wrongValue(flag, text, fmt::format("a whole number from {} to {}", least, most));
  };
  return form;
}

}  // namespace

tl::unexpected<Error> wrongValue(std::string_view flag, std::string_view text, std::string_view write) {
  return fail(ErrorCode::BadUsage, "{} is \"{}\": write {}.", flag, text, write);
}

std::string orText(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  return text;
}

TextForm<bool> onOff() {
  return choiceOf<bool>(
      {std::string(kOn), std::string(kOff)}, [](bool isOn) { return isOn ? kOn : kOff; },
      [](std::string_view text) {
        return text == kOn ? std::optional(true) : text == kOff ? std::optional(false) : std::nullopt;
      });
}

TextForm<bool> switchForm() {
  TextForm<bool> form = onOff();
  form.kind = ValueKind::Switch;
  form.type.clear();
  return form;
}

TextForm<std::string> plainText(std::string type) {
  TextForm<std::string> form;
  form.type = std::move(type);
  form.text = [](const std::string& value) { return value; };
  form.parse = [](std::string_view, std::string_view text) -> Result<std::string> { return std::string(text); };
  return form;
}

TextForm<std::string> pathText(std::string type) {
  TextForm<std::string> form = plainText(std::move(type));
  form.parse = [](std::string_view, std::string_view text) -> Result<std::string> {
    return text.empty() ? std::string() : fs::absolute(text).lexically_normal().string();
  };
  return form;
}

TextForm<std::string> deviceName() {
  TextForm<std::string> form = plainText("NAME|.json");
  form.kind = ValueKind::Device;
  return form;
}

TextForm<std::int64_t> wholeNumber(std::int64_t least, std::int64_t most) { return whole(least, most, "INT"); }
TextForm<int> smallNumber(int least, int most) { return whole(least, most, "INT"); }
TextForm<std::uint64_t> seedNumber() {
  return whole(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), "UINT");
}

TextForm<std::int64_t> numberWithin(std::int64_t least, std::int64_t most) {
  TextForm<std::int64_t> form = wholeNumber(least, most);
  form.type = fmt::format("INT [{} - {}]", least, most);
  form.parse = [=](std::string_view flag, std::string_view text) -> Result<std::int64_t> {
    const auto value = parseWhole<std::int64_t>(text);
    if (value && *value >= least && *value <= most) return *value;
    return wrongValue(flag, text, fmt::format("a whole number from {} to {}", least, most));
  };
  return form;
}

TextForm<int> countWithin(int least, int most) {
  return convertedFrom<int>(numberWithin(least, most), [](std::int64_t value) { return static_cast<int>(value); });
}

TextForm<std::chrono::seconds> wholeSeconds(std::int64_t least, std::int64_t most) {
  return convertedFrom<std::chrono::seconds>(numberWithin(least, most),
                                             [](std::int64_t value) { return std::chrono::seconds(value); });
}

TextForm<double> anyNumber() {
  TextForm<double> form = realNumber(0, 0, "a number", &parseReal);
  form.type = "FLOAT";
  return form;
}

TextForm<double> finiteNumber(double least) {
  TextForm<double> form = anyNumber();
  form.parse = [=](std::string_view flag, std::string_view text) -> Result<double> {
    const auto value = parseReal(text);
    if (value && std::isfinite(*value) && *value >= least) return *value;
    return wrongValue(flag, text, fmt::format("a finite number from {}", least));
  };
  return form;
}

TextForm<std::filesystem::path> filePath(std::string type) {
  TextForm<fs::path> form;
  form.type = std::move(type);
  form.text = [](const fs::path& path) { return path.string(); };
  form.parse = [](std::string_view, std::string_view text) -> Result<fs::path> { return fs::path(text); };
  return form;
}

TextForm<std::filesystem::path> existingFile() {
  TextForm<fs::path> form = filePath();
  form.parse = [](std::string_view flag, std::string_view text) -> Result<fs::path> {
    std::error_code error;
    const fs::path path(text);
    if (fs::exists(path, error) && !fs::is_directory(path, error)) return path;
    return fail(ErrorCode::BadUsage, "{} is \"{}\": there is no such file.", flag, text);
  };
  return form;
}

TextForm<std::int64_t> byteSize() {
  TextForm<std::int64_t> form;
  form.kind = ValueKind::Bytes;
  form.text = [](std::int64_t bytes) { return std::to_string(bytes); };
  form.parse = [](std::string_view flag, std::string_view text) -> Result<std::int64_t> {
    if (const auto bytes = parseBytes(text)) return *bytes;
    return wrongValue(flag, text, "a size such as 40GiB or 42949672960");
  };
  return form;
}

TextForm<double> realNumber(double least, double most, std::string write,
                            std::optional<double> (*parse)(std::string_view)) {
  TextForm<double> form;
  form.kind = ValueKind::Number;
  form.least = least;
  form.most = most;
  form.text = [](double value) { return fmt::format("{}", value); };
  form.parse = [write = std::move(write), parse](std::string_view flag, std::string_view text) -> Result<double> {
    if (const auto value = parse(text)) return *value;
    return wrongValue(flag, text, write);
  };
  return form;
}

}  // namespace cleave::settings
