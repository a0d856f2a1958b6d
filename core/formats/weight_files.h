#pragma once
/// Which files of a model folder hold its weights, by the names Hugging Face tools write.
///
/// In this order: `model.safetensors` (as transformers does, even beside an index that does not name it),
/// `model.safetensors.index.json`, every `model*.safetensors`, a single other `*.safetensors` file. `expected*` and
/// `adapter*` files are never weights. Weights in other formats only (pickle, GGUF, ...) are refused with the way out.
/// All errors are BadInput.
#include "formats/exported_program.h"
#include "formats/safetensors.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::formats {

/// Of model.safetensors.index.json; a larger one is refused.
inline constexpr std::int64_t kMostIndexBytes = 256 << 20;

struct WeightFiles {
  std::vector<std::string> files;                ///< relative to the folder, sorted; empty: no weights
  std::map<std::string, std::string> announced;  ///< tensor → file, from the index; empty without one
};

Result<WeightFiles> findWeightFiles(const fs::path& folder);
/// What the folder's index says, whether or not the files are there.
Result<WeightFiles> readWeightIndex(const fs::path& folder);
/// The choice among names alone, sorted, of a place that has neither `model.safetensors` nor an index; `where` names it
/// in errors.
Result<std::vector<std::string>> weightFilesAmong(const std::vector<std::string>& names, const std::string& where);

/// Refuses file names of an index that could lead out of the folder or are not safetensors: empty, absolute, with a
/// drive letter, `..`, a backslash or NUL, or not ending in `.safetensors`. The error is the end of a sentence: "is
/// absolute ...".
Result<void> checkWeightFileName(std::string_view name);

/// Opens a weight file that a folder, an index or a plan names: the one way for whoever reads a model, here and in the
/// ranks.
///
/// A name and a link are two things. The name may come with a download, an index or a plan, and is not believed: it
/// stays inside the folder by itself (checkWeightFileName). A link was made here, by who may write into the folder, and
/// leads where they want: into a Hub cache's blobs, to another disk (`ln -s /data/models/x/model.safetensors`). It is
/// followed if its maker is the owner of the folder it lies in, this user or root; in a folder where many may write,
/// nobody else's is. So nothing is read that this user did not ask for, and with no other rights than this user's.
///
/// What is checked is the file that was opened, whatever becomes of its name meanwhile. Errors, and the file's path(),
/// call it by its name in the folder (a blob is called by its hash). BadInput when it does not exist.
Result<RandomAccessFile> openWeightFile(const fs::path& folder, const std::string& name);
/// The same with its header.
Result<SafetensorsFile> openWeights(const fs::path& folder, const std::string& name);

/// The safetensors files that a path names, a file or a folder of them, with what they hold.
struct WeightsBeside {
  fs::path folder;        ///< absolute
  WeightSources tensors;  ///< files relative to the folder
};
Result<WeightsBeside> readWeightsBeside(const fs::path& path);

/// Where the weights of a model lie.
struct WeightPlaces {
  fs::path folder;   ///< of the safetensors files
  fs::path archive;  ///< of an exported program, called by its file name; empty: none

  /// `source` as a plan names its model: a folder, its config.json, or an archive (`isExported`); `beside`: as
  /// readWeightsBeside takes it, or empty.
  static WeightPlaces of(const fs::path& source, bool isExported, const fs::path& beside);
};

/// An open file of weights, of either kind.
class WeightFile {
 public:
  explicit WeightFile(SafetensorsFile file) : m_file(std::move(file)) {}
  explicit WeightFile(ArchivedWeights archived) : m_file(std::move(archived)) {}
  std::string where() const;
  /// Where the bytes of its tensors lie, by WeightSource::offset.
  const RandomAccessFile& file() const;
  /// Null where the file has no tensor of this name.
  const WeightSource* find(const std::string& name) const;
  /// Fills `out` with elements of the tensor from `first` on, counted through its dimensions in `order` (of a tensor
  /// that lies row-major, their own order).
  Result<void> readElements(const WeightSource& tensor, std::span<const std::size_t> order, std::int64_t first,
                            std::span<std::byte> out) const;
  /// What has been read so far: headers do not count.
  std::int64_t payloadBytesRead() const;

 private:
  std::variant<SafetensorsFile, ArchivedWeights> m_file;
};

/// Reads the weights of one model: each file is opened, and its header checked, once.
class WeightReader {
 public:
  explicit WeightReader(WeightPlaces places) : m_places(std::move(places)) {}
  /// As openWeightFile, or the archive; the file lives as long as this.
  Result<const WeightFile*> open(const std::string& name);
  /// Of all its files: the headers do not count.
  std::int64_t payloadBytesRead() const;

 private:
  WeightPlaces m_places;
  std::map<std::string, WeightFile> m_files;
};

}  // namespace cleave::formats
