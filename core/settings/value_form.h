#pragma once
/// How the value of a setting is written: as text in both directions, and in words for help and errors.
#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::settings {

enum class ValueKind : std::uint8_t { Switch, Choice, Number, Bytes, Device, Text };

struct ValueForm {
  ValueKind kind = ValueKind::Text;
  std::string type = "TEXT";            ///< in help: "INT", "{on,off}", "FILE|FOLDER" (option_types.h)
  std::vector<std::string> words = {};  ///< Choice: the allowed words
  double least = 0, most = 0;           ///< Number
  std::string unit = {};                ///< Number: "%"; may be empty
};

/// The form of values of type T. `parse` gets the flag for its error: BadUsage, "--mask is "x": write on or off."
template <class T>
struct TextForm : ValueForm {
  std::function<std::string(const T&)> text;
  std::function<Result<T>(std::string_view flag, std::string_view text)> parse;
};

inline constexpr std::string_view kOn = "on", kOff = "off";

/// BadUsage: `--mask is "x": write on or off.`
tl::unexpected<Error> wrongValue(std::string_view flag, std::string_view text, std::string_view write);
/// "reference, learning or optimal"
std::string orText(const std::vector<std::string>& words);

TextForm<bool> onOff();       ///< "on" or "off"
TextForm<bool> switchForm();  ///< a flag without a value
TextForm<std::string> plainText(std::string type = "TEXT");
TextForm<std::string> pathText(std::string type);                     ///< stored as an absolute path; empty: none
TextForm<std::filesystem::path> filePath(std::string type = "FILE");  ///< a file to write
TextForm<std::filesystem::path> existingFile();                       ///< BadUsage if there is no such file
TextForm<std::string> deviceName();                                   ///< a bundled profile, or a file with one
/// Whole numbers. The range is for the window; what the values allow is checked where they are used.
TextForm<std::int64_t> wholeNumber(std::int64_t least, std::int64_t most);
TextForm<int> smallNumber(int least, int most);
TextForm<std::uint64_t> seedNumber();
/// Whole numbers in this range only: BadUsage names it.
TextForm<std::int64_t> numberWithin(std::int64_t least, std::int64_t most);
TextForm<int> countWithin(int least, int most);
TextForm<std::chrono::seconds> wholeSeconds(std::int64_t least, std::int64_t most);
TextForm<std::int64_t> byteSize();  ///< "40GiB"; written in bytes
/// `write`: what the error asks for.
TextForm<double> realNumber(double least, double most, std::string write,
                            std::optional<double> (*parse)(std::string_view));
/// Any number, also infinite ones and nan: what the values allow is checked where they are used.
TextForm<double> anyNumber();
TextForm<double> finiteNumber(double least);

/// One of the words. `text` and `parse` are those of the enum.
template <class T, class Text, class Parse>
TextForm<T> choiceOf(std::vector<std::string> words, Text text, Parse parse) {
  TextForm<T> form;
  form.kind = ValueKind::Choice;
  form.type = "{";
  for (const std::string& word : words) form.type += (form.type.size() > 1 ? "," : "") + word;
  form.type += "}";
  form.words = std::move(words);
  form.text = [text](const T& value) { return std::string(text(value)); };
  form.parse = [parse, write = orText(form.words)](std::string_view flag, std::string_view text) -> Result<T> {
    if (const std::optional<T> value = parse(text)) return *value;
    return wrongValue(flag, text, write);
  };
  return form;
}

}  // namespace cleave::settings
