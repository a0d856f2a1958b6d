#pragma once
/// Writes small files and model folders for tests into a temporary folder.
#include <QTemporaryDir>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace cleave::test {

namespace fs = std::filesystem;

/// A safetensors file as text: the length of `header`, then `header`, then `dataBytes` bytes of data.
inline std::string safetensorsBytes(std::string_view header, std::size_t dataBytes = 0) {
  std::string content;
  for (int i = 0; i < 8; ++i) content += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  content += header;
  content.append(dataBytes, '\0');
  return content;
}

/// A valid file of one float32 tensor of two elements.
inline std::string oneTensor(std::string_view name) {
  return safetensorsBytes("{\"" + std::string(name) + "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
                          8);
}

class TemporaryFolder {
 public:
  fs::path path() const { return fs::path(m_folder.path().toStdString()); }

  /// Creates missing folders.
  fs::path write(const fs::path& relative, std::string_view content) const {
    const fs::path file = path() / relative;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  QTemporaryDir m_folder;
};

}  // namespace cleave::test
