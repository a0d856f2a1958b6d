#include "libtorch/rank/weights/weights.h"

#include "base/quantities.h"
#include "formats/exported_weights.h"
#include "formats/weight_files.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/types.h"
#include "libtorch/rank/execute/fill.h"
#include "libtorch/rank/memory/weight_memory.h"
#include "libtorch/rank/weights/threads.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace cleave::torch_rank {
namespace {

/// Bytes that a thread reads at once. A multiple of the huge page size, so two threads never fault the same page.
constexpr std::int64_t kPartBytes = 4 << 20;

/// Bytes that are loaded between two checks for cancellation.
constexpr std::int64_t kFetchedAtOnce = 32 << 20;

/// Largest gap between rows of a file that is read ahead together with the rows.
constexpr std::int64_t kRowApart = 256 << 10;

/// A parameter of the program with its entry in the shard map.
struct Wanted {
  const program::ParameterShards* shards = nullptr;
  graph::ValueId value;
  bool isRead = false;
};

/// The file and the tensor that contain a piece of a parameter.
struct Stored {
  const formats::WeightFile* file = nullptr;
  const formats::WeightSource* tensor = nullptr;
};

/// "a, b, c and 287 more". A few names are enough to recognise the checkpoint.
std::string someOf(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 3;
  if (names.size() <= kMostNamed) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kMostNamed, ", "),
                     names.size() - kMostNamed);
}

class Loader {
 public:
  Loader(Program& bound, const program::RankProgram& program, const WeightOptions& options,
         std::atomic<std::int64_t>& loadedBytes, const Progress& progress)
      : m_bound(bound), m_program(program), m_options(options), m_loadedBytes(loadedBytes), m_progress(progress) {}

  Result<WeightReport> load() {
    CLEAVE_TRY(std::vector<Wanted> wanted, findParameters());
    std::int64_t total = 0;
    for (const Wanted& w : wanted) total += m_bound.graph().bytesOf(w.value);
    for (const Wanted& w : wanted) {
      if (m_progress.cancelled()) return m_progress.cancelledError("loading weights");
      auto loaded = bridge::translated([&] { return loadOne(w); });
      if (!loaded) return fail(loaded.error().code, "Cannot load {}: {}", w.shards->name, loaded.error().message);
      m_progress.report("loading", m_report.parameterBytes, total);
    }
    m_report.bytesRead = m_files.payloadBytesRead();
    return m_report;
  }

 private:
  const std::vector<program::ShardPiece>& piecesOf(const program::ParameterShards& parameter) const {
    return parameter.piecesByRank[m_options.rank];
  }

  /// All parameters, ordered by file. Returns an error that names some of the parameters without a file.
  Result<std::vector<Wanted>> findParameters() {
    std::unordered_map<std::string_view, const program::ParameterShards*> byName;
    for (const auto& parameter : m_program.parameters) byName[parameter.name] = &parameter;
    std::vector<Wanted> result;
    std::vector<std::string> missing;
    for (const graph::Node& node : m_bound.graph().nodes) {
      if (node.kind != graph::NodeKind::Parameter) continue;
      const graph::Value& value = m_bound.graph().value(node.results[0]);
      const auto entry = byName.find(value.name);
      if (entry == byName.end())
        return fail(ErrorCode::BadInput, "The plan's shard map lacks the parameter {}.", value.name);
      const program::ParameterShards& parameter = *entry->second;
      if (parameter.piecesByRank.size() <= static_cast<std::size_t>(m_options.rank) ||
          parameter.localShape != value.type.shape) {
        return fail(ErrorCode::BadInput, "{} is {} in the plan's shard map, but {} in its program. Plan again.",
                    value.name, graph::toText(parameter.localShape), graph::toText(value.type.shape));
      }
      const bool hasFile = parameter.isStoredFor(m_options.rank);
      if (!hasFile) missing.push_back(value.name);
      result.push_back({&parameter, node.results[0], hasFile && !m_options.skipWeights});
    }
    if (!missing.empty() && !m_options.initMissing && !m_options.skipWeights) {
      return fail(ErrorCode::BadInput,
                  "The checkpoint lacks {} of the model's {}: {}. Use --init-missing to fill them from the seed, or "
                  "--skip-weights to fill all.",
                  missing.size(), counted(std::ssize(result), "parameter"), someOf(missing));
    }
    std::stable_sort(result.begin(), result.end(),
                     [&](const Wanted& a, const Wanted& b) { return fileOf(a) < fileOf(b); });
    return result;
  }
  const std::string& fileOf(const Wanted& wanted) const {
    static const std::string none;
    const auto& pieces = piecesOf(*wanted.shards);
    return wanted.isRead && !pieces.empty() ? pieces.front().file : none;
  }

  Result<void> loadOne(const Wanted& wanted) {
    const graph::Value& value = m_bound.graph().value(wanted.value);
    CLEAVE_TRY(std::optional<at::Tensor> tensor, mapped(wanted, value.type));
    if (!tensor) {
      tensor = emptyParameter(value.type, m_bound.device());
      CLEAVE_TRY_VOID(fillOrRead(wanted, value.name, *tensor));
    }
    const std::int64_t bytes = graph::sizeInBytes(value.type);
    m_report.parameterBytes += bytes;
    m_loadedBytes += bytes;
    return m_bound.setTensor(wanted.value, *tensor);
  }

  /// The part of a file that has exactly the bytes of this tensor, or nullopt if the tensor must be read.
  Result<std::optional<at::Tensor>> mapped(const Wanted& wanted, const graph::TensorType& type) {
    if (!wanted.isRead || m_options.areWritten || !hasOwnMemory(type, m_bound.device())) return std::nullopt;
    const program::ParameterShards& parameter = *wanted.shards;
    const auto& pieces = piecesOf(parameter);
    if (parameter.stacked != 0 || pieces.size() != 1 || parameter.storedDtype != type.dtype) return std::nullopt;
    const program::ShardPiece& piece = pieces.front();
    CLEAVE_TRY(const Region region,
               regionOf(parameter.type.shape, parameter.localShape, piece.dim, piece.start, piece.length, 0));
    CLEAVE_TRY(const Stored stored, find(parameter, piece));
    const std::int64_t itemSize = graph::itemSize(type.dtype), bytes = graph::sizeInBytes(type);
    const std::int64_t offset = stored.tensor->offset + region.wholeIndex(0) * itemSize;
    const bool isOneStretch = region.outer == 1 && stored.tensor->strides.empty() && region.run() * itemSize == bytes;
    if (!isOneStretch || offset % itemSize != 0) return std::nullopt;
    const RandomAccessFile& file = stored.file->file();
    CLEAVE_TRY(FileMapping values, file.map(offset, bytes));
    for (std::int64_t first = 0; first < bytes; first += kFetchedAtOnce) {
      if (m_progress.cancelled()) return m_progress.cancelledError("loading weights");
      CLEAVE_TRY_VOID(values.read(first, std::min(kFetchedAtOnce, bytes - first)));
    }
    if (std::ranges::find(m_report.inUse, file.path(), &RandomAccessFile::path) == m_report.inUse.end())
      m_report.inUse.push_back(file);
    return mappedParameter(type, std::move(values));
  }

  Result<void> fillOrRead(const Wanted& wanted, const std::string& name, const at::Tensor& tensor) {
    // The last rows of a padded vocabulary are not part of any piece.
    if (!wanted.isRead || elementsRead(*wanted.shards) < tensor.numel()) tensor.zero_();
    if (wanted.isRead)
      return wanted.shards->stacked == 0 ? readWhole(*wanted.shards, tensor) : readStacked(*wanted.shards, tensor);
    m_report.initialised.push_back(name);
    return fill(*wanted.shards, name, tensor);
  }

  static graph::Shape shapeOf(const program::ParameterShards& parameter, const program::ShardPiece& piece) {
    graph::Shape shape = parameter.storedShape();
    if (piece.dim >= 0) shape[static_cast<std::size_t>(piece.dim)] = piece.length;
    return shape;
  }

  /// Total number of elements in all pieces.
  std::int64_t elementsRead(const program::ParameterShards& parameter) const {
    std::int64_t elements = 0;
    for (const program::ShardPiece& piece : piecesOf(parameter))
      elements += graph::elementCount(shapeOf(parameter, piece));
    return elements;
  }

  /// Uses the parameter's own name and shape, because the checkpoint's tensors may differ or be missing.
  Result<void> fill(const program::ParameterShards& parameter, const std::string& name, const at::Tensor& tensor) {
    std::int64_t localStart = 0;
    for (const auto& part : program::wholeRegions(parameter, m_program.ranks, m_options.rank)) {
      CLEAVE_TRY(const Region region,
                 regionOf(parameter.type.shape, parameter.localShape, part.dim, part.start, part.length, localStart));
      localStart += part.length;
      const int dimensions = static_cast<int>(parameter.type.shape.size());
      CLEAVE_TRY_VOID(initialise(tensor, region, name, dimensions, m_program.seed));
    }
    return {};
  }

  Result<void> readWhole(const program::ParameterShards& parameter, const at::Tensor& tensor) {
    std::int64_t localStart = 0;
    for (const program::ShardPiece& piece : piecesOf(parameter)) {
      CLEAVE_TRY(const Region region, regionOf(parameter.type.shape, parameter.localShape, piece.dim, piece.start,
                                               piece.length, localStart));
      localStart += piece.length;
      CLEAVE_TRY_VOID(readPiece(parameter, piece, region, tensor));
    }
    return {};
  }

  /// Reads the pieces one after the other.
  Result<void> readStacked(const program::ParameterShards& parameter, const at::Tensor& tensor) {
    const graph::Shape stored = parameter.storedShape();
    const at::Tensor flat = tensor.view({-1});
    std::int64_t first = 0;
    for (const program::ShardPiece& piece : piecesOf(parameter)) {
      const graph::Shape shape = shapeOf(parameter, piece);
      const std::int64_t count = graph::elementCount(shape);
      CLEAVE_TRY(const Region region, regionOf(stored, shape, piece.dim, piece.start, piece.length, 0));
      CLEAVE_TRY_VOID(readPiece(parameter, piece, region, flat.narrow(0, first, count).view(shape)));
      first += count;
    }
    return {};
  }

  Result<Stored> find(const program::ParameterShards& parameter, const program::ShardPiece& piece) {
    CLEAVE_TRY(const formats::WeightFile* file, m_files.open(piece.file));
    const formats::WeightSource* source = file->find(piece.tensor);
    const graph::TensorType expected{parameter.storedDtype, parameter.storedShape()};
    if (!source) {
      return fail(ErrorCode::BadInput, "{} has no tensor {}. It has changed since the plan was made. Plan again.",
                  file->where(), piece.tensor);
    }
    if (source->type != expected) {
      return fail(ErrorCode::BadInput,
                  "{} has {} as {}, but the plan has {}. The file has changed since the plan was made. Plan again.",
                  file->where(), piece.tensor, graph::toText(source->type), graph::toText(expected));
    }
    return Stored{file, source};
  }

  Result<void> readPiece(const program::ParameterShards& parameter, const program::ShardPiece& piece,
                         const Region& region, const at::Tensor& tensor) {
    CLEAVE_TRY(const Stored stored, find(parameter, piece));
    const std::vector<std::size_t> order = formats::storageOrder(*stored.tensor);
    if (std::ranges::is_sorted(order)) return readRegion(*stored.file, *stored.tensor, order, region, tensor);
    return readTransposed(*stored.file, *stored.tensor, order, piece, region, tensor);
  }

  /// Reads a tensor that is stored transposed, and then permutes it.
  Result<void> readTransposed(const formats::WeightFile& file, const formats::WeightSource& source,
                              const std::vector<std::size_t>& order, const program::ShardPiece& piece,
                              const Region& region, const at::Tensor& tensor) {
    graph::Shape whole, part;
    std::vector<std::int64_t> back(order.size());
    int dim = -1;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool isSplit = static_cast<int>(order[i]) == piece.dim;
      if (isSplit) dim = static_cast<int>(i);
      whole.push_back(source.type.shape[order[i]]);
      part.push_back(isSplit ? piece.length : whole.back());
      back[order[i]] = static_cast<std::int64_t>(i);
    }
    CLEAVE_TRY(const Region asStored, regionOf(whole, part, dim, piece.start, piece.length, 0));
    const at::Tensor stored = at::empty(part, tensor.options());
    CLEAVE_TRY_VOID(readRegion(file, source, order, asStored, stored));
    const at::Tensor target = piece.dim < 0 ? tensor : tensor.narrow(piece.dim, region.localStart, piece.length);
    target.copy_(stored.permute(back));
    return {};
  }

  Result<void> readRegion(const formats::WeightFile& file, const formats::WeightSource& source,
                          const std::vector<std::size_t>& order, const Region& region, const at::Tensor& tensor) {
    const std::int64_t itemSize = graph::itemSize(source.type.dtype);
    const auto readInto = [&](std::int64_t row, std::int64_t column, std::int64_t count,
                              std::byte* out) -> Result<void> {
      if (m_progress.cancelled()) return m_progress.cancelledError("loading weights");
      return file.readElements(source, order, region.wholeIndex(row) + column,
                               {out, static_cast<std::size_t>(count * itemSize)});
    };
    const at::Tensor rows = rowsOf(tensor, region);
    const std::int64_t apart = (region.wholeSize - region.length) * region.inner * itemSize;
    if (rows.numel() > 0 && source.strides.empty() && apart <= kRowApart) {
      const std::int64_t first = region.wholeIndex(0), end = region.wholeIndex(region.outer - 1) + region.run();
      file.file().willRead(source.offset + first * itemSize, (end - first) * itemSize);
    }
    const at::ScalarType stored = bridge::toScalarType(source.type.dtype);
    if (stored == tensor.scalar_type() && tensor.is_cpu()) return readInPlace(rows, readInto);
    return fillThroughStaging(rows, stored, readInto);
  }

  /// Reads with LibTorch's number of threads. A part is a part of a long row, or several short rows.
  static Result<void> readInPlace(const at::Tensor& rows, const Producer& readInto) {
    if (rows.numel() == 0) return {};
    const std::int64_t outer = rows.size(0), run = rows.size(1), stride = rows.stride(0);
    const std::int64_t itemSize = rows.element_size(), most = kPartBytes / itemSize;
    const std::int64_t columns = std::min(run, most), rowsAtOnce = std::max<std::int64_t>(1, most / run);
    const auto ceilDiv = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    const std::int64_t across = ceilDiv(run, columns), down = ceilDiv(outer, rowsAtOnce);
    auto* const out = static_cast<std::byte*>(rows.data_ptr());
    return onThreads(at::get_num_threads(), across * down, [&](std::int64_t part) -> Result<void> {
      const std::int64_t first = part / across * rowsAtOnce, column = part % across * columns;
      for (std::int64_t row = first; row < std::min(first + rowsAtOnce, outer); ++row) {
        const std::int64_t count = std::min(columns, run - column);
        CLEAVE_TRY_VOID(readInto(row, column, count, out + (row * stride + column) * itemSize));
      }
      return {};
    });
  }

  Program& m_bound;
  const program::RankProgram& m_program;
  const WeightOptions& m_options;
  std::atomic<std::int64_t>& m_loadedBytes;
  const Progress& m_progress;
  formats::WeightReader m_files{m_options.places};
  WeightReport m_report;
};

}  // namespace

Result<WeightReport> loadWeights(Program& bound, const program::RankProgram& program, const WeightOptions& options,
                                 std::atomic<std::int64_t>& loadedBytes, const Progress& progress) {
  return Loader(bound, program, options, loadedBytes, progress).load();
}

Result<void> checkUnwritten(const WeightReport& report) {
  for (const RandomAccessFile& file : report.inUse) {
    if (file.isAsOpened()) continue;
    return fail(ErrorCode::BadInput,
                "{} was written to while the ranks used it, so the outputs are wrong. Run again, and do not write to "
                "this file.",
                file.path().string());
  }
  return {};
}

}  // namespace cleave::torch_rank
