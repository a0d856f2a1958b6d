#include "plan/file/plan_fields.h"

#include "base/json.h"
#include "rules/strategy.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <variant>

namespace cleave::plan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kNothing = "nothing";

/// A field whose name changed.
constexpr std::string_view kEarlierName = "whole_parameters", kLaterName = "replicated_parameters";

class Comparison {
 public:
  explicit Comparison(std::span<const std::string_view> leftOut) : m_leftOut(leftOut) {}

  void compare(const json& file, const ordered_json& again) {
    if (file.is_object() && again.is_object()) return compareObjects(file, again);
    if (file.is_array() && again.is_array() && file.size() == again.size()) {
      for (std::size_t i = 0; i < file.size(); ++i) {
        at(i, [&] { compare(file[i], again[i]); });
      }
      return;
    }
    if (file.is_string() && again.is_string())
      return compareTexts(file.get_ref<const std::string&>(), again.get_ref<const std::string&>());
    if (file.is_structured() || again.is_structured() || file != json(again))
      note(describe(file), describe(json(again)));
  }

  std::vector<FieldDifference> differences;

 private:
  using Step = std::variant<std::string_view, std::size_t>;

  void compareObjects(const json& file, const ordered_json& again) {
    for (const auto& [key, value] : again.items()) {
      auto found = file.find(key);
      if (found == file.end() && key == kLaterName) found = file.find(kEarlierName);
      at(key, [&, &value = value] {
        found == file.end() ? note(std::string(kNothing), describe(json(value))) : compare(*found, value);
      });
    }
    const auto isKnown = [&again](const std::string& key) {
      return again.contains(key) || (key == kEarlierName && again.contains(kLaterName));
    };
    for (const auto& [key, value] : file.items()) {
      if (!isKnown(key)) at(key, [&, &value = value] { note(describe(value), std::string(kNothing)); });
    }
  }

  void compareTexts(std::string_view file, std::string_view again) {
    if (file == again || isSameStrategy(file, again)) return;
    const auto common = static_cast<std::size_t>(
        std::mismatch(file.begin(), file.end(), again.begin(), again.end()).first - file.begin());
    note(fromThere(file, common), fromThere(again, common));
  }

  /// Earlier versions wrote "whole" for "replicated".
  bool isSameStrategy(std::string_view file, std::string_view again) const {
    const auto* key = m_path.empty() ? nullptr : std::get_if<std::string_view>(&m_path.back());
    if (!key || *key != "strategy") return false;
    const auto strategy = rules::parseStrategy(file);
    return strategy && strategy == rules::parseStrategy(again);
  }

  /// Messages cut long texts: what differs must be in what is left.
  static std::string fromThere(std::string_view text, std::size_t common) {
    constexpr std::size_t kShownBefore = 20;
    std::size_t start = common > kShownBefore ? common - kShownBefore : 0;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    return start == 0 ? quotedText(text) : "…" + quotedText(text.substr(start));
  }

  template <class Body>
  void at(Step step, Body&& body) {
    m_path.push_back(step);
    if (!isLeftOut()) body();
    m_path.pop_back();
  }
  std::string path(bool hasNumbers) const {
    std::string text = "plan";
    for (const Step& step : m_path) {
      if (const auto* key = std::get_if<std::string_view>(&step))
        text.append(".").append(*key);
      else
        text += hasNumbers ? fmt::format("[{}]", std::get<std::size_t>(step)) : std::string("[*]");
    }
    return text;
  }
  /// No path that is left out is deeper than this, and most fields are.
  bool isLeftOut() const {
    constexpr std::size_t kDeepest = 5;
    if (m_path.size() > kDeepest) return false;
    return std::find(m_leftOut.begin(), m_leftOut.end(), path(false)) != m_leftOut.end();
  }
  void note(std::string file, std::string again) {
    differences.push_back({path(true), std::move(file), std::move(again)});
  }

  std::span<const std::string_view> m_leftOut;
  std::vector<Step> m_path;
};

}  // namespace

std::vector<FieldDifference> differingFields(const json& file, const ordered_json& again,
                                             std::span<const std::string_view> leftOut) {
  Comparison comparison(leftOut);
  comparison.compare(file, again);
  return std::move(comparison.differences);
}

}  // namespace cleave::plan
