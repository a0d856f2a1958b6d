#include "pipeline/source/source.h"

#include "base/json.h"
#include "base/link_loops.h"
#include "formats/exported_program.h"
#include "formats/exported_weights.h"

namespace cleave::pipeline {
namespace {

constexpr std::int64_t kLookedAt = 64 << 10;
constexpr std::size_t kLongestSchema = 64;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of UTF-8; the JSON reader skips it too
constexpr std::string_view kWhatOpens =
    "Cleave opens model folders with a config.json, exported programs (.pt2), plans, recorded searches and sessions";

Result<fs::path> existingPath(const std::string& source) {
  const fs::path path(source);
  if (source.find('\0') != std::string::npos)
    return fail(ErrorCode::BadInput, "The path {} has a zero byte, which paths cannot have.", quotedText(source));
  if (source.empty()) return fail(ErrorCode::BadUsage, "There is no model path. Use a model folder or a config.json.");
  std::error_code wrong;
  const bool isThere = fs::exists(path, wrong);
  CLEAVE_TRY_VOID(refuseLinkLoop(path, wrong));
  if (wrong) return fail(ErrorCode::BadInput, "{} cannot be read: {}.", source, wrong.message());
  if (!isThere)
    return fail(ErrorCode::BadInput, "{} does not exist. A model is a folder with a config.json in it, or that file.",
                source);
  return path;
}

/// The top level of a JSON object without white space: its keys and plain values, with `{}` or `[]` for inner objects
/// and lists. `head` may be cut at any place.
std::string ownFieldsOf(const std::string& head) {
  std::string own;
  int depth = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    const char c = head[i];
    const std::size_t start = i;
    if (c == '"') {
      for (++i; i < head.size() && head[i] != '"'; ++i) i += head[i] == '\\' ? 1 : 0;
    }
    if (c == '}' || c == ']') --depth;
    const bool isSpace = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (depth == 1 && !isSpace) own.append(head, start, i + 1 - start);
    if (c == '{' || c == '[') ++depth;
  }
  return own;
}

/// The schema in a JSON text, such as "cleave.plan/1"; empty if this part of the text has no schema of Cleave.
std::string schemaOf(const std::string& head) {
  constexpr std::string_view kField = "\"schema\":\"", kOurs = "cleave.";
  const std::string own = ownFieldsOf(head);
  const std::size_t at = own.find(kField);
  if (at == std::string::npos) return "";
  const std::string schema = own.substr(at + kField.size(), own.find('"', at + kField.size()) - at - kField.size());
  return schema.starts_with(kOurs) && schema.size() <= kLongestSchema ? schema : "";
}

/// True for the text of a config.json, which may have another file name.
bool looksLikeConfig(const std::string& head) {
  const std::string own = ownFieldsOf(head);
  return schemaOf(head).empty() &&
         (own.find("\"model_type\":") != std::string::npos || own.find("\"architectures\":") != std::string::npos);
}

bool isCheckpointName(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".bin" || extension == ".pt" || extension == ".pth";
}

/// The kind of a file that Cleave cannot open.
std::string whatElse(const fs::path& file, const std::string& head) {
  const std::string extension = file.extension().string();
  if (extension == ".pt2") return "a .pt2 file, but not a zip archive from torch.export.save";
  if (extension == ".safetensors") return "a weight file. Open its folder instead";
  if (head.starts_with("GGUF")) return "a GGUF file";
  if (isCheckpointName(file) || head.starts_with("PK")) return "a PyTorch checkpoint";
  if (const std::string schema = schemaOf(head); !schema.empty()) return "a " + schema;
  return head.empty() ? "empty" : "a file of another kind";
}

struct KindTexts {
  std::string_view name;
  std::string_view isFor;
};

KindTexts textsOfKind(SourceKind kind) {
  switch (kind) {
    case SourceKind::Plan: return {"a plan", "plans are for `run`, `check` and `export`"};
    case SourceKind::Trace: return {"a recorded search", "recorded searches are for `trace`"};
    case SourceKind::Session: return {"a session", "sessions are for the window, which `cleave FILE` opens"};
    case SourceKind::Model: break;
  }
  return {"a model folder, a config.json or an exported program",
          "models are for `info`, `plan`, `explain`, `run` and `export`"};
}

}  // namespace

Result<void> requireKind(SourceKind wanted, const Source& found, const std::string& path) {
  if (found.kind == wanted) return {};
  return fail(ErrorCode::BadInput, "{} is not {}: {}.", path, textsOfKind(wanted).name, textsOfKind(found.kind).isFor);
}

Result<void> requireKind(SourceKind wanted, const std::string& path) {
  const auto found = recognise(path);
  return found ? requireKind(wanted, *found, path) : Result<void>();
}

Result<Source> recognise(const std::string& source) {
  CLEAVE_TRY(const fs::path path, existingPath(source));
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return Source{SourceKind::Model, path};
  if (!fs::is_regular_file(path, ignored))
    return fail(ErrorCode::BadInput, "{} is neither a folder nor a file: {}.", source, kWhatOpens);
  CLEAVE_TRY(const RandomAccessFile file, RandomAccessFile::open(path));
  std::string head(static_cast<std::size_t>(std::min(file.sizeBytes(), kLookedAt)), '\0');
  CLEAVE_TRY_VOID(file.readAt(0, std::as_writable_bytes(std::span(head))));
  if (head.starts_with(kByteOrderMark)) head.erase(0, kByteOrderMark.size());
  if (head.starts_with("CLVTRACE")) return Source{SourceKind::Trace, path};
  if (formats::looksLikeZip(head)) {
    const auto program = formats::checkIsExportedProgram(path);
    if (program) return Source{SourceKind::Model, path, true};
    if (!isCheckpointName(path)) return tl::unexpected(program.error());
  }
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  const bool isJson = first != std::string::npos && head[first] == '{';
  if (isJson && schemaOf(head).starts_with("cleave.session/")) return Source{SourceKind::Session, path};
  if (isJson && schemaOf(head).starts_with("cleave.plan/")) return Source{SourceKind::Plan, path};
  if (path.filename() == "config.json")
    return Source{SourceKind::Model, path.has_parent_path() ? path.parent_path() : fs::path(".")};
  if (isJson && looksLikeConfig(head)) {
    return fail(
        ErrorCode::BadInput,
        "{} looks like a model config with another name. Copy it into a folder as config.json, and open that folder.",
        source);
  }
  const bool mayBeForeign =
      schemaOf(head).starts_with("cleave.dtensor/") || (schemaOf(head).empty() && path.extension() == ".json");
  if (isJson && mayBeForeign) return Source{.kind = SourceKind::Plan, .path = path, .mayBeForeign = true};
  return fail(ErrorCode::BadInput, "{} cannot be opened: it is {}. {}.", source, whatElse(path, head), kWhatOpens);
}

}  // namespace cleave::pipeline
