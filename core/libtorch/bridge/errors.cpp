#include "libtorch/bridge/errors.h"

#include "base/exhaustion.h"

#include <c10/util/Exception.h>

#include <new>
#include <optional>
#include <string_view>
#include <system_error>

namespace cleave::bridge {
namespace {

std::string phraseOf(std::string text) {
  if (const auto op = text.find(": attempted to run this operator with Meta tensors"); op != std::string::npos)
    return "LibTorch cannot compute the result shape of " + text.substr(0, op) + " without data";
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

/// Resources that NCCL lacks on this machine, which are not the fault of a peer. NCCL has one error code for all CUDA
/// failures and quotes the reason.
std::optional<std::string> lackingOfNccl(std::string_view text) {
  if (text.find("out of memory") != std::string_view::npos)
    return "NCCL is out of memory: this GPU has no memory left for its buffers, which are outside PyTorch's allocator. "
           "Free memory on it, or use a smaller batch or sequence, or more ranks";
  if (text.find("No space left on device") != std::string_view::npos)
    return "NCCL has no space left in /dev/shm, where ranks of one machine exchange data. Enlarge it (in a container: "
           "--shm-size=1g)";
  return std::nullopt;
}

class Translator {
 public:
  Translator(Wording wording) : m_wording(wording) {}
  Error lacking(std::string what) const {
    if (m_wording == Wording::Sentence) what += '.';
    return {ErrorCode::Environment, std::move(what)};
  }
  Error said(ErrorCode code, std::string text) const {
    // Gloo and c10d have no exception types for exhausted resources; they quote the system's message.
    if (auto words = exhaustionQuotedIn(text)) return lacking(*std::move(words));
    return {code, m_wording == Wording::Sentence ? sentenceOf(std::move(text)) : phraseOf(std::move(text))};
  }
  /// c10::Error::what() symbolises a whole stack, which takes milliseconds.
  Error said(ErrorCode code, const c10::Error& error) const { return said(code, error.what_without_backtrace()); }

 private:
  Wording m_wording;
};

}  // namespace

std::string sentenceOf(std::string text) {
  // ProcessGroupNCCL puts its source file before the reason.
  if (const auto where = text.find("NCCL error in: "); where != std::string::npos) {
    const auto end = text.find(", ", text.find(':', where + 15));
    if (end != std::string::npos) text.replace(where, end + 2 - where, "NCCL: ");
  }
  // c10d appends its own stack after an empty line or "Exception raised from".
  for (const char* mark : {"\n\n", "\nException raised from", " (function operator())"})
    text = text.substr(0, text.find(mark));
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (!text.empty() && text.back() != '.') text += '.';
  return text.empty() ? "an unknown error." : text;
}

Error currentError(ErrorCode code, Wording wording) {
  const Translator translator(wording);
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    return translator.said(ErrorCode::Environment, error);
  } catch (const c10::AcceleratorError& error) {
    return translator.said(ErrorCode::Environment, error);
  } catch (const c10::DistError& error) {
    if (auto lacking = lackingOfNccl(error.what_without_backtrace())) return translator.lacking(*std::move(lacking));
    return translator.said(ErrorCode::RankFailed, error);
  } catch (const c10::Error& error) {
    return translator.said(code, error);
  } catch (const std::bad_alloc&) {
    return translator.lacking(noMemoryInWords());
  } catch (const std::system_error& error) {
    // From std::thread.
    if (error.code() == std::errc::resource_unavailable_try_again) return translator.lacking(noThreadInWords());
    if (auto words = exhaustionInWords(error.code().value())) return translator.lacking(*std::move(words));
    return translator.said(code, std::string(error.what()));
  } catch (const std::exception& error) {
    return translator.said(code, std::string(error.what()));
  }
}

Error uncaughtError(ErrorCode code) {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception&) {
    return currentError(code);
  } catch (...) {
  }
  return {ErrorCode::RankFailed, "An unknown exception ended the process."};
}

}  // namespace cleave::bridge
