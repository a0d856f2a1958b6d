#include "formats/exported_modules.h"

#include <algorithm>
#include <charconv>

namespace cleave::formats {
namespace {

constexpr std::size_t kLongestClass = 128;
constexpr std::size_t kLongestLine = 200;

/// Splits at `separator` outside of brackets, like PyTorch's reader.
std::vector<std::string_view> splitOutside(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
    if (text[i] != separator || depth != 0) continue;
    parts.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::string pathOf(std::string_view written) {
  std::string path;
  for (std::string_view part : splitOutside(written, '.')) {
    part = part.substr(0, part.find('@'));
    if (part.empty() || part.starts_with("slice(")) continue;
    if (!path.empty()) path += '.';
    path += part;
  }
  return path;
}

/// "LlamaAttention" of "transformers.models.llama.modeling_llama.LlamaAttention".
std::string classOf(std::string_view written) {
  const std::string_view name = written.substr(written.rfind('.') + 1);
  return name.size() <= kLongestClass ? std::string(name) : std::string();
}

bool isTorchs(std::string_view file) {
  if (file.ends_with("torch/nn/modules/transformer.py")) return false;  // an ordinary model module
  return file.ends_with("runtime_assert.py") || file.starts_with("torch/") ||
         file.find("-packages/torch/") != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

std::string_view receiveLine(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

struct Frame {
  std::string_view file, line, code;
};

/// `File "modeling_llama.py", line 244, in forward`
std::optional<Frame> frameOf(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  line = trimmed(line);
  const std::size_t at = line.find(kLine);
  if (!line.starts_with(kFile) || at == std::string_view::npos) return std::nullopt;
  Frame frame;
  frame.file = line.substr(kFile.size(), at - kFile.size());
  frame.line = line.substr(at + kLine.size());
  frame.line = frame.line.substr(0, frame.line.find_first_not_of("0123456789"));
  return frame.line.empty() ? std::nullopt : std::optional(frame);
}

/// Cuts to at most this many bytes, without splitting a character.
std::string cut(std::string text) {
  if (text.size() <= kLongestLine) return text;
  std::size_t end = kLongestLine;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

ExportedModules modulesOf(std::string_view moduleStack) {
  ExportedModules modules{{}};
  for (const std::string_view entry : splitOutside(moduleStack, ';')) {
    const auto parts = splitOutside(entry, ',');
    if (parts.size() != 3 || parts[1].starts_with("_empty_nn_module_stack")) continue;
    ExportedModule module{pathOf(parts[1]), classOf(parts[2])};
    if (module.path.size() > kLongestModulePath || modules.size() > kDeepestModule) continue;
    if (module.path.empty()) {
      modules.front().className = std::move(module.className);
    } else {
      modules.push_back(std::move(module));
    }
  }
  return modules;
}

std::string sourceLineOf(std::string_view stackTrace) {
  std::optional<Frame> own, innermost;
  while (!stackTrace.empty()) {
    auto frame = frameOf(receiveLine(stackTrace));
    if (!frame) continue;
    std::string_view rest = stackTrace;
    if (const std::string_view next = receiveLine(rest); !frameOf(next)) frame->code = trimmed(next);
    innermost = frame;
    if (!isTorchs(frame->file)) own = frame;
  }
  if (!own && innermost && !innermost->file.ends_with("runtime_assert.py")) own = innermost;
  if (!own) return {};
  const std::string_view file = own->file.substr(own->file.rfind('/') + 1);
  return cut(fmt::format("{}:{}{}{}", file, own->line, own->code.empty() ? "" : ": ", own->code));
}

}  // namespace cleave::formats
