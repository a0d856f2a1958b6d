#pragma once
/// Runs whose ranks the test starts itself, as torchrun, Slurm or a person does on each node: cleave-rank processes
/// with their launcher's variables, and `cleave-cli run --listen`, which waits for them.
#include "tests/support/cli_process.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QRegularExpression>
#include <QTest>
#include <QThread>

#include <functional>
#include <map>
#include <memory>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cleave::test {

inline constexpr int kMachinesPatienceMs = 180'000;  // for a busy machine; not a measurement

/// A port that was free a moment ago.
inline int freePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool isBound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                       ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  ::close(fd);
  return isBound ? ntohs(address.sin_port) : 0;
}

inline bool waitUntil(const std::function<bool()>& isTrue, int limitMs = kMachinesPatienceMs) {
  QElapsedTimer timer;
  timer.start();
  while (!isTrue()) {
    if (timer.elapsed() > limitMs) return false;
    QThread::msleep(20);
  }
  return true;
}

/// A process whose output the test can wait for. The destructor kills it.
class Program {
 public:
  /// `before`: command prefix ("ip", "netns", "exec", NAME). `variables` are added to this process's environment
  /// without the variables of a run.
  Program(QStringList command, const std::map<QString, QString>& variables = {}) {
    auto environment = QProcessEnvironment::systemEnvironment();
    for (const QString& key : environment.keys()) {
      if (key.startsWith("SLURM_") || key.startsWith("CLEAVE_") || key.startsWith("MASTER_")) environment.remove(key);
    }
    for (const char* key : {"RANK", "LOCAL_RANK", "WORLD_SIZE"}) environment.remove(key);
    environment.insert("OMP_NUM_THREADS", "1");
    for (const auto& [key, value] : variables) environment.insert(key, value);
    m_process.setProcessEnvironment(environment);
    m_process.setProgram(command.takeFirst());
    m_process.setArguments(command);
    m_process.start();
    m_process.closeWriteChannel();
  }
  ~Program() {
    m_process.kill();
    m_process.waitForFinished();
  }

  qint64 pid() const { return m_process.processId(); }
  /// Waits until the error output contains `words`.
  bool says(const QString& words) {
    return waitUntil([&] {
             err();
             return m_err.contains(words) || m_process.state() == QProcess::NotRunning;
           }) &&
           m_err.contains(words);
  }
  /// The exit code; -1000 if it has not exited in time; -1 if a signal ended it.
  int exitCode(int limitMs = kMachinesPatienceMs) {
    if (m_process.state() != QProcess::NotRunning && !m_process.waitForFinished(limitMs)) return -1000;
    return m_process.exitStatus() == QProcess::NormalExit ? m_process.exitCode() : -1;
  }
  QString err() {
    m_process.waitForReadyRead(0);
    return m_err += QString::fromUtf8(m_process.readAllStandardError());
  }
  QString out() { return m_out += QString::fromUtf8(m_process.readAllStandardOutput()); }

 private:
  QProcess m_process;
  QString m_err, m_out;
};

/// Processes of cleave-rank whose plan is in this folder. Dead processes have no command line.
inline std::vector<qint64> ranksBelow(const QString& folder) {
  std::vector<qint64> pids;
  for (const QString& name : QDir("/proc").entryList(QDir::Dirs)) {
    bool isNumber = false;
    const qint64 pid = name.toLongLong(&isNumber);
    QFile file("/proc/" + name + "/cmdline");
    if (!isNumber || !file.open(QIODevice::ReadOnly)) continue;
    const QList<QByteArray> words = file.readAll().split('\0');
    if (words.front().endsWith("/cleave-rank") && words.value(1).startsWith(folder.toUtf8())) pids.push_back(pid);
  }
  return pids;
}

/// A `cleave-cli run --listen`, and the ranks that this test starts for it.
class ListenedRun {
 public:
  static constexpr const char* kToken = "0123456789abcdef0123";
  /// `prefix`: command prefix for the programs of a host; may be empty.
  ListenedRun(QString plan, int ranks, const QStringList& options, QString address = "127.0.0.1",
              const QStringList& prefix = {})
      : m_plan(std::move(plan)),
        m_ranks(ranks),
        m_address(std::move(address)),
        m_port(freePort()),
        m_meeting(freePort()) {
    listener =
        std::make_unique<Program>(prefix +
                                      QStringList{CLEAVE_BIN_DIR "/cleave-cli", "run", m_plan, "--backend", "gloo",
                                                  "--listen", m_address + ":" + QString::number(m_port)} +
                                      options,
                                  std::map<QString, QString>{{"CLEAVE_RUN_TOKEN", kToken}});
  }
  QString events() const { return m_address + ":" + QString::number(m_port); }
  int meeting() const { return m_meeting; }
  Program& startRank(int rank, const QStringList& options = {}, std::map<QString, QString> variables = {},
                     const QStringList& prefix = {}) {
    variables.insert({{"RANK", QString::number(rank)},
                      {"LOCAL_RANK", "0"},
                      {"WORLD_SIZE", QString::number(m_ranks)},
                      {"MASTER_ADDR", m_address},
                      {"MASTER_PORT", QString::number(m_meeting)},
                      {"CLEAVE_EVENTS_TO", events()},
                      {"CLEAVE_RUN_TOKEN", kToken}});
    return *ranks.emplace_back(std::make_unique<Program>(
        prefix + QStringList{CLEAVE_BIN_DIR "/cleave-rank", m_plan, "--backend", "gloo"} + options, variables));
  }

  std::unique_ptr<Program> listener;
  std::vector<std::unique_ptr<Program>> ranks;

 private:
  QString m_plan;
  int m_ranks;
  QString m_address;
  int m_port, m_meeting;
};

/// Small enough to start quickly, large enough to be observed while it runs.
inline QString makeBigModel(const QString& folder) {
  QDir(folder).mkpath("big");
  QFile config(folder + "/big/config.json");
  if (!config.open(QIODevice::WriteOnly)) qFatal("cannot write a model");
  config.write(
      "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 512,"
      " \"intermediate_size\": 1376, \"num_hidden_layers\": 12, \"num_attention_heads\": 8,"
      " \"num_key_value_heads\": 8, \"vocab_size\": 1024, \"max_position_embeddings\": 512,"
      " \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, \"hidden_act\": \"silu\","
      " \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\"}");
  return folder + "/big";
}

/// A plan that splits all layers that can be split.
inline QString makeSplitPlan(const QString& file, const QString& model, int ranks, const QStringList& options) {
  const Finished done = cli(
      QStringList{"plan", model, "--ranks", QString::number(ranks), "--engine", "reference", "--json", file} + options);
  if (done.exitCode != 0) qFatal("%s", done.err.constData());
  return file;
}

}  // namespace cleave::test
