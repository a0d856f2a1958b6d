// The first part of the single file cleave-VERSION-x86_64.run. It unpacks the appended archive into the user's cache
// once, and executes the requested program there. It is linked statically, so it needs only Linux.
//
// After this program the file has a tar archive compressed with zstd, and a last line that packaging/bundle writes: the
// archive's offset, its unpacked size, its name in the cache, and a mark. One process unpacks while others wait. The
// folder gets its final name when all files are on the disk, so a folder with that name is always complete.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kTailBytes = 16 + 1 + 16 + 1 + 16 + 1 + 9;
constexpr std::string_view kMark = "CLEAVE01\n";
constexpr std::size_t kBlockBytes = 512;  // of tar
constexpr std::array<std::string_view, 3> kPrograms{"cleave", "cleave-cli", "cleave-rank"};

[[noreturn]] void fail(const std::string& sentence) {
  std::fprintf(stderr, "cleave: %s\n", sentence.c_str());
  std::exit(4);
}

constexpr const char* kElsewhere = "set XDG_CACHE_HOME to a folder elsewhere";

fs::path cacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return fs::path(cache) / "cleave";
  const char* home = std::getenv("HOME");
  if (!home || !*home) fail("Neither XDG_CACHE_HOME nor HOME is set: set one of them to a folder to unpack into.");
  return fs::path(home) / ".cache/cleave";
}

/// `what`: "The folder X cannot be made".
[[noreturn]] void failToWrite(const std::string& what, unsigned long long neededBytes) {
  if (errno == ENOSPC || errno == EDQUOT)
    fail("The disk of " + cacheFolder().string() + " is full: unpacking Cleave needs " +
         std::to_string(neededBytes / 1'000'000 + 1) + " MB. Free this space, or " + kElsewhere + ".");
  fail(what + " (" + std::strerror(errno) + "): make it writable, or " + kElsewhere + ".");
}

struct Payload {
  int file = -1;
  unsigned long long begin = 0, end = 0, unpackedBytes = 0;
  std::string name;
};

Payload findPayload() {
  Payload payload;
  payload.file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (payload.file < 0) fail(std::string("/proc/self/exe cannot be read (") + std::strerror(errno) + "): mount /proc.");
  const off_t size = ::lseek(payload.file, 0, SEEK_END);
  std::array<char, kTailBytes + 1> tail{};
  const off_t at = size - static_cast<off_t>(kTailBytes);
  std::array<char, 17> name{};
  const bool isWhole =
      at > 0 && ::pread(payload.file, tail.data(), kTailBytes, at) == kTailBytes &&
      std::string_view(tail.data(), kTailBytes).ends_with(kMark) &&
      std::sscanf(tail.data(), "%16llu %16llu %16[0-9a-f]", &payload.begin, &payload.unpackedBytes, name.data()) == 3 &&
      payload.begin < static_cast<unsigned long long>(at);
  if (!isWhole) fail("This file is incomplete: copy or download it again.");
  payload.end = static_cast<unsigned long long>(at);
  payload.name = std::string("bundle-") + name.data();
  return payload;
}

/// Decompresses the archive as it is read.
class Unzipped {
 public:
  explicit Unzipped(const Payload& payload)
      : m_payload(payload), m_at(payload.begin), m_in(ZSTD_DStreamInSize()), m_stream(ZSTD_createDStream()) {}
  ~Unzipped() { ZSTD_freeDStream(m_stream); }
  Unzipped(const Unzipped&) = delete;
  Unzipped& operator=(const Unzipped&) = delete;

  /// Fills all of `out`.
  void read(char* out, std::size_t bytes) {
    ZSTD_outBuffer output{out, bytes, 0};
    while (output.pos < output.size) unzip(output);
  }
  /// Reads the rest. The checksum of all bytes follows the last byte.
  void finish() {
    std::vector<char> rest(ZSTD_DStreamOutSize());
    while (m_left > 0) {
      ZSTD_outBuffer output{rest.data(), rest.size(), 0};
      unzip(output);
    }
  }

 private:
  void unzip(ZSTD_outBuffer& output) {
    if (m_input.pos == m_input.size) refill();
    m_left = ZSTD_decompressStream(m_stream, &output, &m_input);
    if (ZSTD_isError(m_left)) fail("This file is damaged: copy or download it again.");
  }

  void refill() {
    const auto wanted = std::min<unsigned long long>(m_in.size(), m_payload.end - m_at);
    const ssize_t got = ::pread(m_payload.file, m_in.data(), wanted, static_cast<off_t>(m_at));
    if (got <= 0) fail("This file is damaged: copy or download it again.");
    m_at += static_cast<unsigned long long>(got);
    m_input = {m_in.data(), static_cast<std::size_t>(got), 0};
  }

  const Payload& m_payload;
  unsigned long long m_at;
  std::vector<char> m_in;
  ZSTD_DStream* m_stream;
  ZSTD_inBuffer m_input{nullptr, 0, 0};
  std::size_t m_left = 1;  ///< 0 at the end of the archive, if its checksum is right
};

/// A header of POSIX's ustar format, with the fields that this archive uses.
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
      user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
static_assert(sizeof(Header) == kBlockBytes);

template <std::size_t N>
std::string textOf(const char (&field)[N]) {
  return {field, ::strnlen(field, N)};
}

/// The path without the archive's top folder.
fs::path pathOf(const Header& header) {
  const std::string prefix = textOf(header.prefix);
  const fs::path whole = prefix.empty() ? fs::path(textOf(header.name)) : fs::path(prefix) / textOf(header.name);
  fs::path below;
  for (auto part = std::next(whole.begin()); part != whole.end(); ++part) {
    if (*part == "..") fail("This file is damaged: copy or download it again.");
    below /= *part;
  }
  return below;
}

void writeFile(Unzipped& from, const fs::path& path, unsigned long long bytes, mode_t mode, const Payload& payload) {
  const auto cannot = [&] { failToWrite(path.string() + " cannot be written", payload.unpackedBytes); };
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (file < 0) cannot();
  std::vector<char> buffer(1 << 20);
  while (bytes > 0) {
    const auto part = std::min<unsigned long long>(buffer.size(), bytes);
    from.read(buffer.data(), part);
    for (std::size_t at = 0; at < part;) {
      const ssize_t written = ::write(file, buffer.data() + at, part - at);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) cannot();
      at += static_cast<std::size_t>(written);
    }
    bytes -= part;
  }
  if (::close(file) != 0) cannot();
}

void unpack(const Payload& payload, const fs::path& folder) {
  Unzipped from(payload);
  std::array<char, kBlockBytes> skipped{};
  while (true) {
    Header header;
    from.read(reinterpret_cast<char*>(&header), sizeof header);
    if (header.name[0] == '\0') return from.finish();  // the end of an archive is a block of zeros
    const fs::path path = folder / pathOf(header);
    const auto bytes = std::strtoull(textOf(header.size).c_str(), nullptr, 8);
    const auto mode = static_cast<mode_t>(std::strtoul(textOf(header.mode).c_str(), nullptr, 8));
    if (header.type == '5') {
      if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
        failToWrite(path.string() + " cannot be made", payload.unpackedBytes);
    } else if (header.type == '2') {
      if (::symlink(textOf(header.link).c_str(), path.c_str()) != 0)
        failToWrite(path.string() + " cannot be made", payload.unpackedBytes);
    } else {
      writeFile(from, path, bytes, mode, payload);
      if (bytes % kBlockBytes != 0) from.read(skipped.data(), kBlockBytes - bytes % kBlockBytes);
    }
  }
}

/// Removes the unfinished folder at exit().
fs::path unfinished, lockFile;
void removeUnfinished() {
  std::error_code ignored;
  if (unfinished.empty()) return;
  fs::remove_all(unfinished, ignored);
  fs::remove(lockFile, ignored);
  fs::remove(lockFile.parent_path(), ignored);  // only if it is empty
}

/// One process holds the lock. If that process removed the file, a waiting process makes another one.
int lockedFile(const Payload& payload) {
  while (true) {
    const int lock = ::open(lockFile.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0)
      failToWrite("The folder " + lockFile.parent_path().string() + " cannot be written", payload.unpackedBytes);
    while (::flock(lock, LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat held {};
    if (::fstat(lock, &held) != 0 || held.st_nlink > 0) return lock;
    ::close(lock);
  }
}

/// The folder with the bundle in it.
fs::path unpacked(const Payload& payload) {
  const fs::path cache = cacheFolder(), folder = cache / payload.name;
  std::error_code error;
  if (fs::exists(folder / "bin", error)) return folder;
  fs::create_directories(cache, error);
  if (error) {
    errno = error.value();
    failToWrite("The folder " + cache.string() + " cannot be made", payload.unpackedBytes);
  }
  lockFile = cache / (payload.name + ".lock");
  const int lock = lockedFile(payload);
  if (!fs::exists(folder / "bin", error)) {  // otherwise another process has unpacked it
    unfinished = cache / (payload.name + ".part");
    std::atexit(removeUnfinished);
    struct statvfs disk {};
    errno = ENOSPC;
    if (::statvfs(cache.c_str(), &disk) == 0 &&
        static_cast<unsigned long long>(disk.f_bavail) * disk.f_frsize < payload.unpackedBytes)
      failToWrite({}, payload.unpackedBytes);
    std::fprintf(stderr, "cleave: unpacking %llu MB into %s, only this time\n", payload.unpackedBytes / 1'000'000,
                 folder.c_str());
    fs::remove_all(unfinished, error);  // of a process that was killed
    if (::mkdir(unfinished.c_str(), 0755) != 0)
      failToWrite("The folder " + cache.string() + " cannot be written", payload.unpackedBytes);
    unpack(payload, unfinished);
    if (::syncfs(lock) != 0 || ::rename(unfinished.c_str(), folder.c_str()) != 0)
      failToWrite(folder.string() + " cannot be made", payload.unpackedBytes);
    unfinished.clear();
  }
  ::close(lock);
  return folder;
}

bool isProgram(std::string_view name) {
  for (const std::string_view program : kPrograms) {
    if (program == name) return true;
  }
  return false;
}

}  // namespace

/// Selects the program by the name of this file, then by the first argument. The default is the window.
int main(int argc, char** argv) {
  std::string program = argc > 0 ? fs::path(argv[0]).filename().string() : "";
  int first = 1;
  if (!isProgram(program)) {
    program = argc > 1 && isProgram(argv[1]) ? argv[1] : "cleave";
    if (argc > 1 && isProgram(argv[1])) first = 2;
  }
  const fs::path path = unpacked(findPayload()) / "bin" / program;
  std::vector<char*> arguments{const_cast<char*>(path.c_str())};
  for (int i = first; i < argc; ++i) arguments.push_back(argv[i]);
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
  fail(path.string() + " cannot be started (" + std::strerror(errno) + "): " + kElsewhere +
       " that programs may run from, or remove " + path.parent_path().parent_path().string() + " to unpack it again.");
}
