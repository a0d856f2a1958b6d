// A model folder with three files cut from the input at its first two NUL bytes: config.json, the index, a shard.
// Opening always returns, and an accepted folder's tensors are inside its files.
#include <unistd.h>

#include <fstream>

#include "formats/model_folder.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cleave;
using namespace cleave::formats;

namespace {

/// One folder for the life of the process, in memory if the system supports it.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const fs::path parent = fs::is_directory("/dev/shm", error) ? fs::path("/dev/shm") : fs::temp_directory_path();
    path = parent / fmt::format("cleave-fuzz-{}", ::getpid());
    fs::create_directory(path);
  }
  ~Scratch() { fs::remove_all(path); }
  /// An empty part means that the file is missing.
  void write(const char* name, std::string_view content) const {
    if (content.empty()) {
      fs::remove(path / name);
    } else {
      std::ofstream(path / name, std::ios::binary) << content;
    }
  }
  fs::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Scratch scratch;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto part = [&] {
    const std::string_view first = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), first.size() + 1));
    return first;
  };
  scratch.write("config.json", part());
  scratch.write("model.safetensors.index.json", part());
  scratch.write("model-00001-of-00001.safetensors", rest);
  const auto model = openModelFolder(scratch.path);
  wasAccepted = model.has_value();
  if (!model) {
    CLEAVE_CHECK(!model.error().message.empty() && model.error().code == ErrorCode::BadInput);
    return 0;
  }
  for (const auto& [name, tensor] : model->tensors) {
    const auto fileBytes = static_cast<std::int64_t>(fs::file_size(scratch.path / tensor.file));
    CLEAVE_CHECK(tensor.offset >= 0 && tensor.offset + tensor.bytes <= fileBytes);
  }
  return 0;
}
