#pragma once
/// A Hub on the loopback interface (tests/tools/hub_server.py), with models and faults that a test sets. Needs
/// CLEAVE_SOURCE_DIR.
#include "hub/snapshot.h"
#include "tests/support/patience.h"

#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStringList>
#include <QTemporaryDir>
#include <QTest>

namespace cleave::test {

struct HubRequest {
  QString server, method, path, range;
  bool hasToken = false;
};

class HubServer {
 public:
  explicit HubServer(const QStringList& tls = {}) {
    QStringList arguments{QStringLiteral(CLEAVE_SOURCE_DIR "/tests/tools/hub_server.py"), m_models.path()};
    if (!tls.isEmpty()) arguments << QStringLiteral("--tls") << tls;
    m_process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    m_process.start(QStringLiteral("python3"), arguments);
    const QJsonObject addresses = nextLine();
    m_endpoint = addresses[QStringLiteral("endpoint")].toString();
    m_second = addresses[QStringLiteral("second")].toString();
  }
  ~HubServer() {
    m_process.closeWriteChannel();
    if (m_process.waitForFinished(5000)) return;
    m_process.kill();
    m_process.waitForFinished();
  }
  bool isUp() const { return !m_endpoint.isEmpty(); }
  QString endpoint() const { return m_endpoint; }
  QString second() const { return m_second; }

  void add(const QString& file, const QByteArray& content) const {
    const QString path = m_models.filePath(file);
    QDir().mkpath(QFileInfo(path).path());
    QFile out(path);
    if (!out.open(QFile::WriteOnly) || out.write(content) != content.size())
      qFatal("cannot write %s", qPrintable(path));
  }
  /// JSON with single quotes, because moc does not parse raw strings.
  void setFaults(const QString& repo, const QByteArray& faults) const {
    add(repo + QStringLiteral("/.faults.json"), QByteArray(faults).replace('\'', '"'));
  }
  void addFolder(const QString& repo, const QString& folder) const {
    for (const QFileInfo& entry : QDir(folder).entryInfoList(QDir::Files)) {
      QFile file(entry.filePath());
      if (!file.open(QFile::ReadOnly)) qFatal("cannot read %s", qPrintable(entry.filePath()));
      add(repo + QLatin1Char('/') + entry.fileName(), file.readAll());
    }
  }

  /// The requests since the previous call.
  QList<HubRequest> drainRequests() {
    QList<HubRequest> requests;
    while (m_process.canReadLine() || m_process.waitForReadyRead(50)) {
      while (m_process.canReadLine()) {
        const QJsonObject line = nextLine();
        requests.push_back({line[QStringLiteral("server")].toString(), line[QStringLiteral("method")].toString(),
                            line[QStringLiteral("path")].toString(), line[QStringLiteral("range")].toString(),
                            line[QStringLiteral("token")].toBool()});
      }
    }
    return requests;
  }

  /// The environment of a process that uses only this Hub, without a token.
  QProcessEnvironment environment(const QString& cache) const {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("HF_ENDPOINT"), m_endpoint);
    environment.insert(QStringLiteral("HF_HUB_CACHE"), cache);
    for (const char* name : {"HF_TOKEN", "HF_HUB_OFFLINE"}) environment.remove(QString::fromLatin1(name));
    return environment;
  }
  /// Sets the same environment for this process.
  void becomeTheHub(const QString& cache) const {
    qputenv("HF_ENDPOINT", m_endpoint.toUtf8());
    qputenv("HF_HUB_CACHE", cache.toUtf8());
    for (const char* name : {"HF_TOKEN", "HF_HUB_OFFLINE"}) qunsetenv(name);
  }
  hub::HubSettings settings(const QString& cache) const {
    hub::HubSettings settings;
    settings.endpoint = m_endpoint.toStdString();
    settings.cache = cache.toStdString();
    settings.quietSeconds = 2;
    return settings;
  }

 private:
  QJsonObject nextLine() {
    if (!m_process.canReadLine() && !m_process.waitForReadyRead(kPatience)) return {};
    return QJsonDocument::fromJson(m_process.readLine()).object();
  }

  QTemporaryDir m_models;
  QProcess m_process;
  QString m_endpoint, m_second;
};

/// The Hub of this process, with an empty cache. It has resources/models/tiny-llama as org/tiny.
class TinyHub {
 public:
  /// False if the server cannot be started.
  bool begin() {
    if (!m_server.isUp()) return false;
    m_server.addFolder(QStringLiteral("org/tiny"), QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/tiny-llama"));
    m_server.becomeTheHub(m_cache.path());
    return true;
  }

 private:
  HubServer m_server;
  QTemporaryDir m_cache;
};

/// Bytes without repetition, so that different parts of a file differ.
inline QByteArray someBytes(qsizetype count, quint32 seed = 1) {
  QByteArray bytes(count, Qt::Uninitialized);
  quint32 state = seed * 2654435761u + 1;
  for (char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

}  // namespace cleave::test
