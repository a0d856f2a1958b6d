#pragma once
/// Safetensors files: 8 bytes of header length (little endian), a JSON header, then the tensors' bytes.
///
/// Only headers are read. A header is believed when: its length is at most 100,000,000 and within the file; it is one
/// JSON object without duplicate keys, in UTF-8; every entry's dtype is known and its shape times item size is its byte
/// range; the byte ranges, sorted, follow each other without hole or overlap and end with the file. Every error is
/// BadInput and names the file and the tensor. Format: https://github.com/huggingface/safetensors#format
///
///     CLEAVE_TRY(const SafetensorsFile file, SafetensorsFile::open("model.safetensors"));
///     const WeightSource* weight = file.find("lm_head.weight");
///     file.read(*weight, 0, buffer);   // weight->bytes of them
#include "base/output_file.h"
#include "graph/types.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::formats {

inline constexpr std::int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// Where the bytes of one tensor lie.
struct WeightSource {
  graph::TensorType type;
  std::string file;         ///< relative to the model folder; empty in a header, which speaks of its own file
  std::string tensor;       ///< its name in the file; empty: that by which it is known
  std::int64_t offset = 0;  ///< of its first byte, from the start of the file
  std::int64_t bytes = 0;
  std::vector<std::int64_t> strides = {};  ///< in elements, of a view in an archive; empty: row-major
  /// "U32[16,4]", of an element type of the format that nobody here computes with: `type` is its bytes then. Empty: of
  /// one that does.
  std::string foreignType = {};
  std::string partOf;  ///< the packed parameter that it makes with others; empty: it is one of its own
};
using WeightSources = std::map<std::string, WeightSource>;  ///< by the tensor's name

struct SafetensorsHeader {
  WeightSources tensors;
  std::map<std::string, std::string> metadata;  ///< `__metadata__`
};

Result<SafetensorsHeader> readSafetensorsHeader(const fs::path& file);
/// The same of a whole file in memory, for tests and fuzzers; `where` names it in errors.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view content, std::string_view where);

/// An open file with its header, so that header and payload are surely of one file. Errors call it by the path that it
/// was opened by (in a Hub cache the real file is called by its hash).
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const fs::path& file);
  static Result<SafetensorsFile> of(RandomAccessFile file);
  const fs::path& path() const { return m_file.path(); }
  const RandomAccessFile& file() const { return m_file; }
  const WeightSources& tensors() const { return m_header.tensors; }
  SafetensorsHeader takeHeader() && { return std::move(m_header); }
  /// Null where the file has no tensor of this name.
  const WeightSource* find(const std::string& name) const;
  /// Fills `out` with the tensor's bytes from `first` on.
  Result<void> read(const WeightSource& tensor, std::int64_t first, std::span<std::byte> out) const;
  /// What `read` has got of the system so far: the header does not count.
  std::int64_t payloadBytesRead() const { return m_file.bytesRead() - m_headerBytes; }

 private:
  SafetensorsFile(RandomAccessFile file, SafetensorsHeader header)
      : m_file(std::move(file)), m_header(std::move(header)), m_headerBytes(m_file.bytesRead()) {}
  RandomAccessFile m_file;
  SafetensorsHeader m_header;
  std::int64_t m_headerBytes;
};

struct NamedType {
  std::string name;
  graph::TensorType type;
};

/// Writes a file tensor by tensor, so that only one has to be there at a time, through an OutputFile. Tensors are laid
/// out by falling item size, then by name, so that each is aligned to its items.
///
///     CLEAVE_TRY(auto writer, SafetensorsWriter::open(file, types));
///     for (std::size_t i : SafetensorsWriter::order(types)) CLEAVE_TRY_VOID(writer.write(bytesOf(i)));
///     CLEAVE_TRY_VOID(writer.finish());
class SafetensorsWriter {
 public:
  /// Indices into `tensors` in the order in which they are to be written.
  static std::vector<std::size_t> order(std::span<const NamedType> tensors);
  /// BadInput for a name that occurs twice, is `__metadata__` or is not UTF-8.
  static Result<SafetensorsWriter> open(const fs::path& file, std::span<const NamedType> tensors,
                                        const std::map<std::string, std::string>& metadata = {});
  /// The next tensor's bytes, row-major and little endian. BadInput where they do not fit its type.
  Result<void> write(std::span<const std::byte> bytes);
  Result<void> finish() { return m_out.finish(); }

 private:
  SafetensorsWriter(OutputFile out, std::string file, std::vector<NamedType> toWrite)
      : m_out(std::move(out)), m_file(std::move(file)), m_toWrite(std::move(toWrite)) {}
  OutputFile m_out;
  std::string m_file;
  std::vector<NamedType> m_toWrite;  ///< in order
  std::size_t m_next = 0;
};

/// One tensor to be written; its bytes are row-major and little endian.
struct TensorView {
  std::string name;
  graph::TensorType type;
  std::span<const std::byte> bytes;
};

/// All of them with a SafetensorsWriter.
Result<void> writeSafetensors(const fs::path& file, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata = {});

/// "F32", "BF16", "I64", "BOOL", ...
std::string_view safetensorsName(graph::DType dtype);

}  // namespace cleave::formats
