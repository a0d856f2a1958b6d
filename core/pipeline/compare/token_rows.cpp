#include "pipeline/compare/token_rows.h"

#include "base/json.h"
#include "formats/element.h"
#include "formats/safetensors.h"

#include <algorithm>
#include <charconv>
#include <span>

namespace cleave::pipeline {
namespace {

Result<TokenRows> readRows(const fs::path& path, const std::string& name) {
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(path));
  const formats::WeightSource* found = file.find(name);
  if (!found) return fail(ErrorCode::BadInput, "{} has no tensor {}.", path.string(), name);
  const graph::Shape& shape = found->type.shape;
  const formats::ElementLoader load = formats::elementLoader(found->type.dtype);
  if (shape.size() != 2 || graph::isFloatingPoint(found->type.dtype) || !load || graph::elementCount(shape) == 0) {
    return fail(ErrorCode::BadInput, "{}: {} is {}, but must be integers [rows, tokens].", path.string(), name,
                graph::toText(found->type));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(found->bytes));
  CLEAVE_TRY_VOID(file.read(*found, 0, bytes));
  TokenRows rows{shape[0], shape[1], {}};
  for (std::int64_t i = 0; i < graph::elementCount(shape); ++i)
    rows.ids.push_back(static_cast<std::int64_t>(load(bytes.data() + i * graph::itemSize(found->type.dtype))));
  const auto negative = std::find_if(rows.ids.begin(), rows.ids.end(), [](std::int64_t id) { return id < 0; });
  if (negative == rows.ids.end()) return rows;
  return fail(ErrorCode::BadInput, "{}: {} has the token {}. A token is 0 or more.", path.string(), name, *negative);
}

}  // namespace

Result<TokenRows> parsePrompt(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::BadUsage,
                "--prompt is {}: {}. Separate token ids by commas and rows of one length by semicolons, such as "
                "1,2,3;4,5,6.",
                quotedText(text), why);
  };
  TokenRows prompt;
  std::int64_t length = 0;
  for (const char *at = text.data(), *end = at + text.size(); at <= end; ++at) {
    std::int64_t id = 0;
    const auto [stop, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0) return wrong("it has text that is not a token id");
    prompt.ids.push_back(id);
    ++length;
    at = stop;
    if (at < end && *at == ',') continue;
    if (at < end && *at != ';') return wrong("it has other text after a token id");
    if (prompt.rows > 0 && length != prompt.length) return wrong("its rows have different lengths");
    prompt.length = length;
    ++prompt.rows;
    length = 0;
  }
  return prompt;
}

Result<TokenRows> readPrompt(const fs::path& path) {
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(path));
  const bool hasPrompt = header.tensors.contains("prompt");
  if (!hasPrompt && !header.tensors.contains("input_ids"))
    return fail(ErrorCode::BadInput, "{} has no prompt: add a tensor prompt or input_ids.", path.string());
  if (!hasPrompt && header.tensors.contains("attention_mask")) {
    CLEAVE_TRY(const TokenRows mask, readRows(path, "attention_mask"));
    if (std::find(mask.ids.begin(), mask.ids.end(), 0) != mask.ids.end()) {
      return fail(ErrorCode::BadInput,
                  "{}: attention_mask is 0 in some positions of the prompt, but --generate needs rows without padding. "
                  "Remove the padding from each row.",
                  path.string());
    }
  }
  return readRows(path, hasPrompt ? "prompt" : "input_ids");
}

Result<TokenRows> readTokens(const fs::path& file) { return readRows(file, "tokens"); }

Result<void> writePrompt(const TokenRows& prompt, const fs::path& file) {
  const formats::TensorView ids{
      "input_ids", {graph::DType::Int64, {prompt.rows, prompt.length}}, std::as_bytes(std::span(prompt.ids))};
  return formats::writeSafetensors(file, {&ids, 1});
}

}  // namespace cleave::pipeline
