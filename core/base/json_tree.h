#pragma once
/// Builds a JSON tree with the interface of JsonWriter, for files whose spacing `jsonText` decides.
///
///     JsonTree json;
///     json.beginObject();
///     json.key("ranks").value(2);
///     json.endObject();
///     jsonText(json.root(), 1);
#include <nlohmann/json_fwd.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cleave {

class JsonTree {
 public:
  JsonTree();
  ~JsonTree();
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  void beginObject();
  void endObject() { m_open.pop_back(); }
  void beginArray();
  void endArray() { m_open.pop_back(); }
  JsonTree& key(std::string_view name) {
    m_key = name;
    return *this;
  }
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth);
  void value(std::integral auto number) {
    if constexpr (std::is_signed_v<decltype(number)>) {
      integer(number);
    } else {
      count(number);
    }
  }
  /// Infinities and NaN become null in the text.
  void real(double number);
  void null();
  /// A text that is JSON already.
  void raw(std::string_view json);
  const nlohmann::ordered_json& root() const { return *m_root; }

 private:
  nlohmann::ordered_json& put(nlohmann::ordered_json value);
  void integer(std::int64_t number);
  void count(std::uint64_t number);

  std::unique_ptr<nlohmann::ordered_json> m_root;
  std::vector<nlohmann::ordered_json*> m_open;  ///< objects and arrays that are not ended; their addresses are stable
  std::string m_key;                            ///< of the next member
};

}  // namespace cleave
