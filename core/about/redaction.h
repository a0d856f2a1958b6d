#pragma once
/// What a text that is shown to strangers must not tell: whose machine it is from, and what opens what.
///
///     const Redaction redaction = Redaction::ofThisProcess();
///     redaction("cannot read /home/ada/models/secret-project");   // "cannot read ~/…"
#include <string>
#include <string_view>
#include <vector>

namespace cleave::about {

/// Everything is replaced wherever it stands in a text:
/// - secrets: the values of variables whose names say so (HF_TOKEN, AWS_SECRET_ACCESS_KEY, ...), tokens that are known
///   by their form (hf_…, "Bearer …"), and user and password of a URL;
/// - paths below the home folder, whole: "~/…";
/// - the name of the user and of the machine.
class Redaction {
 public:
  struct Known {
    std::vector<std::string> secrets, homes, users, hosts;
  };
  explicit Redaction(Known known);
  /// Of the environment, the password database and the kernel.
  static Redaction ofThisProcess();

  std::string operator()(std::string_view text) const;

 private:
  Known m_known;
};

/// Variables that hold a Hub's token, as far as they are set: base/secret.h has taken them out of the environment.
std::vector<std::string> hiddenVariables();
/// True for names such as HF_TOKEN: what such a variable holds is never shown.
bool namesSecret(std::string_view variable);

}  // namespace cleave::about
