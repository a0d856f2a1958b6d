// Replays a fuzz target's corpus without libFuzzer, so that every build and every compiler runs it:
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

constexpr int kMutations = 400;

/// The current input, readable from a signal handler.
std::array<char, 4096> lastMessage;

void printLastMessage(int signal) {
  const auto end = std::find(lastMessage.begin(), lastMessage.end(), '\0');
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, lastMessage.data(), static_cast<std::size_t>(end - lastMessage.begin()));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// Mutation 0 is the input itself; the same number always gives the same bytes.
std::string mutated(std::string bytes, int mutation) {
  if (mutation == 0) return bytes;
  std::mt19937 random(static_cast<std::uint32_t>(mutation));
  constexpr std::array kTelling{'\0', '\1', '\x7f', '\x80', '\xff', '"', '\\', '{', '}', '[',
                                ']',  ',',  ':',    '-',    '0',    '9', '.',  '/', 'e'};
  for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    const std::size_t length = std::min<std::size_t>(1 + random() % 16, bytes.size() - at);
    switch (random() % 6) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random());
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = kTelling[random() % kTelling.size()];
        break;
      case 2: bytes.insert(at, 1, kTelling[random() % kTelling.size()]); break;
      case 3: bytes.erase(at, length); break;
      case 4: bytes.insert(at, bytes.substr(at, length)); break;
      case 5:
        if (random() % 8 == 0) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

void runOne(const fs::path& file, const std::string& bytes, int mutation) {
  const std::string words =
      fmt::format("\nfuzz: crashed on mutation {1} of {0}; repeat with: {0} {1}\n", file.string(), mutation);
  lastMessage.fill('\0');
  std::copy_n(words.begin(), std::min(words.size(), lastMessage.size() - 1), lastMessage.begin());
  // An exact copy on the heap, so that a sanitizer detects the first read beyond its end.
  const std::string input = mutated(bytes, mutation);
  const std::vector<std::uint8_t> data(input.begin(), input.end());
  LLVMFuzzerTestOneInput(data.data(), data.size());
}

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

int replayFolder(const fs::path& folder, int inputs) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) return 1;
  const int mutations = std::max<int>(kMutations, inputs / static_cast<int>(files.size()));
  for (const fs::path& file : files) {
    const std::string bytes = read(file);
    runOne(file, bytes, 0);
    if (file.filename().string().starts_with("good") && !wasAccepted) {
      fmt::print(stderr, "{} is not accepted. The format has changed: update the seed.\n", file.string());
      return 1;
    }
    for (int mutation = 1; mutation <= mutations; ++mutation) runOne(file, bytes, mutation);
  }
  fmt::print("{} inputs with {} mutations each, no crash\n", files.size(), mutations);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, printLastMessage);
  const fs::path path = argc >= 2 ? argv[1] : "";
  std::error_code error;
  int number = 0;
  if (argc == 3) {
    const std::string_view text = argv[2];
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  if (argc <= 3 && fs::is_directory(path, error)) return replayFolder(path, number);
  if (argc > 3 || !fs::is_regular_file(path, error)) {
    fmt::print(stderr, "usage: {} CORPUS_FOLDER [INPUTS] | FILE [MUTATION]\n", argv[0]);
    return 2;
  }
  runOne(path, read(path), number);
  return 0;
}
