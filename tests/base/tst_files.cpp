#include "base/checked.h"
#include "base/output_file.h"

#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <future>
#include <limits>

using namespace cleave;

namespace {

int entries(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

class TestFiles : public QObject {
  Q_OBJECT
 private slots:
  void writesAreWholeOrNothing() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "plan.json";
    QVERIFY(writeFile(file, "one"));
    QVERIFY(writeFile(file, "two"));
    QCOMPARE(*readTextFile(file, 100), std::string("two"));
    QCOMPARE(std::distance(fs::directory_iterator(file.parent_path()), fs::directory_iterator()), std::ptrdiff_t{1});
    const auto refused = writeFile(file.parent_path() / "absent" / "x", "three");
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::Environment);
  }

  void aLinkStaysAndItsTargetIsReplaced() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    fs::create_directory(base / "kept");
    QVERIFY(writeFile(base / "kept/plan.json", "old"));
    fs::create_symlink("kept/plan.json", base / "inner");
    fs::create_symlink("inner", base / "outer");
    QVERIFY(writeFile(base / "outer", "new"));
    QCOMPARE(fs::read_symlink(base / "outer"), fs::path("inner"));
    QCOMPARE(fs::read_symlink(base / "inner"), fs::path("kept/plan.json"));
    QCOMPARE(*readTextFile(base / "kept/plan.json", 100), std::string("new"));
    fs::create_symlink("kept/later.json", base / "dangling");
    QVERIFY(writeFile(base / "dangling", "made"));
    QVERIFY(fs::is_symlink(base / "dangling"));
    QCOMPARE(*readTextFile(base / "kept/later.json", 100), std::string("made"));
    fs::create_symlink("loop", base / "loop");
    QCOMPARE(writeFile(base / "loop", "x").error().code, ErrorCode::Environment);
    QCOMPARE(entries(base / "kept"), 2);
  }

  void modesOwnersAndHardLinksStay() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    const fs::path file = base / "secret.json";
    QVERIFY(writeFile(file, "old"));
    QCOMPARE(::chmod(file.c_str(), 0640), 0);
    const bool isRoot = ::geteuid() == 0;
    if (isRoot) QCOMPARE(::chown(file.c_str(), 12, 34), 0);
    QVERIFY(writeFile(file, "new"));
    struct stat info {};
    QCOMPARE(::stat(file.c_str(), &info), 0);
    QCOMPARE(info.st_mode & 07777u, 0640u);
    if (isRoot) QVERIFY(info.st_uid == 12 && info.st_gid == 34);
    fs::create_hard_link(file, base / "second-name");
    QVERIFY(writeFile(file, "newer, and longer"));
    QVERIFY(writeFile(file, "newest"));
    QCOMPARE(*readTextFile(base / "second-name", 100), std::string("newest"));
    QCOMPARE(fs::hard_link_count(file), std::uintmax_t{2});
    QCOMPARE(entries(base), 2);
  }

  void aPipeIsWrittenThrough() {
    QTemporaryDir folder;
    const fs::path pipe = fs::path(folder.path().toStdString()) / "pipe";
    QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    QVERIFY(writeFile(pipe, "through"));
    std::array<char, 16> got{};
    QCOMPARE(::read(reader, got.data(), got.size()), ssize_t{7});
    QCOMPARE(std::string(got.data()), std::string("through"));
    QVERIFY(fs::is_fifo(pipe));
    auto out = OutputFile::open(pipe);
    ::close(reader);
    const auto broken = out->write("nobody listens");  // the program goes on running
    QVERIFY(!broken && broken.error().message.ends_with("its reader has closed the pipe."));
    QCOMPARE(entries(pipe.parent_path()), 1);
  }

  /// Opening and writing a pipe block, as `cat > pipe` does. A stop ends both, before a reader opens it and when the
  /// reader does not read.
  void waitingForAPipesReaderCanBeStopped() {
    QTemporaryDir folder;
    const fs::path pipe = fs::path(folder.path().toStdString()) / "pipe";
    QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
    const std::string more(1 << 20, 'x');  // more than a pipe's buffer
    for (const bool hasReader : {false, true}) {
      const int reader = hasReader ? ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK) : -1;
      std::stop_source source;
      auto written = std::async(std::launch::async, [&] { return writeFile(pipe, more, source.get_token()); });
      QVERIFY(written.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout);
      source.request_stop();
      QVERIFY(written.wait_for(std::chrono::seconds(5)) == std::future_status::ready);
      const auto result = written.get();
      QVERIFY(!result && result.error().code == ErrorCode::Cancelled);
      QCOMPARE(result.error().message, fmt::format("Stopped while writing {}.", pipe.string()));
      if (hasReader) ::close(reader);
    }
    // A reader that opens late and reads slowly gets all bytes.
    auto written = std::async(std::launch::async, [&] { return writeFile(pipe, more); });
    const int reader = ::open(pipe.c_str(), O_RDONLY);
    std::string got;
    std::array<char, 5000> part{};
    for (ssize_t count = 0; (count = ::read(reader, part.data(), part.size())) > 0;)
      got.append(part.data(), static_cast<std::size_t>(count));
    ::close(reader);
    QVERIFY(written.get().has_value());
    QVERIFY(got == more);
  }

  /// The next output in the folder removes the files of killed processes, and no others.
  void whatKilledProcessesLeftIsSwept() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    const pid_t dead = ::fork();
    if (dead == 0) ::_exit(0);
    QCOMPARE(::waitpid(dead, nullptr, 0), dead);
    const auto named = [&](const std::string& name, int mode = 0600) {
      ::close(::open((base / name).c_str(), O_CREAT | O_WRONLY, mode));
      return base / name;
    };
    const auto ofPid = [&](long pid, const char* rest) { return fmt::format(".cleave-{}-{}", pid, rest); };
    const std::vector<fs::path> swept{named(ofPid(dead, "0.part")), named(ofPid(dead, "17.part"), 0400)};
    std::vector<fs::path> kept{named(ofPid(::getpid(), "900.part")), named(ofPid(dead, "0.part~")),
                               named(ofPid(dead, "x.part")),         named(ofPid(dead, ".part")),
                               named(ofPid(dead, "00.part")),        named("0" + ofPid(dead, "0.part")),
                               named(".cleave--1-0.part"),           named(".cleave-0-0.part"),
                               named(".cleave-99999999999-0.part"),  named("my.cleave-1-0.part")};
    kept.push_back(base / ofPid(dead, "3.part"));
    fs::create_directory(kept.back());
    kept.push_back(base / ofPid(dead, "4.part"));
    fs::create_symlink(kept.front(), kept.back());
    kept.push_back(named(ofPid(dead, "5.part")));  // another container's file, whose process has the lock
    const int held = ::open(kept.back().c_str(), O_RDONLY | O_CLOEXEC);
    QCOMPARE(::flock(held, LOCK_EX), 0);
    if (::geteuid() == 0) {
      kept.push_back(named(ofPid(dead, "6.part")));
      QCOMPARE(::chown(kept.back().c_str(), 12345, 12345), 0);
    }
    QVERIFY(writeFile(base / "plan.json", "new"));
    ::close(held);
    for (const fs::path& file : swept) QVERIFY2(!fs::exists(file), file.c_str());
    for (const fs::path& file : kept) QVERIFY2(fs::exists(fs::symlink_status(file)), file.c_str());
  }

  void aDeviceIsWrittenThrough() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    constexpr int kMemoryDevices = 1, kNull = 3, kFull = 7;
    const auto make = [&](const char* name, int minor) {
      return ::mknod((base / name).c_str(), S_IFCHR | 0600, makedev(kMemoryDevices, minor)) == 0;
    };
    if (!make("null", kNull) || !make("full", kFull)) QSKIP("device nodes cannot be made here");
    if (const auto opened = OutputFile::open(base / "null"); !opened) QSKIP("device nodes are not usable here");
    fs::create_symlink("null", base / "link");
    QVERIFY(writeFile(base / "null", "gone"));
    QVERIFY(writeFile(base / "link", "gone"));
    QVERIFY(fs::is_character_file(fs::symlink_status(base / "null")));
    QVERIFY(fs::is_symlink(base / "link"));
    const auto full = writeFile(base / "full", "does not fit");
    QVERIFY(!full);
    QCOMPARE(full.error().code, ErrorCode::Environment);
    QCOMPARE(full.error().message,
             fmt::format("Cannot write {}: the disk is full. Free space, or write to another disk.",
                         (base / "full").string()));
    QCOMPARE(entries(base), 3);
  }

  /// The shell's `--json out > out`, and the target of /dev/stdout.
  void ourOwnOutputIsNotReplacedUnderUs() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "out";
    const int before = ::dup(STDOUT_FILENO);
    std::fflush(stdout);
    const int redirected = ::open(file.c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(redirected, STDOUT_FILENO);
    ::close(redirected);
    const bool printed = ::write(STDOUT_FILENO, "a", 1) == 1;
    const bool named = writeFile(file, "b").has_value();
    const bool byDescriptor = writeFile("/proc/self/fd/1", "c").has_value();
    const bool printedAgain = ::write(STDOUT_FILENO, "d", 1) == 1;
    ::dup2(before, STDOUT_FILENO);
    ::close(before);
    QVERIFY(printed && named && byDescriptor && printedAgain);
    QCOMPARE(*readTextFile(file, 100), std::string("abcd"));
  }

  void whatIsNotFinishedLeavesTheOldFile() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    QVERIFY(writeFile(base / "plan", "old"));
    {
      auto out = OutputFile::open(base / "plan");
      QVERIFY(out && out->write("half of it"));
    }
    QCOMPARE(*readTextFile(base / "plan", 100), std::string("old"));
    // Like a full disk: the write itself fails, in the middle.
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    rlimit tight = limit;
    tight.rlim_cur = 1000;
    std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &tight);
    const auto cut = writeFile(base / "plan", std::string(5000, 'x'));
    ::setrlimit(RLIMIT_FSIZE, &limit);
    QVERIFY(!cut);
    QCOMPARE(cut.error().code, ErrorCode::Environment);
    QCOMPARE(*readTextFile(base / "plan", 100), std::string("old"));
    QCOMPARE(entries(base), 1);
  }

  void whatCannotBeWrittenIsOneSentence() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    QCOMPARE(writeFile(base, "x").error().message,
             fmt::format("Cannot write {}: it is a folder. Name a file.", base.string()));
    QCOMPARE(writeFile(base / "absent/x", "x").error().message,
             fmt::format("Cannot write {0}/absent/x: the folder {0}/absent does not exist. Create it first.",
                         base.string()));
    QVERIFY(writeFile(base / std::string(255, 'n'), "names may be this long"));
  }

  void aWrittenFileInALockedFolderIsWrittenInPlace() {
    if (::geteuid() == 0) QSKIP("nothing is locked for root");
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    QVERIFY(writeFile(base / "plan", "old and long"));
    fs::permissions(base, fs::perms::owner_read | fs::perms::owner_exec);
    const bool written = writeFile(base / "plan", "new").has_value();
    const auto refused = writeFile(base / "other", "new");
    fs::permissions(base, fs::perms::owner_all);
    QVERIFY(written && !refused);
    QCOMPARE(*readTextFile(base / "plan", 100), std::string("new"));
  }

  void sizesAreCheckedBeforeReading() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "big";
    QVERIFY(writeFile(file, std::string(1000, 'x')));
    const auto text = readTextFile(file, 999);
    QVERIFY(!text);
    QVERIFY(text.error().message.find("1000 bytes; the limit is 999") != std::string::npos);
  }

  void foldersPipesAndMissingFilesAreOneSentence() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    QVERIFY(::mkfifo((base / "pipe").c_str(), 0600) == 0);
    for (const fs::path& file : {base, base / "pipe", base / "absent"}) {
      const auto text = readTextFile(file, 100);
      QVERIFY(!text);
      QCOMPARE(text.error().code, ErrorCode::BadInput);
      QVERIFY(text.error().message.find(file.string()) != std::string::npos);
    }
  }

  void aFileThatShrankIsNamed() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "short";
    QVERIFY(writeFile(file, "abc"));
    const auto opened = RandomAccessFile::open(file);
    QVERIFY(opened.has_value());
    std::array<std::byte, 8> buffer;
    const auto read = opened->readAt(1, buffer);
    QVERIFY(!read);
    QVERIFY(read.error().message.find("truncated") != std::string::npos);
  }

  void knowsWhatLiesInsideAFolder() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    fs::create_directories(base / "model");
    fs::create_symlink(base, base / "model" / "up");
    QVERIFY(isInside(base / "model", base / "model" / "a.safetensors"));
    QVERIFY(!isInside(base / "model", base / "model" / ".." / "b"));
    QVERIFY(!isInside(base / "model", base / "model" / "up" / "b"));
    QVERIFY(!isInside(base / "model", base / "model2"));
  }

  void arithmeticAnswersNothingOnOverflow() {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    QVERIFY(!checkedAdd(kMax, 1));
    QVERIFY(!checkedMul(kMax / 2, 3));
    QCOMPARE(checkedProduct(std::vector<std::int64_t>{}), std::optional<std::int64_t>(1));
    QVERIFY(!checkedProduct(std::vector<std::int64_t>{2, -1}));
    QVERIFY(!checkedProduct(std::vector<std::int64_t>{kMax, kMax, 0}));
  }
};

QTEST_APPLESS_MAIN(TestFiles)
#include "tst_files.moc"
