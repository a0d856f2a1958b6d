#pragma once
/// Safetensors files: 8 bytes of header length (little endian), a JSON header, then the tensors' bytes.
///
/// Only headers are read. A header is believed when: its length is at most 100,000,000 and within the file; it is one
/// JSON object without duplicate keys, in UTF-8; every entry's dtype is known and its shape times item size is its byte
/// range; the byte ranges, sorted, follow each other without hole or overlap and end with the file. Every error is
/// BadInput and names the file and the tensor. Format: https://github.com/huggingface/safetensors#format
///
///     CLEAVE_TRY(const SafetensorsHeader header, readSafetensorsHeader("model.safetensors"));
///     const SafetensorsEntry& weight = header.tensors.at("lm_head.weight");
///     file.readAt(weight.offset, buffer);   // weight.bytes of them
#include "base/files.h"
#include "graph/types.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::formats {

inline constexpr std::int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  graph::TensorType type;
  std::int64_t offset = 0;  ///< of its first byte, from the start of the file
  std::int64_t bytes = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;  ///< `__metadata__`
};

Result<SafetensorsHeader> readSafetensorsHeader(const fs::path& file);
/// The same of an open file, so that header and payload are surely read from one file; `where` names it in errors (in a
/// Hub cache the real file is called by its hash).
Result<SafetensorsHeader> readSafetensorsHeader(const RandomAccessFile& file, std::string_view where);
/// The same of a whole file in memory, for tests and fuzzers; `where` names it in errors.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view content, std::string_view where);

/// One tensor to be written; its bytes are row-major and little endian.
struct TensorView {
  std::string name;
  graph::TensorType type;
  std::span<const std::byte> bytes;
};

/// Writes through an OutputFile. Tensors are laid out by falling item size, then by name, so that each is aligned to
/// its items. BadInput for a name that occurs twice, is
/// `__metadata__` or is not UTF-8, and for bytes that do not fit the type.
Result<void> writeSafetensors(const fs::path& file, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata = {});

/// "F32", "BF16", "I64", "BOOL", ...
std::string_view safetensorsName(graph::DType dtype);

}  // namespace cleave::formats
