// A library for LD_PRELOAD. The n-th read or write below a folder fails, or the n-th allocation after the first of
// these, with an error that the system could return.
//
//   CLEAVE_FAIL_BELOW=/tmp/x CLEAVE_FAIL_IO=17 LD_PRELOAD=libfail_nth.so cleave-cli ...
//   CLEAVE_FAIL_BELOW=/tmp/x CLEAVE_FAIL_MEMORY=17 ...
//
// Writes fail with ENOSPC, all other calls with EIO; allocations return null. Each process has its own count, including
// those that another one starts.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kDescriptors = 4096;
std::array<std::atomic<bool>, kDescriptors> isBelow;
std::atomic<int> ioCount{0}, memoryCount{0};
std::atomic<bool> hasBegun{false};
int failIo = 0, failMemory = 0;
const char* below = nullptr;
std::size_t belowLength = 0;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

int numberIn(const char* name) {
  const char* const text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}

__attribute__((constructor)) void begin() {
  below = std::getenv("CLEAVE_FAIL_BELOW");
  belowLength = below ? std::strlen(below) : 0;
  failIo = numberIn("CLEAVE_FAIL_IO");
  failMemory = numberIn("CLEAVE_FAIL_MEMORY");
}

bool isPathBelow(const char* path) {
  return below && path && std::strncmp(path, below, belowLength) == 0 &&
         (path[belowLength] == '/' || path[belowLength] == '\0');
}

bool isFdBelow(int fd) { return below && fd >= 0 && fd < kDescriptors && isBelow[static_cast<std::size_t>(fd)]; }

void note(int fd, bool is) {
  if (fd >= 0 && fd < kDescriptors) isBelow[static_cast<std::size_t>(fd)] = is;
}

/// True if this call must fail.
bool counts(int error) {
  hasBegun = true;
  if (++ioCount != failIo) return false;
  errno = error;
  return true;
}

bool memoryFails() { return hasBegun.load(std::memory_order_relaxed) && failMemory > 0 && ++memoryCount == failMemory; }

int openedWith(const char* path, int flags, mode_t mode, int folder, const char* name) {
  const bool is = isPathBelow(path);
  const bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  if (is && counts(writes ? ENOSPC : EIO)) return -1;
  const int fd = folder == AT_FDCWD ? next<int (*)(const char*, int, ...)>(name)(path, flags, mode)
                                    : next<int (*)(int, const char*, int, ...)>("openat64")(folder, path, flags, mode);
  note(fd, is);
  return fd;
}

mode_t modeIn(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeIn(flags, arguments);
  va_end(arguments);
  return openedWith(path, flags, mode, AT_FDCWD, "open");
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeIn(flags, arguments);
  va_end(arguments);
  return openedWith(path, flags, mode, AT_FDCWD, "open64");
}

int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeIn(flags, arguments);
  va_end(arguments);
  if (folder != AT_FDCWD) return next<int (*)(int, const char*, int, ...)>("openat64")(folder, path, flags, mode);
  return openedWith(path, flags, mode, AT_FDCWD, "open64");
}

int close(int fd) {
  note(fd, false);
  return next<int (*)(int)>("close")(fd);
}

ssize_t read(int fd, void* out, size_t size) {
  if (isFdBelow(fd) && counts(EIO)) return -1;
  return next<ssize_t (*)(int, void*, size_t)>("read")(fd, out, size);
}

ssize_t pread(int fd, void* out, size_t size, off_t at) {
  if (isFdBelow(fd) && counts(EIO)) return -1;
  return next<ssize_t (*)(int, void*, size_t, off_t)>("pread")(fd, out, size, at);
}

ssize_t pread64(int fd, void* out, size_t size, off64_t at) {
  if (isFdBelow(fd) && counts(EIO)) return -1;
  return next<ssize_t (*)(int, void*, size_t, off64_t)>("pread64")(fd, out, size, at);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (isFdBelow(fd) && counts(ENOSPC)) return -1;
  return next<ssize_t (*)(int, const void*, size_t)>("write")(fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  if (isFdBelow(fd) && counts(ENOSPC)) return -1;
  return next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  if (isFdBelow(fd) && counts(ENOSPC)) return -1;
  return next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64")(fd, bytes, size, at);
}

int fsync(int fd) {
  if (isFdBelow(fd) && counts(EIO)) return -1;
  return next<int (*)(int)>("fsync")(fd);
}

int ftruncate(int fd, off_t size) {
  if (isFdBelow(fd) && counts(ENOSPC)) return -1;
  return next<int (*)(int, off_t)>("ftruncate")(fd, size);
}

int ftruncate64(int fd, off64_t size) {
  if (isFdBelow(fd) && counts(ENOSPC)) return -1;
  return next<int (*)(int, off64_t)>("ftruncate64")(fd, size);
}

int rename(const char* from, const char* to) {
  if (isPathBelow(to) && counts(ENOSPC)) return -1;
  return next<int (*)(const char*, const char*)>("rename")(from, to);
}

int symlink(const char* target, const char* path) {
  if (isPathBelow(path) && counts(ENOSPC)) return -1;
  return next<int (*)(const char*, const char*)>("symlink")(target, path);
}

int mkdir(const char* path, mode_t mode) {
  if (isPathBelow(path) && counts(ENOSPC)) return -1;
  return next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

void* mmap64(void* at, size_t size, int protection, int flags, int fd, off64_t offset) {
  if (isFdBelow(fd) && counts(ENOMEM)) return MAP_FAILED;
  return next<void* (*)(void*, size_t, int, int, int, off64_t)>("mmap64")(at, size, protection, flags, fd, offset);
}

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  if (isFdBelow(fd) && counts(ENOMEM)) return MAP_FAILED;
  return next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap")(at, size, protection, flags, fd, offset);
}

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* at, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  if (memoryFails()) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  if (memoryFails()) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_calloc(count, size);
}

void* realloc(void* at, size_t size) {
  if (memoryFails()) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_realloc(at, size);
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  if (memoryFails()) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}

}  // extern "C"
