#pragma once
/// Texts that must not be seen: the token of a Hub. A Secret cannot be formatted, printed or compared by accident, its
/// memory is wiped when it is gone, and a process that has held one leaves no core dump. Whoever needs the text says so
/// by name.
///
///     int main() { hideSecretsOfEnvironment(); ... }    // first of all, before there are threads
///     const Secret token = secretOfEnvironment("HF_TOKEN");
#include <string>
#include <string_view>
#include <utility>

namespace cleave {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text);
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept : m_text(other.m_text) { other.wipe(); }
  Secret& operator=(Secret other) noexcept {
    std::swap(m_text, other.m_text);
    return *this;
  }
  ~Secret() { wipe(); }
  bool isEmpty() const { return m_text.empty(); }
  const std::string& reveal() const { return m_text; }

 private:
  void wipe();
  std::string m_text;
};

/// Overwrites the bytes, also where the compiler sees that nobody reads them.
void wipe(std::string& text);

/// Takes the variables that hold a Hub's token (HF_TOKEN, HUGGING_FACE_HUB_TOKEN) out of the environment, and
/// overwrites them where they lay, so that neither children nor /proc/PID/environ show them.
void hideSecretsOfEnvironment();
bool isSecretVariable(std::string_view name);
/// What such a variable held, hidden or not; empty: it is not set.
Secret secretOfEnvironment(const char* name);

}  // namespace cleave
