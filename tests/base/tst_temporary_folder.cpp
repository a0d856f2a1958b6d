#include "base/output_file.h"
#include "base/temporary_folder.h"

#include <QTemporaryDir>
#include <QTest>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace cleave;

namespace {

/// A process that makes a folder, prints its path and lives until it is killed.
struct Owner {
  pid_t pid = -1;
  fs::path folder;

  Owner() {
    int ends[2];
    if (::pipe(ends) != 0) qFatal("no pipe");
    pid = ::fork();
    if (pid == 0) {
      auto made = TemporaryFolder::make("cleave-test");
      const std::string path = made ? made->path().string() : "";
      (void)!::write(ends[1], path.data(), path.size());
      ::close(ends[1]);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    std::string path(4096, '\0');
    path.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], path.data(), path.size()))));
    ::close(ends[0]);
    folder = path;
  }
  void kill() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
  }
  ~Owner() { kill(); }
};

}  // namespace

class TestTemporaryFolder : public QObject {
  Q_OBJECT
  QTemporaryDir m_parent;
 private slots:
  void initTestCase() {
    QVERIFY(m_parent.isValid());
    qputenv("TMPDIR", m_parent.path().toUtf8());
  }
  void cleanup() { QVERIFY(fs::is_empty(m_parent.path().toStdString())); }

  void isGoneWithItsObject() {
    fs::path path;
    {
      auto made = TemporaryFolder::make("cleave-test");
      QVERIFY(made);
      path = made->path();
      QVERIFY(writeFile(*made / "plan.json", "{}"));
      TemporaryFolder moved = std::move(*made);
      QVERIFY(fs::exists(moved / "plan.json"));
    }
    QVERIFY(!fs::exists(path));
  }

  void whatAKilledOwnerLeftIsSwept() {
    Owner dead, living;
    QVERIFY(fs::is_directory(dead.folder) && fs::is_directory(living.folder));
    QVERIFY(writeFile(dead.folder / "outputs", "x"));
    dead.kill();
    QVERIFY(fs::exists(dead.folder));  // its owner was killed before it could remove it
    const auto made = TemporaryFolder::make("cleave-test");
    QVERIFY(made);
    QVERIFY(!fs::exists(dead.folder));
    QVERIFY(fs::is_directory(living.folder));  // tests may run in parallel
    living.kill();
    QVERIFY(TemporaryFolder::make("cleave-test"));
    QVERIFY(!fs::exists(living.folder));
  }

  void foldersThatAreNotOursStay() {
    const fs::path parent = m_parent.path().toStdString();
    // A folder without a lock file was made by another program. A folder of another kind is removed by its own kind.
    fs::create_directory(parent / "cleave-test-abcdef");
    fs::create_directory(parent / "cleave-other-abcdef");
    QVERIFY(writeFile(parent / "cleave-other-abcdef" / "owner", ""));
    fs::create_directory_symlink(parent / "cleave-other-abcdef", parent / "cleave-test-link");
    QVERIFY(TemporaryFolder::make("cleave-test"));
    for (const char* name :
         {"cleave-test-abcdef", "cleave-other-abcdef", "cleave-other-abcdef/owner", "cleave-test-link"}) {
      QVERIFY2(fs::exists(parent / name), name);
    }
    for (const char* name : {"cleave-test-abcdef", "cleave-test-link", "cleave-other-abcdef"})
      fs::remove_all(parent / name);
  }

  void saysWhereNoneCanBeMade() {
    qputenv("TMPDIR", "/nonexistent-folder");
    const auto made = TemporaryFolder::make("cleave-test");
    qputenv("TMPDIR", m_parent.path().toUtf8());
    QVERIFY(!made);
    QCOMPARE(made.error().code, ErrorCode::Environment);
    QVERIFY2(made.error().message.find("TMPDIR") != std::string::npos, made.error().message.c_str());
  }
};

QTEST_GUILESS_MAIN(TestTemporaryFolder)
#include "tst_temporary_folder.moc"
