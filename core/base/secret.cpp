#include "base/secret.h"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace cleave {
namespace {

constexpr std::array<const char*, 2> kVariables{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};

std::array<Secret, kVariables.size()>& hidden() {
  static std::array<Secret, kVariables.size()> secrets;
  return secrets;
}

/// A core dump would contain copies that libraries made. RLIMIT_CORE does not stop a dump that is piped to a program.
void leaveNoCoreDump() {
  static const int done = ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  (void)done;
}

}  // namespace

void wipe(std::string& text) {
  volatile char* const bytes = text.data();
  for (std::size_t i = 0; i < text.size(); ++i) bytes[i] = '\0';
  text.clear();
}

Secret::Secret(std::string text) : m_text(text) {
  ::cleave::wipe(text);
  if (!m_text.empty()) leaveNoCoreDump();
}

void Secret::wipe() { ::cleave::wipe(m_text); }

void hideSecretsOfEnvironment() {
  for (std::size_t i = 0; i < kVariables.size(); ++i) {
    char* const value = std::getenv(kVariables[i]);
    if (value == nullptr) continue;
    hidden()[i] = Secret(value);
    volatile char* const bytes = value;
    for (std::size_t k = 0, size = std::strlen(value); k < size; ++k) bytes[k] = '\0';
    ::unsetenv(kVariables[i]);
  }
}

bool isSecretVariable(std::string_view name) {
  return std::find(kVariables.begin(), kVariables.end(), name) != kVariables.end();
}

Secret secretOfEnvironment(const char* name) {
  for (std::size_t i = 0; i < kVariables.size(); ++i) {
    if (std::string_view(name) == kVariables[i] && !hidden()[i].isEmpty()) return hidden()[i];
  }
  const char* const value = std::getenv(name);
  return value == nullptr ? Secret() : Secret(value);
}

}  // namespace cleave
