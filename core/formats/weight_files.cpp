#include "formats/weight_files.h"
#include "formats/exported_weights.h"

#include "base/characters.h"
#include "base/json.h"
#include "base/quantities.h"

#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

namespace cleave::formats {
namespace {

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kSuffix = ".safetensors";

/// Formats that Cleave does not read, recognised by their suffix.
struct ForeignFormat {
  std::string_view suffix, name, wayOut;
};
constexpr std::string_view kFromPickle =
    "a pickle can run any program when it is loaded, so Cleave does not read it. If you trust it, convert it once "
    "with: python -c \"import sys; from transformers import AutoModelForCausalLM as M; "
    "M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2])\" FOLDER NEW_FOLDER";
constexpr std::string_view kFromHub =
    "Cleave reads safetensors. Download the model's safetensors files, or open a folder with only its config.json";
constexpr ForeignFormat kForeignFormats[] = {
    {".bin", "PyTorch pickle", kFromPickle},
    {".pt", "PyTorch pickle", kFromPickle},
    {".pth", "PyTorch pickle", kFromPickle},
    {".ckpt", "PyTorch pickle", kFromPickle},
    {".gguf", "GGUF", kFromHub},
    {".ggml", "GGML", kFromHub},
    {".h5", "TensorFlow", kFromHub},
    {".msgpack", "Flax", kFromHub},
    {".onnx", "ONNX", kFromHub},
};

/// Files that a Trainer leaves beside a model. They are pickles, but not weights.
bool isTrainerState(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"training_args.", "optimizer.", "scheduler.", "scaler.", "rng_state"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Result<std::vector<std::string>> filesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (!it->is_directory(ignored)) {
      names.push_back(name);
    } else if (name == kIndexFile || (name.starts_with("model") && name.ends_with(kSuffix))) {
      // A folder with such a name is probably meant to be weights. Ignoring it silently would be wrong.
      return fail(ErrorCode::BadInput, "{} is a directory, but a file of that name would hold weights: {}.",
                  it->path().string(), "rename it, or replace it with the file");
    }
  }
  if (error) return fail(ErrorCode::BadInput, "Cannot list {}: {}.", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool contains(const std::vector<std::string>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

}  // namespace

Result<WeightFiles> readWeightIndex(const fs::path& folder) {
  const fs::path file = folder / kIndexFile;
  CLEAVE_TRY(
      const nlohmann::json json,
      readJsonFile(file, {.bytes = kMostIndexBytes, .depth = 16, .elements = 4'000'000, .allowsWideIntegers = true}));
  CLEAVE_TRY(const JsonObject index, JsonObject::of(json, file.string()));
  const nlohmann::json* map = index.find("weight_map");
  if (map == nullptr || !map->is_object())
    return index.wrong("weight_map", "an object that maps each tensor to its file");
  if (map->empty())
    return fail(ErrorCode::BadInput, "{}: weight_map has no tensors. Download the file again.", file.string());
  WeightFiles weights;
  std::set<std::string> files;
  for (const auto& [tensor, value] : map->items()) {
    const auto refuse = [&, &tensor = tensor](std::string_view why) {
      return fail(ErrorCode::BadInput, "{}: weight_map[{}] {}", file.string(), quotedText(tensor), why);
    };
    if (!value.is_string()) return refuse(fmt::format("must be a file name, but it is {}.", describe(value)));
    const auto& name = value.get_ref<const std::string&>();
    const auto isSafe = checkWeightFileName(name);
    if (!isSafe) return refuse(fmt::format("is {}: {}", quotedText(name), isSafe.error().message));
    const std::string normal = fs::path(name).lexically_normal().string();  // "./a" and "a" are one file
    files.insert(normal);
    weights.announced.emplace(tensor, normal);
  }
  weights.files.assign(files.begin(), files.end());
  return weights;
}

namespace {

/// Names the first file of the index that is missing in the folder.
Result<void> checkComplete(const WeightFiles& weights, const fs::path& folder) {
  std::vector<std::string> missing;
  for (const std::string& file : weights.files) {
    std::error_code ignored;
    if (!fs::exists(folder / file, ignored)) missing.push_back(file);
  }
  if (missing.empty()) return {};
  const auto wants = std::find_if(weights.announced.begin(), weights.announced.end(),
                                  [&](const auto& entry) { return entry.second == missing.front(); });
  const std::string others = missing.size() > 1 ? fmt::format(" (and {} more of the index)", missing.size() - 1) : "";
  return fail(
      ErrorCode::BadInput,
      "{} is missing{}: {} says that it holds {}. Download it again, or open config.json in a folder of its own.",
      (folder / missing.front()).string(), others, kIndexFile, quotedText(wants->first));
}

/// `model-00002-of-00003.safetensors` is one of the 3 files of the family "model".
struct ShardFamily {
  std::string prefix;
  int count = 0;
  auto operator<=>(const ShardFamily&) const = default;
  std::string fileName(int index) const { return fmt::format("{}-{:05}-of-{:05}{}", prefix, index, count, kSuffix); }
};

std::optional<ShardFamily> familyOf(std::string_view name) {
  constexpr std::size_t kDigits = 5;
  constexpr std::size_t kTail = std::string_view("-00001-of-00001").size() + kSuffix.size();
  if (name.size() <= kTail) return std::nullopt;
  const auto numberAt = [&](std::size_t fromEnd) {
    int number = 0;
    const char* digits = name.data() + name.size() - fromEnd;
    std::from_chars(digits, digits + kDigits, number);
    return number;
  };
  const int index = numberAt(kTail - 1);
  const ShardFamily family{std::string(name.substr(0, name.size() - kTail)), numberAt(kSuffix.size() + kDigits)};
  // The name is valid only if it is reproduced from its numbers.
  const bool isShard = index >= 1 && index <= family.count && family.fileName(index) == name;
  return isShard ? std::optional(family) : std::nullopt;
}

/// Without an index, the names of shards still contain their total number.
Result<void> checkFamilies(const std::vector<std::string>& shards, const fs::path& folder) {
  std::set<ShardFamily> checked;
  for (const std::string& shard : shards) {
    const auto family = familyOf(shard);
    if (!family || !checked.insert(*family).second) continue;
    for (int index = 1; index <= family->count; ++index) {
      const std::string wanted = family->fileName(index);
      if (contains(shards, wanted)) continue;
      return fail(ErrorCode::BadInput, "{} is missing. It is one of {} according to the name of {}. Download it again.",
                  (folder / wanted).string(), counted(family->count, "file"), shard);
    }
  }
  return {};
}

Result<void> refuseForeignFormats(const std::vector<std::string>& names, const fs::path& folder) {
  for (const ForeignFormat& format : kForeignFormats) {
    for (const std::string& name : names) {
      if (!name.ends_with(format.suffix) || isTrainerState(name)) continue;
      return fail(ErrorCode::BadInput, "{} holds its weights as {} only: {}.", (folder / name).string(), format.name,
                  format.wayOut);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> weightFilesAmong(const std::vector<std::string>& names, const std::string& where) {
  std::vector<std::string> shards, others;
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix) || name.starts_with("expected") || name.starts_with("adapter")) continue;
    (name.starts_with("model") ? shards : others).push_back(name);
  }
  if (!shards.empty()) {
    CLEAVE_TRY_VOID(checkFamilies(shards, where));
    return shards;
  }
  if (others.size() > 1) {
    return fail(ErrorCode::BadInput,
                "{} has {} safetensors files ({}, {}{}) and no {}, so it is unclear which are weights. Name them "
                "model-00001-of-{:05}.safetensors and so on.",
                where, others.size(), others[0], others[1], others.size() > 2 ? ", ..." : "", kIndexFile,
                others.size());
  }
  if (others.empty()) CLEAVE_TRY_VOID(refuseForeignFormats(names, where));
  return others;
}

namespace {

/// A link is trusted if its maker is the folder's owner, this user or the system. Other users can create links only in
/// a folder where many may write (/tmp), and Linux does not follow those there either (fs.protected_symlinks).
bool isTrusted(const struct stat& link, const fs::path& parent) {
  struct stat folder {};
  return link.st_uid == ::geteuid() || link.st_uid == 0 ||
         (::stat(parent.c_str(), &folder) == 0 && link.st_uid == folder.st_uid);
}

/// Checks every link in the name itself. The targets of trusted links are not checked.
Result<void> checkLinks(const fs::path& folder, const fs::path& name) {
  fs::path at = folder;
  for (const fs::path& part : name) {
    const fs::path parent = at;
    at /= part;
    struct stat info {};
    if (::lstat(at.c_str(), &info) != 0 || !S_ISLNK(info.st_mode) || isTrusted(info, parent)) continue;
    return fail(ErrorCode::BadInput,
                "{} is a link that neither you nor the owner of {} made. Put the file itself there.", at.string(),
                parent.string());
  }
  return {};
}

}  // namespace

Result<void> checkWeightFileName(std::string_view name) {
  const auto refuse = [](std::string_view why) {
    return fail(ErrorCode::BadInput, "{}; it must name a .safetensors file inside the model folder.", why);
  };
  if (name.empty()) return refuse("the name is empty");
  if (name.find('\0') != std::string_view::npos) return refuse("the name contains a NUL character");
  if (std::ranges::any_of(name, [](unsigned char c) { return c < ' ' || c == 0x7F; }))
    return refuse("the name contains a control character");
  if (name.find('\\') != std::string_view::npos) return refuse("the name contains a backslash");
  if (name.front() == '/') return refuse("the path is absolute");
  if (name.size() >= 2 && name[1] == ':' && isAsciiLetter(name[0]))
    return refuse("the path begins with a drive letter");
  for (const fs::path& part : fs::path(name)) {
    if (part == "..") return refuse("the path contains \"..\"");
  }
  const bool isPickle = name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
  if (isPickle) return refuse("it is a pickle, which Cleave does not read");
  if (!name.ends_with(kSuffix) || name.size() == kSuffix.size()) return refuse("the name does not end in .safetensors");
  return {};
}

Result<RandomAccessFile> openWeightFile(const fs::path& folder, const std::string& name) {
  CLEAVE_TRY_VOID(withContext(checkWeightFileName(name), fmt::format("Weight file {}", quotedText(name))));
  const fs::path file = folder / name;
  CLEAVE_TRY(RandomAccessFile opened, RandomAccessFile::open(file));
  CLEAVE_TRY_VOID(checkLinks(folder, name));
  // The target of these links must be the opened file.
  if (opened.isAt(file)) return opened;
  return fail(ErrorCode::BadInput, "{} was replaced while it was opened. Try again when nothing writes to it.",
              file.string());
}

Result<SafetensorsFile> openWeights(const fs::path& folder, const std::string& name) {
  CLEAVE_TRY(RandomAccessFile file, openWeightFile(folder, name));
  return SafetensorsFile::of(std::move(file));
}

Result<WeightsBeside> readWeightsBeside(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  WeightsBeside beside;
  std::vector<std::string> files;
  if (fs::is_directory(absolute, error)) {
    beside.folder = absolute;
    CLEAVE_TRY(const WeightFiles found, findWeightFiles(absolute));
    if (found.files.empty())
      return fail(ErrorCode::BadInput, "{} has no safetensors files with weights.", path.string());
    files = found.files;
  } else if (!fs::exists(absolute, error)) {
    return fail(ErrorCode::BadInput, "{} does not exist. Name a safetensors file, or a folder with some.",
                path.string());
  } else {
    beside.folder = absolute.parent_path();
    files.push_back(absolute.filename().string());
  }
  for (const std::string& name : files) {
    CLEAVE_TRY(SafetensorsFile file, openWeights(beside.folder, name));
    for (const auto& [tensor, source] : file.tensors()) {
      WeightSource& known = beside.tensors[tensor] = source;
      known.file = name;
    }
  }
  return beside;
}

WeightPlaces WeightPlaces::of(const fs::path& source, bool isExported, const fs::path& beside) {
  std::error_code error;
  const auto folderOf = [&](const fs::path& path) {
    return fs::is_regular_file(path, error) ? path.parent_path() : path;
  };
  if (!isExported) return {folderOf(source), {}};
  return {beside.empty() ? source.parent_path() : folderOf(beside), source};
}

std::string WeightFile::where() const {
  if (const auto* file = std::get_if<SafetensorsFile>(&m_file)) return file->path().string();
  return std::get<ArchivedWeights>(m_file).archive.where();
}

const RandomAccessFile& WeightFile::file() const {
  if (const auto* file = std::get_if<SafetensorsFile>(&m_file)) return file->file();
  return *std::get<ArchivedWeights>(m_file).archive.file();
}

const WeightSource* WeightFile::find(const std::string& name) const {
  if (const auto* file = std::get_if<SafetensorsFile>(&m_file)) return file->find(name);
  const WeightSources& tensors = std::get<ArchivedWeights>(m_file).tensors;
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

Result<void> WeightFile::readElements(const WeightSource& tensor, std::span<const std::size_t> order,
                                      std::int64_t first, std::span<std::byte> out) const {
  if (const auto* file = std::get_if<SafetensorsFile>(&m_file))
    return file->read(tensor, first * graph::itemSize(tensor.type.dtype), out);
  return formats::readElements(std::get<ArchivedWeights>(m_file).archive, tensor, order, first, out);
}

std::int64_t WeightFile::payloadBytesRead() const {
  if (const auto* file = std::get_if<SafetensorsFile>(&m_file)) return file->payloadBytesRead();
  const auto& archived = std::get<ArchivedWeights>(m_file);
  return archived.archive.bytesRead() - archived.headerBytes;
}

Result<const WeightFile*> WeightReader::open(const std::string& name) {
  auto at = m_files.find(name);
  if (at == m_files.end()) {
    if (!m_places.archive.empty() && name == exportedFileName(m_places.archive)) {
      CLEAVE_TRY(ArchivedWeights archived, openExportedWeights(m_places.archive));
      at = m_files.emplace(name, WeightFile(std::move(archived))).first;
    } else {
      CLEAVE_TRY(SafetensorsFile file, openWeights(m_places.folder, name));
      at = m_files.emplace(name, WeightFile(std::move(file))).first;
    }
  }
  return &at->second;
}

std::int64_t WeightReader::payloadBytesRead() const {
  std::int64_t bytes = 0;
  for (const auto& [name, file] : m_files) bytes += file.payloadBytesRead();
  return bytes;
}

Result<WeightFiles> findWeightFiles(const fs::path& folder) {
  CLEAVE_TRY(const std::vector<std::string> names, filesIn(folder));
  const bool hasSingle = contains(names, kSingleFile);
  if (contains(names, kIndexFile)) {
    CLEAVE_TRY(WeightFiles indexed, readWeightIndex(folder));
    if (!hasSingle || contains(indexed.files, kSingleFile)) {
      CLEAVE_TRY_VOID(checkComplete(indexed, folder));
      return indexed;
    }
  }
  if (hasSingle) return WeightFiles{{std::string(kSingleFile)}, {}};
  CLEAVE_TRY(std::vector<std::string> files, weightFilesAmong(names, folder.string()));
  return WeightFiles{std::move(files), {}};
}

}  // namespace cleave::formats
