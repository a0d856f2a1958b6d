#pragma once
/// Safetensors files: 8 bytes of header length (little endian), a JSON header, then the tensors' bytes.
///
/// Only headers are read. A header is accepted if its length is at most 100,000,000 and within the file; it is one JSON
/// object without duplicate keys, in UTF-8; every entry's dtype is known and its shape times item size is its byte
/// range; and the sorted byte ranges are contiguous and end with the file. Every error is BadInput and names the file
/// and the tensor. Format: https://github.com/huggingface/safetensors#format
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

/// Location of one tensor's bytes.
struct WeightSource {
  graph::TensorType type;
  std::string file;         ///< relative to the model folder; empty in a header, which describes its own file
  std::string tensor;       ///< name in the file; empty: the name it is known by
  std::int64_t offset = 0;  ///< offset of its first byte from the start of the file
  std::int64_t bytes = 0;
  std::vector<std::int64_t> strides = {};  ///< strides in elements, of a view in an archive; empty: row-major
  /// "U32[16,4]" for an element type that Cleave does not compute with; `type` then describes its bytes. Empty: any
  /// other type.
  std::string foreignType = {};
  std::string partOf;  ///< the packed parameter of which it is a part; empty: it is a parameter itself
};
using WeightSources = std::map<std::string, WeightSource>;  ///< by tensor name

struct SafetensorsHeader {
  WeightSources tensors;
  std::map<std::string, std::string> metadata;  ///< `__metadata__`
};

Result<SafetensorsHeader> readSafetensorsHeader(const fs::path& file);
/// The same for a whole file in memory, for tests and fuzzers; `where` names it in errors.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view content, std::string_view where);

/// An open file with its header, so that header and payload belong to the same file. Errors use the path by which it
/// was opened (in a Hub cache the real file is named by its hash).
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const fs::path& file);
  static Result<SafetensorsFile> of(RandomAccessFile file);
  const fs::path& path() const { return m_file.path(); }
  const RandomAccessFile& file() const { return m_file; }
  const WeightSources& tensors() const { return m_header.tensors; }
  SafetensorsHeader receiveHeader() && { return std::move(m_header); }
  /// Null: the file has no tensor of this name.
  const WeightSource* find(const std::string& name) const;
  /// Fills `out` with the tensor's bytes from `first` on.
  Result<void> read(const WeightSource& tensor, std::int64_t first, std::span<std::byte> out) const;
  /// Bytes that `read` has read so far, without the header.
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

/// Writes a file tensor by tensor through an OutputFile, so that only one tensor must be in memory. Tensors are sorted
/// by falling item size, then by name, so that each is aligned to its items.
///
///     CLEAVE_TRY(auto writer, SafetensorsWriter::open(file, types));
///     for (std::size_t i : SafetensorsWriter::order(types)) CLEAVE_TRY_VOID(writer.write(bytesOf(i)));
///     CLEAVE_TRY_VOID(writer.finish());
class SafetensorsWriter {
 public:
  /// Indices into `tensors` in writing order.
  static std::vector<std::size_t> order(std::span<const NamedType> tensors);
  /// BadInput for a name that is a duplicate, is `__metadata__` or is not UTF-8.
  static Result<SafetensorsWriter> open(const fs::path& file, std::span<const NamedType> tensors,
                                        const std::map<std::string, std::string>& metadata = {});
  /// Writes the next tensor's bytes, row-major and little endian. BadInput if they do not fit its type.
  Result<void> write(std::span<const std::byte> bytes);
  Result<void> finish() { return m_out.finish(); }

 private:
  SafetensorsWriter(OutputFile out, std::string file, std::vector<NamedType> toWrite)
      : m_out(std::move(out)), m_file(std::move(file)), m_toWrite(std::move(toWrite)) {}
  OutputFile m_out;
  std::string m_file;
  std::vector<NamedType> m_toWrite;  ///< in writing order
  std::size_t m_next = 0;
};

/// A tensor to write; its bytes are row-major and little endian.
struct TensorView {
  std::string name;
  graph::TensorType type;
  std::span<const std::byte> bytes;
};

/// Writes all tensors with a SafetensorsWriter.
Result<void> writeSafetensors(const fs::path& file, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata = {});

/// "F32", "BF16", "I64", "BOOL", ...
std::string_view safetensorsName(graph::DType dtype);

}  // namespace cleave::formats
