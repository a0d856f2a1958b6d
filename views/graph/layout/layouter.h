#pragma once
/// Answers layout requests, at once from its cache or later from the Graphviz helper process.
///
/// GUI thread only. Never blocks: a thread of its own parses answers and computes the built-in layout, and a helper is
/// killed without waiting for it. If the helper does not answer in time or crashes, the built-in layout answers and is
/// marked simplified. After three failures in a row the helper is not used any more in this session.
///
///     Layouter layouter(LayoutHelper::find());
///     connect(&layouter, &Layouter::answered, this, &View::rebuild);
///     if (auto layout = layouter.find(request)) use(*layout);   // null: ask again after answered()
#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QThreadPool>
#include <QTimer>
#include <deque>
#include <functional>
#include <unordered_map>

#include "views/graph/layout/layout.h"

namespace cleave::views {

/// How to start the helper. Empty program: no helper, the built-in layout does all.
struct LayoutHelper {
  QString program;
  QStringList arguments;
  /// CLEAVE_LAYOUT_WORKER (a program, or "none"), else `cleave` next to this program or in ../bin.
  static LayoutHelper find();
};

class Layouter : public QObject {
  Q_OBJECT
 public:
  explicit Layouter(LayoutHelper helper, QObject* parent = nullptr);
  ~Layouter() override;

  /// The layout if it is known, else null, and the request is queued. Trivial requests are known at once.
  std::shared_ptr<const LayoutResult> find(const LayoutRequest& request);
  bool isBusy() const { return !m_queue.empty(); }
  /// Drops queued requests and kills a running layout. The cache is kept.
  void cancel();
  void setTimeout(int ms) { m_timeoutMs = ms; }
  /// For tests. The time limit for the first answer: a cold start reads hundreds of megabytes of libraries.
  void setStartupTimeout(int ms) { m_startupMs = ms; }
  /// For tests that kill the helper.
  qint64 helperProcessId() const { return m_process ? m_process->processId() : 0; }

 signals:
  void answered();
  /// The helper failed. `what`: text for the log. Drawing continues.
  void helperFailed(const QString& message);

 private:
  using Key = std::shared_ptr<const LayoutRequest>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key->hash(); }
  };
  struct KeyEqual {
    bool operator()(const Key& a, const Key& b) const { return *a == *b; }
  };

  using Cancelled = std::shared_ptr<std::atomic_bool>;
  /// A layout, or why it failed.
  struct LaidOut {
    std::shared_ptr<const LayoutResult> layout;
    QString failure;
  };

  bool hasHelper() const;
  void startHelper();
  void dropHelper();
  void sendNext();
  void readAnswers();
  void fail(const QString& what);
  void layOutHere(const Key& key);
  void compute(std::function<LaidOut(const std::atomic_bool& cancelled)> work);
  void take(std::uint64_t id, const LaidOut& answer);
  void keep(Key key, std::shared_ptr<const LayoutResult> layout);

  LayoutHelper m_helper;
  QProcess* m_process = nullptr;  ///< null: not running
  QThreadPool m_pool;             ///< one thread
  Cancelled m_cancelled;          ///< stops the work on that thread
  QTimer m_timer;
  QByteArray m_received;
  qsizetype m_scanned = 0;  ///< bytes of m_received that contain no end of message
  std::deque<Key> m_queue;  ///< the front is in progress if m_isAtWork
  bool m_isAtWork = false;  ///< the helper or the thread works on the front
  bool m_isSent = false;    ///< the helper has received it
  std::uint64_t m_nextId = 1;
  int m_failures = 0;
  int m_timeoutMs = 2000;
  int m_startupMs = 8000;
  bool m_hasAnswered = false;  ///< since the helper's start
  std::unordered_map<Key, std::shared_ptr<const LayoutResult>, KeyHash, KeyEqual> m_cache;
};

}  // namespace cleave::views
