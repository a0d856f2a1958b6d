#pragma once
/// Errors as values, for every room of the core.
///
/// A function that can fail for a reason outside the program (a file, a flag, a device, a peer) returns `Result<T>`. An
/// `Error` is a sentence that a user can act on: what failed, where (file, tensor, node), the value, and what to do.
/// "No solution" is an answer, not an error. Broken invariants are `CLEAVE_CHECK`, in release builds too.
///
///     Result<Config> readConfig(const fs::path& file) {
///       CLEAVE_TRY(const std::string text, readTextFile(file, kMaxConfigBytes));
///       if (text.empty()) return fail(ErrorCode::BadInput, "{} is empty: expected a JSON object", file.string());
///       ...
///     }
#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace cleave {

/// Closed set of failure classes; each is also the exit code of the programs (see exitCode).
enum class ErrorCode {
  Negative,     ///< 1: a well-posed question with a negative answer (mismatch, no solution)
  BadUsage,     ///< 2: wrong flags or commands
  BadInput,     ///< 3: a file, model, plan or graph that cannot be used
  Environment,  ///< 4: no device, no network, no permission, disk full
  RankFailed,   ///< 5: a rank of a run failed
  Cancelled,    ///< 130: the user stopped it
};

struct Error {
  ErrorCode code = ErrorCode::BadInput;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

/// Exit code of a program that ends with this error (the command-line contract).
constexpr int exitCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::Negative: return 1;
    case ErrorCode::BadUsage: return 2;
    case ErrorCode::BadInput: return 3;
    case ErrorCode::Environment: return 4;
    case ErrorCode::RankFailed: return 5;
    case ErrorCode::Cancelled: return 130;
  }
  return 4;
}

/// `return fail(code, "{} is ...", x);` from any function that returns a Result.
template <class... Args>
tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(text, std::forward<Args>(args)...)});
}

/// The same error with a prefix: "model/config.json: ...".
template <class T>
Result<T> withContext(Result<T> result, std::string_view context) {
  if (!result) result.error().message = fmt::format("{}: {}", context, result.error().message);
  return result;
}

[[noreturn]] void checkFailed(const char* expression, const char* file, int line, const std::string& message);

}  // namespace cleave

/// Declares `lhs` from a Result expression or returns its error from the enclosing function.
#define CLEAVE_PASTE(a, b) a##b
#define CLEAVE_CONCAT(a, b) CLEAVE_PASTE(a, b)
#define CLEAVE_TRY(lhs, ...) CLEAVE_TRY_AS(CLEAVE_CONCAT(cleaveTry_, __LINE__), lhs, __VA_ARGS__)
#define CLEAVE_TRY_AS(name, lhs, ...)                                         \
  auto name = (__VA_ARGS__);                                                  \
  if (!name) return tl::unexpected<::cleave::Error>(std::move(name).error()); \
  lhs = std::move(*name)
/// The same for Result<void>.
#define CLEAVE_TRY_VOID(...)                                                                      \
  do {                                                                                            \
    auto cleaveTryVoid = (__VA_ARGS__);                                                           \
    if (!cleaveTryVoid) return tl::unexpected<::cleave::Error>(std::move(cleaveTryVoid).error()); \
  } while (false)

/// Broken invariant of our own code: prints and aborts, in every build.
#define CLEAVE_CHECK(condition, ...)                                                                      \
  do {                                                                                                    \
    if (!(condition)) ::cleave::checkFailed(#condition, __FILE__, __LINE__, fmt::format("" __VA_ARGS__)); \
  } while (false)
