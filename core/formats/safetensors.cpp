#include "formats/safetensors.h"

#include "base/checked.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/quantities.h"
#include "graph/type_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

namespace cleave::formats {
namespace {

using graph::DType;

constexpr std::int64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

constexpr std::array<std::pair<std::string_view, DType>, 12> kDTypes{{
    {"F64", DType::Float64},
    {"F32", DType::Float32},
    {"F16", DType::Float16},
    {"BF16", DType::BFloat16},
    {"F8_E4M3", DType::Float8E4M3},
    {"F8_E5M2", DType::Float8E5M2},
    {"I64", DType::Int64},
    {"I32", DType::Int32},
    {"I16", DType::Int16},
    {"I8", DType::Int8},
    {"U8", DType::UInt8},
    {"BOOL", DType::Bool},
}};

/// Element types of the format that Cleave does not compute with, and their bits. Such a tensor is plain bytes.
constexpr std::array<std::pair<std::string_view, int>, 10> kForeign{{
    {"U16", 16},
    {"U32", 32},
    {"U64", 64},
    {"C64", 64},
    {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"F4", 4},
}};

std::optional<DType> dtypeOf(std::string_view name) {
  for (const auto& [known, dtype] : kDTypes) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

std::string knownDTypes() {
  std::string names;
  for (const auto& [name, dtype] : kDTypes) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  for (const auto& [name, bits] : kForeign) names += fmt::format(", {}", name);
  return names;
}

/// Name of an entry in errors: `model.safetensors: tensor "lm_head.weight"`.
struct EntryContext {
  std::string_view where;
  const std::string& tensor;

  template <class... Args>
  tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) const {
    return fail(ErrorCode::BadInput, "{}: tensor {} {}.", where, quotedText(tensor),
                fmt::format(text, std::forward<Args>(args)...));
  }
};

/// An element type by its name in the format.
struct StoredType {
  std::string_view name;
  DType dtype = DType::UInt8;
  int bits = 8;
  bool isForeign = false;
};

StoredType storedType(DType dtype) { return {safetensorsName(dtype), dtype, 8 * graph::itemSize(dtype)}; }

Result<StoredType> readDType(const nlohmann::json& entry, const EntryContext& context) {
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end()) return context.refuse("has no dtype");
  if (!dtype->is_string()) return context.refuse("has the dtype {}, which is not a text", describe(*dtype));
  const auto& name = dtype->get_ref<const std::string&>();
  if (const auto known = dtypeOf(name)) return storedType(*known);
  for (const auto& [foreign, bits] : kForeign)
    if (foreign == name) return StoredType{foreign, DType::UInt8, bits, true};
  return context.refuse("has the dtype {}, which does not exist in the format (it has {})", describe(*dtype),
                        knownDTypes());
}

/// A list of whole numbers of at most 63 bits.
Result<std::vector<std::int64_t>> readSizes(const nlohmann::json& entry, const char* key, const EntryContext& context) {
  const auto list = entry.find(key);
  if (list == entry.end()) return context.refuse("has no {}", key);
  if (!list->is_array()) return context.refuse("has the {} {}, which is not a list", key, describe(*list));
  std::vector<std::int64_t> sizes;
  sizes.reserve(list->size());
  for (const nlohmann::json& item : *list) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > kMax) {
      return context.refuse("has {} in its {}, but a whole number from 0 to 2^63 - 1 is required", describe(item), key);
    }
    sizes.push_back(item.get<std::int64_t>());
  }
  return sizes;
}

/// Unsigned 64-bit product from the first dimension on, like the reference library: nullopt on overflow, also if a
/// later dimension is 0.
std::optional<std::uint64_t> bitsOf(const graph::Shape& shape, int bitsOfOne) {
  std::uint64_t product = 1;
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product)) return std::nullopt;
  if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(bitsOfOne), &product)) return std::nullopt;
  return product;
}

/// The entry with its offset relative to the data section.
Result<WeightSource> readEntry(const nlohmann::json& entry, const EntryContext& context) {
  if (!entry.is_object()) return context.refuse("is described by {}, not by an object", describe(entry));
  WeightSource result;
  CLEAVE_TRY(const StoredType stored, readDType(entry, context));
  result.type.dtype = stored.dtype;
  CLEAVE_TRY(result.type.shape, readSizes(entry, "shape", context));
  CLEAVE_TRY(const auto offsets, readSizes(entry, "data_offsets", context));
  if (result.type.shape.size() > graph::kMaxDimensions) {
    return context.refuse("has {} dimensions; at most {} are accepted", result.type.shape.size(),
                          graph::kMaxDimensions);
  }
  if (offsets.size() != 2) return context.refuse("has {} data_offsets, but begin and end are required", offsets.size());
  if (offsets[1] < offsets[0]) {
    return context.refuse("has the data_offsets [{}, {}], which end before they begin", offsets[0], offsets[1]);
  }
  const auto bits = bitsOf(result.type.shape, stored.bits);
  const auto shape = [&] { return graph::toText(result.type.shape); };
  if (!bits) return context.refuse("has the shape {}, whose size in bits does not fit 64 bits", shape());
  if (*bits % 8 != 0)
    return context.refuse("has the shape {} of {}, which is not a whole number of bytes", shape(), stored.name);
  result.offset = offsets[0];
  result.bytes = offsets[1] - offsets[0];
  const auto bytes = static_cast<std::int64_t>(*bits / 8);
  if (bytes != result.bytes) {
    return context.refuse("has the shape {} of {}, that is {}, but its data_offsets [{}, {}] hold {}", shape(),
                          stored.name, counted(bytes, "byte"), offsets[0], offsets[1], result.bytes);
  }
  if (stored.isForeign) {
    result.foreignType = fmt::format("{}{}", stored.name, shape());
    result.type.shape = {result.bytes};
  }
  return result;
}

Result<std::map<std::string, std::string>> readMetadata(const nlohmann::json& value, std::string_view where) {
  std::map<std::string, std::string> metadata;
  if (value.is_null()) return metadata;
  if (!value.is_object())
    return fail(ErrorCode::BadInput, "{}: {} must be an object, but it is {}.", where, kMetadataKey, describe(value));
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      return fail(ErrorCode::BadInput, "{}: {} must hold texts only, but {} is {}.", where, kMetadataKey,
                  quotedText(key), describe(text));
    }
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

/// The byte ranges must tile the data section: no overlap, no gap, no excess.
Result<void> checkTiling(const WeightSources& tensors, std::int64_t dataBytes, std::string_view where) {
  using Item = WeightSources::value_type;
  std::vector<const Item*> sorted;
  sorted.reserve(tensors.size());
  for (const Item& item : tensors) sorted.push_back(&item);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Item* a, const Item* b) {
    return std::pair(a->second.offset, a->second.bytes) < std::pair(b->second.offset, b->second.bytes);
  });
  std::int64_t end = 0;
  const std::string* previous = nullptr;
  for (const Item* item : sorted) {
    const auto& [name, entry] = *item;
    const EntryContext context{where, name};
    const std::int64_t entryEnd = entry.offset + entry.bytes;
    if (entryEnd > dataBytes) {
      return context.refuse(
          "ends at byte {} of the data, but the file holds only {} of data. The file is truncated or its header is "
          "wrong: download it again",
          entryEnd, counted(dataBytes, "byte"));
    }
    if (entry.offset < end) {
      return context.refuse("begins at byte {} of the data and overlaps tensor {}, which ends at {}", entry.offset,
                            quotedText(*previous), end);
    }
    if (entry.offset > end)
      return context.refuse("begins at byte {} of the data, after a gap that begins at {}", entry.offset, end);
    end = entryEnd;
    previous = &name;
  }
  if (end != dataBytes) {
    return fail(ErrorCode::BadInput, "{} holds {} of data, but its tensors end at byte {}: {} to no tensor.", where,
                counted(dataBytes, "byte"), end, counted(dataBytes - end, "byte belongs", "bytes belong"));
  }
  return {};
}

Result<SafetensorsHeader> parseHeaderJson(std::string_view json, std::int64_t dataOffset, std::int64_t fileBytes,
                                          std::string_view where) {
  // White space may precede it, as in the reference library.
  const auto first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || json[first] != '{')
    return fail(ErrorCode::BadInput, "{}: its header does not begin with '{{', so it is not a safetensors file.",
                where);
  const std::string headerName = fmt::format("The header of {}", where);
  CLEAVE_TRY(
      const nlohmann::json header,
      parseJson(json, headerName,
                {.bytes = kMaxSafetensorsHeaderBytes, .depth = 8, .elements = 4'000'000, .allowsWideIntegers = true}));
  SafetensorsHeader result;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey) {
      CLEAVE_TRY(result.metadata, readMetadata(value, where));
      continue;
    }
    CLEAVE_TRY(WeightSource entry, readEntry(value, {where, name}));
    result.tensors.emplace_hint(result.tensors.end(), name, std::move(entry));
  }
  CLEAVE_TRY_VOID(checkTiling(result.tensors, fileBytes - dataOffset, where));
  for (auto& [name, entry] : result.tensors) entry.offset += dataOffset;
  return result;
}

using ReadAt = std::function<Result<void>(std::int64_t offset, std::span<std::byte> out)>;

Result<SafetensorsHeader> readHeader(const ReadAt& readAt, std::int64_t fileBytes, std::string_view where) {
  if (fileBytes < kLengthBytes) {
    return fail(ErrorCode::BadInput,
                "{} has {}, but a safetensors file begins with 8 bytes of header length. It is truncated: download "
                "it again.",
                where, counted(fileBytes, "byte"));
  }
  std::array<std::byte, kLengthBytes> raw;
  CLEAVE_TRY_VOID(readAt(0, raw));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) length |= std::to_integer<std::uint64_t>(raw[i]) << (8 * i);
  constexpr std::uint64_t kLfsPointer = 0x206e6f6973726576;  // "version ", the start of a Git LFS pointer
  if (length == kLfsPointer) {
    return fail(ErrorCode::BadInput, "{} is a Git LFS pointer, not the file itself. Run git lfs pull in its folder.",
                where);
  }
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return fail(ErrorCode::BadInput,
                "{} announces a header of {} bytes; the limit is {}. It is not a safetensors file, or it is damaged.",
                where, length, kMaxSafetensorsHeaderBytes);
  }
  const auto headerBytes = static_cast<std::int64_t>(length);
  if (headerBytes > fileBytes - kLengthBytes) {
    return fail(ErrorCode::BadInput,
                "{} announces a header of {}, but only {}. The file is truncated: download it "
                "again.",
                where, counted(headerBytes, "byte"), counted(fileBytes - kLengthBytes, "follows", "follow"));
  }
  std::string json(static_cast<std::size_t>(headerBytes), '\0');
  CLEAVE_TRY_VOID(readAt(kLengthBytes, std::as_writable_bytes(std::span(json))));
  return parseHeaderJson(json, kLengthBytes + headerBytes, fileBytes, where);
}

/// Rejects a reserved name, bytes that do not fit 64 bits, and a duplicate name.
Result<void> checkWritable(std::span<const NamedType> tensors, const fs::path& file) {
  std::vector<std::string_view> names;
  for (const NamedType& tensor : tensors) {
    const EntryContext context{file.native(), tensor.name};
    if (tensor.name == kMetadataKey) return context.refuse("cannot be written: the format reserves this name");
    const auto elements = checkedProduct(tensor.type.shape);
    if (!elements || !checkedMul(*elements, graph::itemSize(tensor.type.dtype)))
      return context.refuse("cannot be written: its sizes do not make a tensor: {}", graph::toText(tensor.type));
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return fail(ErrorCode::BadInput, "{}: tensor {} cannot be written twice.", file.string(), quotedText(*twice));
  return {};
}

Result<std::string> headerOf(std::span<const NamedType> sorted, const std::map<std::string, std::string>& metadata,
                             const fs::path& file) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  auto& members = header.get_ref<nlohmann::ordered_json::object_t&>();  // appended, because the object's own insertion
                                                                        // searches linearly
  if (!metadata.empty()) members.emplace_back(std::string(kMetadataKey), nlohmann::ordered_json(metadata));
  std::int64_t end = 0;
  for (const NamedType& tensor : sorted) {
    const std::int64_t begin = std::exchange(end, end + graph::sizeInBytes(tensor.type));
    nlohmann::ordered_json entry;
    entry["dtype"] = safetensorsName(tensor.type.dtype);
    entry["shape"] = tensor.type.shape;
    entry["data_offsets"] = {begin, end};
    members.emplace_back(tensor.name, std::move(entry));
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::BadInput, "{} cannot be written: a tensor's name or the metadata is not valid UTF-8.",
                file.string());
  }
  json.resize((json.size() + 7) / 8 * 8, ' ');  // aligns the start of the data
  if (std::ssize(json) <= kMaxSafetensorsHeaderBytes) return json;
  return fail(ErrorCode::BadInput, "{} cannot be written: its header would have {} bytes, but the format allows {}.",
              file.string(), json.size(), kMaxSafetensorsHeaderBytes);
}

}  // namespace

std::string_view safetensorsName(DType dtype) {
  const auto* row =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& entry) { return entry.second == dtype; });
  CLEAVE_CHECK(row != kDTypes.end(), "dtype {}", static_cast<int>(dtype));
  return row->first;
}

Result<SafetensorsHeader> readSafetensorsHeader(const fs::path& file) {
  CLEAVE_TRY(SafetensorsFile opened, SafetensorsFile::open(file));
  return std::move(opened).receiveHeader();
}

Result<SafetensorsFile> SafetensorsFile::open(const fs::path& file) {
  CLEAVE_TRY(RandomAccessFile opened, RandomAccessFile::open(file));
  return of(std::move(opened));
}

Result<SafetensorsFile> SafetensorsFile::of(RandomAccessFile file) {
  const auto readAt = [&](std::int64_t offset, std::span<std::byte> out) { return file.readAt(offset, out); };
  CLEAVE_TRY(SafetensorsHeader header, readHeader(readAt, file.sizeBytes(), file.path().string()));
  return SafetensorsFile(std::move(file), std::move(header));
}

const WeightSource* SafetensorsFile::find(const std::string& name) const {
  const auto found = m_header.tensors.find(name);
  return found == m_header.tensors.end() ? nullptr : &found->second;
}

Result<void> SafetensorsFile::read(const WeightSource& tensor, std::int64_t first, std::span<std::byte> out) const {
  return m_file.readAt(tensor.offset + first, out);
}

Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view content, std::string_view where) {
  const auto bytes = std::as_bytes(std::span(content));
  const auto readAt = [&](std::int64_t offset, std::span<std::byte> out) -> Result<void> {
    const auto part = bytes.subspan(static_cast<std::size_t>(offset), out.size());
    std::copy(part.begin(), part.end(), out.begin());
    return {};
  };
  return readHeader(readAt, std::ssize(content), where);
}

std::vector<std::size_t> SafetensorsWriter::order(std::span<const NamedType> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int aSize = graph::itemSize(tensors[a].type.dtype), bSize = graph::itemSize(tensors[b].type.dtype);
    return aSize != bSize ? aSize > bSize : tensors[a].name < tensors[b].name;
  });
  return order;
}

Result<SafetensorsWriter> SafetensorsWriter::open(const fs::path& file, std::span<const NamedType> tensors,
                                                  const std::map<std::string, std::string>& metadata) {
  CLEAVE_TRY_VOID(checkWritable(tensors, file));
  std::vector<NamedType> sorted;
  for (const std::size_t index : order(tensors)) sorted.push_back(tensors[index]);
  CLEAVE_TRY(const std::string header, headerOf(sorted, metadata, file));
  std::string length;
  for (int i = 0; i < kLengthBytes; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  CLEAVE_TRY(OutputFile out, OutputFile::open(file));
  CLEAVE_TRY_VOID(out.write(length));
  CLEAVE_TRY_VOID(out.write(header));
  return SafetensorsWriter(std::move(out), file.native(), std::move(sorted));
}

Result<void> SafetensorsWriter::write(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little, "payloads are written in memory order");
  CLEAVE_CHECK(m_next < m_toWrite.size(), "{} tensors are written", m_toWrite.size());
  const NamedType& tensor = m_toWrite[m_next++];
  if (std::ssize(bytes) == graph::sizeInBytes(tensor.type)) return m_out.write(bytes);
  return EntryContext{m_file, tensor.name}.refuse("cannot be written: it has {}, which do not make a {}",
                                                  counted(std::ssize(bytes), "byte"), graph::toText(tensor.type));
}

Result<void> writeSafetensors(const fs::path& file, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<NamedType> types;
  for (const TensorView& tensor : tensors) types.push_back({tensor.name, tensor.type});
  CLEAVE_TRY(SafetensorsWriter writer, SafetensorsWriter::open(file, types, metadata));
  for (const std::size_t index : SafetensorsWriter::order(types)) CLEAVE_TRY_VOID(writer.write(tensors[index].bytes));
  return writer.finish();
}

}  // namespace cleave::formats
