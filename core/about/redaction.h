#pragma once
/// Removes from a text for publication what identifies a user or machine, and every secret.
///
///     const Redaction redaction = Redaction::ofThisProcess();
///     redaction("cannot read /home/ada/models/secret-project");   // "cannot read ~/…"
#include <string>
#include <string_view>
#include <vector>

namespace cleave::about {

/// Replaces these everywhere in a text:
/// - secrets: the values of variables with secret names (HF_TOKEN, AWS_SECRET_ACCESS_KEY, ...), tokens of a known form
///   (hf_…, "Bearer …"), and the user and password of a URL;
/// - whole paths below the home folder, by "~/…";
/// - the names of the user and of the machine.
class Redaction {
 public:
  struct Known {
    std::vector<std::string> secrets, homes, users, hosts;
  };
  explicit Redaction(Known known);
  /// Reads the environment, the password database and the kernel's host name.
  static Redaction ofThisProcess();

  std::string operator()(std::string_view text) const;

 private:
  Known m_known;
};

/// Variables with a Hub token that were set. base/secret.h has removed them from the environment.
std::vector<std::string> hiddenVariables();
/// True for names such as HF_TOKEN, whose values are never shown.
bool namesSecret(std::string_view variable);

}  // namespace cleave::about
