#pragma once
/// Selects the weight files of a model folder by the names that Hugging Face tools write.
///
/// In this order: `model.safetensors` (like transformers, even with an index that does not name it),
/// `model.safetensors.index.json`, every `model*.safetensors`, a single other `*.safetensors` file. `expected*` and
/// `adapter*` files are never weights. Weights in other formats only (pickle, GGUF, ...) are rejected with a remedy.
/// All errors are BadInput.
#include "formats/exported_program.h"
#include "formats/exported_weights.h"
#include "formats/safetensors.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::formats {

/// Limit of model.safetensors.index.json; a larger file is rejected.
inline constexpr std::int64_t kMostIndexBytes = 256 << 20;

struct WeightFiles {
  std::vector<std::string> files;                ///< relative to the folder, sorted; empty: no weights
  std::map<std::string, std::string> announced;  ///< tensor → file, from the index; empty without an index
};

Result<WeightFiles> findWeightFiles(const fs::path& folder);
/// The content of the folder's index, whether or not the files exist.
Result<WeightFiles> readWeightIndex(const fs::path& folder);
/// The choice among names only, sorted, for a place with neither `model.safetensors` nor an index; `where` names it in
/// errors.
Result<std::vector<std::string>> weightFilesAmong(const std::vector<std::string>& names, const std::string& where);

/// Rejects file names of an index that could lead out of the folder or are not safetensors: empty, absolute, with a
/// drive letter, `..`, a backslash or NUL, or not ending in `.safetensors`. The error is the end of a sentence: "is
/// absolute ...".
Result<void> checkWeightFileName(std::string_view name);

/// Opens a weight file that a folder, an index or a plan names. All readers of models use this function, here and in
/// the ranks.
///
/// Names and links are checked differently. A name may come from a download, an index or a plan, and is not trusted: it
/// must stay inside the folder (checkWeightFileName). A link was made locally by someone who may write into the folder,
/// and may lead anywhere: into a Hub cache's blobs, or to another disk (`ln -s /data/models/x/model.safetensors`). It
/// is followed if its maker is the owner of its folder, this user or root. In a folder where many may write, other
/// users' links are not followed. So only files chosen by this user are read, with this user's permissions.
///
/// The checks apply to the opened file, even if its name changes meanwhile. Errors, and the file's path(), use its name
/// in the folder (a blob is named by its hash). BadInput if it does not exist.
Result<RandomAccessFile> openWeightFile(const fs::path& folder, const std::string& name);
/// The same with its header.
Result<SafetensorsFile> openWeights(const fs::path& folder, const std::string& name);

/// The safetensors files at a path, which is a file or a folder, with their tensors.
struct WeightsBeside {
  fs::path folder;        ///< absolute
  WeightSources tensors;  ///< files relative to the folder
};
Result<WeightsBeside> readWeightsBeside(const fs::path& path);

/// Location of a model's weights.
struct WeightPlaces {
  fs::path folder;   ///< folder of the safetensors files
  fs::path archive;  ///< archive of an exported program, referred to by its file name; empty: not an exported program

  /// `source` is a plan's model: a folder, its config.json, or an archive (`isExported`). `beside` is an argument for
  /// readWeightsBeside, or empty.
  static WeightPlaces of(const fs::path& source, bool isExported, const fs::path& beside);
};

/// An open weights file of either kind.
class WeightFile {
 public:
  explicit WeightFile(SafetensorsFile file) : m_file(std::move(file)) {}
  explicit WeightFile(ArchivedWeights archived) : m_file(std::move(archived)) {}
  std::string where() const;
  /// Location of its tensors' bytes, by WeightSource::offset.
  const RandomAccessFile& file() const;
  /// Null: the file has no tensor of this name.
  const WeightSource* find(const std::string& name) const;
  /// Fills `out` with elements of the tensor from `first` on, counted through its dimensions in `order` (row-major
  /// tensors: their own order).
  Result<void> readElements(const WeightSource& tensor, std::span<const std::size_t> order, std::int64_t first,
                            std::span<std::byte> out) const;
  /// Bytes read so far, without headers.
  std::int64_t payloadBytesRead() const;

 private:
  std::variant<SafetensorsFile, ArchivedWeights> m_file;
};

/// Reads the weights of one model. Each file is opened, and its header checked, once.
class WeightReader {
 public:
  explicit WeightReader(WeightPlaces places) : m_places(std::move(places)) {}
  /// Like openWeightFile, or opens the archive. The file lives as long as this object.
  Result<const WeightFile*> open(const std::string& name);
  /// Bytes read from all its files, without headers.
  std::int64_t payloadBytesRead() const;

 private:
  WeightPlaces m_places;
  std::map<std::string, WeightFile> m_files;
};

}  // namespace cleave::formats
