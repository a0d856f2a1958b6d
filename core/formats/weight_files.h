#pragma once
/// Which files of a model folder hold its weights, by the names Hugging Face tools write.
///
/// In this order: `model.safetensors` (as transformers does, even beside an index that does not name it),
/// `model.safetensors.index.json`, every `model*.safetensors`, a single other `*.safetensors` file. `expected*` and
/// `adapter*` files are never weights. Weights in other formats only (pickle, GGUF, ...) are refused with the way out.
/// All errors are BadInput.
#include "formats/safetensors.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::formats {

struct WeightFiles {
  std::vector<std::string> files;                ///< relative to the folder, sorted; empty: no weights
  std::map<std::string, std::string> announced;  ///< tensor → file, from the index; empty without one
};

Result<WeightFiles> findWeightFiles(const fs::path& folder);

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

/// Reads the weights of one model folder: each file is opened, and its header checked, once.
class WeightReader {
 public:
  explicit WeightReader(fs::path folder) : m_folder(std::move(folder)) {}
  /// As openWeightFile; the file lives as long as this.
  Result<const SafetensorsFile*> open(const std::string& name);
  /// Of all its files: the headers do not count.
  std::int64_t payloadBytesRead() const;

 private:
  fs::path m_folder;
  std::map<std::string, SafetensorsFile> m_files;
};

}  // namespace cleave::formats
