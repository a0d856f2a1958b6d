#pragma once
/// Secret texts, such as a Hub token. A Secret cannot be formatted, printed or compared by accident, and its memory is
/// wiped at the end of its life. A process that has held one leaves no core dump. `reveal` gives the text.
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

/// Overwrites the bytes. The compiler cannot optimise this away.
void wipe(std::string& text);

/// Removes the variables with a Hub token (HF_TOKEN, HUGGING_FACE_HUB_TOKEN) from the environment and overwrites their
/// memory, so that neither child processes nor /proc/PID/environ show them.
void hideSecretsOfEnvironment();
bool isSecretVariable(std::string_view name);
/// The value of such a variable, hidden or not; empty: it is not set.
Secret secretOfEnvironment(const char* name);

}  // namespace cleave
