#include "formats/exported_weights.h"

#include "base/checked.h"
#include "base/json.h"
#include "formats/exported_arguments.h"
#include "graph/type_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace cleave::formats {
namespace {

using nlohmann::json;

constexpr JsonLimits kPayloadLimits{.bytes = 64 << 20, .depth = 16, .elements = 8'000'000};

/// Describes the checkpoint tensors that cannot be read.
struct Unreadable {
  std::int64_t pickled = 0, empty = 0;
};

Result<std::vector<std::int64_t>> readNumbers(const JsonObject& meta, const char* key) {
  CLEAVE_TRY(const JsonArray list, meta.array(key));
  std::vector<std::int64_t> numbers;
  ExportedTypes types;
  for (std::size_t i = 0; i < list.size() && i <= graph::kMaxDimensions; ++i) {
    CLEAVE_TRY(const ExportedSize size, types.readSize(list[i], list.nameOf(i)));
    if (size.expression || *size.example < 0) return list.wrong(i, "a non-negative number");
    numbers.push_back(*size.example);
  }
  return numbers;
}

/// One past the last element of the storage that the view touches; nullopt: beyond 64 bits.
std::optional<std::int64_t> extentOf(const graph::Shape& shape, const std::vector<std::int64_t>& strides,
                                     std::int64_t offset) {
  std::optional<std::int64_t> last = offset;
  for (std::size_t i = 0; last && i < shape.size(); ++i) {
    const auto span = checkedMul(shape[i] - 1, strides[i]);
    last = span ? checkedAdd(*last, *span) : std::nullopt;
  }
  return last ? checkedAdd(*last, 1) : std::nullopt;
}

bool isRowMajor(const graph::Shape& shape, const std::vector<std::int64_t>& strides) {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

class PayloadReader {
 public:
  PayloadReader(const ZipArchive& archive, std::string folder, Unreadable& unreadable)
      : m_archive(archive), m_folder(std::move(folder)), m_unreadable(unreadable) {}

  Result<void> read(const ZipEntry& config, WeightSources& tensors) {
    const std::string where = fmt::format("{}: {}", m_archive.where(), config.name);
    CLEAVE_TRY(const std::string text, m_archive.text(config, kPayloadLimits.bytes));
    CLEAVE_TRY(const json root, parseJson(text, where, kPayloadLimits));
    CLEAVE_TRY(const JsonObject fields, JsonObject::of(root, where));
    CLEAVE_TRY(const JsonObject payloads, fields.object("config"));
    for (const auto& [name, payload] : payloads.json().items()) {
      CLEAVE_TRY(const JsonObject one,
                 JsonObject::at(payload, fmt::format("{}: tensor {}", m_archive.where(), quotedText(name))));
      CLEAVE_TRY(auto tensor, readTensor(one));
      if (!tensor) continue;
      if (!tensors.emplace(name, *std::move(tensor)).second)
        return fail(ErrorCode::BadInput, "{} is both a weight and a constant.", one.where());
    }
    return {};
  }

 private:
  /// nullopt: its bytes cannot be read.
  Result<std::optional<WeightSource>> readTensor(const JsonObject& fields) {
    CLEAVE_TRY(const bool isPickled, fields.flag("use_pickle", false));
    if (isPickled) {
      ++m_unreadable.pickled;
      return std::nullopt;
    }
    CLEAVE_TRY(const std::string path, fields.text("path_name"));
    const ZipEntry* entry = path.find('/') == std::string::npos ? m_archive.find(m_folder + path) : nullptr;
    if (!entry)
      return fail(ErrorCode::BadInput, "{} is in {}, which is missing in the archive.", fields.where(),
                  quotedText(path));
    CLEAVE_TRY(const JsonObject meta, fields.object("tensor_meta"));
    WeightSource tensor;
    const json* dtype = meta.find("dtype");
    if (!dtype) return meta.wrong("dtype", "an element type");
    CLEAVE_TRY(tensor.type.dtype, readScalarType(*dtype, meta.nameOf("dtype")));
    CLEAVE_TRY(tensor.type.shape, readNumbers(meta, "sizes"));
    CLEAVE_TRY(tensor.strides, readNumbers(meta, "strides"));
    std::int64_t offset = 0;
    if (const json* written = meta.find("storage_offset")) {
      CLEAVE_TRY(const ExportedSize size, ExportedTypes().readSize(*written, meta.nameOf("storage_offset")));
      if (size.expression || *size.example < 0) return meta.wrong("storage_offset", "a non-negative number");
      offset = *size.example;
    }
    CLEAVE_TRY(const std::int64_t layout, meta.integer("layout", {}, 7));
    if (layout != 7) return meta.wrong("layout", "7, a strided tensor");
    return locate(fields, *entry, std::move(tensor), offset);
  }

  Result<std::optional<WeightSource>> locate(const JsonObject& fields, const ZipEntry& entry, WeightSource tensor,
                                             std::int64_t offset) {
    const graph::Shape& shape = tensor.type.shape;
    const std::int64_t item = graph::itemSize(tensor.type.dtype);
    const auto elements = checkedProduct(shape);
    const auto bytes = elements ? checkedMul(*elements, item) : std::nullopt;
    if (tensor.strides.size() != shape.size() || shape.size() > graph::kMaxDimensions || !bytes) {
      return fail(ErrorCode::BadInput, "{} has the shape {} with {} strides; the numbers must be equal.",
                  fields.where(), graph::toText(shape), tensor.strides.size());
    }
    if (entry.bytes == 0 && *bytes > 0) {
      ++m_unreadable.empty;
      return std::nullopt;
    }
    const auto extent = *elements == 0 ? std::optional<std::int64_t>(0) : extentOf(shape, tensor.strides, offset);
    const auto needed = extent ? checkedMul(*extent, item) : std::nullopt;
    if (!needed || *needed > entry.bytes) {
      return fail(ErrorCode::BadInput, "{} is {} from element {} on, which does not fit the {} bytes of {}.",
                  fields.where(), graph::toText(tensor.type), offset, entry.bytes, quotedText(entry.name));
    }
    if (isRowMajor(shape, tensor.strides)) tensor.strides.clear();
    tensor.offset = entry.offset + (*elements == 0 ? 0 : offset * item);
    tensor.bytes = *bytes;
    return tensor;
  }

  const ZipArchive& m_archive;
  std::string m_folder;
  Unreadable& m_unreadable;
};

constexpr std::string_view kModels = "models/", kJson = ".json";

/// "llama/" and "model" of llama/models/model.json.
std::optional<ArchiveLayout> layoutOf(const std::string& entry) {
  const std::size_t at = entry.rfind(kModels);
  if (at == std::string::npos || !entry.ends_with(kJson) || (at > 0 && entry[at - 1] != '/')) return std::nullopt;
  const std::string model = entry.substr(at + kModels.size(), entry.size() - at - kModels.size() - kJson.size());
  if (model.empty() || model.find('/') != std::string::npos) return std::nullopt;
  return ArchiveLayout{entry.substr(0, at), model, entry};
}

std::string whatElse(const ZipArchive& archive) {
  for (const ZipEntry& entry : archive.entries()) {
    if (entry.name.ends_with("data.pkl"))
      return "it is a PyTorch checkpoint (torch.save), which is a pickle. Convert its weights to safetensors and "
             "open their folder with its config.json, or export the model with torch.export.save";
    if (entry.name.find("data/aotinductor/") != std::string::npos)
      return "it holds compiled code of AOTInductor without a graph. Save the program with torch.export.save";
  }
  return "it is a zip archive without an exported program. Save one with torch.export.save";
}

std::string whyWithoutWeights(const Unreadable& unreadable) {
  if (unreadable.pickled > 0) {
    return "the archive holds its weights as a pickle, which Cleave does not read. Save the program with torch 2.9 "
           "or newer, or give the weights as safetensors with --weights";
  }
  if (unreadable.empty > 0) {
    return "the archive was saved without the values of its weights (fake tensors). Give them as safetensors with "
           "--weights";
  }
  return {};
}

}  // namespace

Result<ArchiveLayout> findProgram(const ZipArchive& archive) {
  constexpr std::string_view kOldProgram = "serialized_exported_program.json";  // torch 2.7 and older
  if (archive.find(kOldProgram)) return ArchiveLayout{"", "", std::string(kOldProgram)};
  std::vector<ArchiveLayout> found;
  for (const ZipEntry& entry : archive.entries()) {
    if (auto layout = layoutOf(entry.name)) found.push_back(*std::move(layout));
  }
  if (found.empty()) return fail(ErrorCode::BadInput, "{}: {}.", archive.where(), whatElse(archive));
  if (found.size() == 1) return found.front();
  const auto named = std::find_if(found.begin(), found.end(), [](const auto& one) { return one.model == "model"; });
  if (named != found.end()) return *named;
  return fail(ErrorCode::BadInput, "{}: it holds {} programs ({}, {}, ...). Save a single program.", archive.where(),
              found.size(), quotedText(found[0].model), quotedText(found[1].model));
}

Result<void> checkIsExportedProgram(const fs::path& path) {
  CLEAVE_TRY(const ZipArchive archive, ZipArchive::open(path));
  CLEAVE_TRY_VOID(findProgram(archive));
  return {};
}

Result<ExportedWeights> readPayloads(const ZipArchive& archive, const ArchiveLayout& layout) {
  ExportedWeights weights;
  Unreadable unreadable;
  for (const auto& [folder, kind] : {std::pair("data/weights/", "weights"), {"data/constants/", "constants"}}) {
    const std::string path = layout.root + folder;
    if (const ZipEntry* config = archive.find(fmt::format("{}{}_{}_config.json", path, layout.model, kind))) {
      CLEAVE_TRY_VOID(PayloadReader(archive, path, unreadable).read(*config, weights.tensors));
    } else if (layout.model.empty() || std::any_of(archive.entries().begin(), archive.entries().end(),
                                                   [&](const auto& entry) { return entry.name.starts_with(path); })) {
      ++unreadable.pickled;  // torch 2.8 and older: one pickle of all
    }
  }
  weights.whyWithout = whyWithoutWeights(unreadable);
  return weights;
}

Result<ArchivedWeights> openExportedWeights(const fs::path& path) {
  CLEAVE_TRY(ZipArchive archive, ZipArchive::open(path));
  CLEAVE_TRY(const ArchiveLayout layout, findProgram(archive));
  CLEAVE_TRY(ExportedWeights weights, readPayloads(archive, layout));
  const std::int64_t headerBytes = archive.bytesRead();
  return ArchivedWeights{std::move(archive), std::move(weights.tensors), headerBytes};
}

std::vector<std::size_t> storageOrder(const WeightSource& tensor) {
  std::vector<std::size_t> order(tensor.type.shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (tensor.strides.empty()) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tensor.strides[a] > tensor.strides[b]; });
  return order;
}

Result<void> readElements(const ZipArchive& archive, const WeightSource& tensor, std::span<const std::size_t> order,
                          std::int64_t first, std::span<std::byte> out) {
  const std::int64_t item = graph::itemSize(tensor.type.dtype);
  std::int64_t left = std::ssize(out) / item;
  CLEAVE_CHECK(first >= 0 && left * item == std::ssize(out) && first <= tensor.bytes / item - left);
  if (tensor.strides.empty()) return archive.readAt(tensor.offset + first * item, out);
  // Number of contiguous elements from the innermost dimension on.
  std::int64_t dense = 1;
  std::size_t inner = order.size();
  while (inner > 0 && (tensor.type.shape[order[inner - 1]] == 1 || tensor.strides[order[inner - 1]] == dense))
    dense *= tensor.type.shape[order[--inner]];
  while (left > 0) {
    std::int64_t block = first / dense, offset = first % dense;
    const std::int64_t count = std::min(left, dense - offset);
    for (std::size_t i = inner; i-- > 0;) {
      const std::int64_t size = tensor.type.shape[order[i]];
      offset += block % size * tensor.strides[order[i]];
      block /= size;
    }
    const auto bytes = static_cast<std::size_t>(count * item);
    CLEAVE_TRY_VOID(archive.readAt(tensor.offset + offset * item, out.first(bytes)));
    out = out.subspan(bytes);
    first += count;
    left -= count;
  }
  return {};
}

std::string exportedFileName(const fs::path& path) { return path.filename().string(); }

}  // namespace cleave::formats
