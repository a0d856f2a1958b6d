#pragma once
/// Answers layout requests: from its cache at once, otherwise later, from the Graphviz helper process.
///
/// GUI thread only; never blocks: answers are read, and the built-in layout is computed, on a thread of its own, and a
/// helper that must go is killed and not waited for. A request the helper does not answer within the limit, or that
/// kills it, is answered by the built-in layout and marked simplified; after three failures in a row the helper is
/// given up for this session.
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

/// How to start the helper. An empty program: there is none, the built-in layout does all.
struct LayoutHelper {
  QString program;
  QStringList arguments;
  /// CLEAVE_LAYOUT_WORKER (a program, or "none"), else `cleave` beside or in ../bin of this program.
  static LayoutHelper find();
};

class Layouter : public QObject {
  Q_OBJECT
 public:
  explicit Layouter(LayoutHelper helper, QObject* parent = nullptr);
  ~Layouter() override;

  /// The layout if it is known; otherwise null, and it is on its way. Where there is nothing to decide, it is known.
  std::shared_ptr<const LayoutResult> find(const LayoutRequest& request);
  bool isBusy() const { return !m_queue.empty(); }
  /// Drops what waits and kills a layout in progress; the cache stays.
  void cancel();
  void setTimeout(int ms) { m_timeoutMs = ms; }
  /// For tests. For the first answer after the program starts: a cold start reads hundreds of megabytes of libraries.
  void setStartupTimeout(int ms) { m_startupMs = ms; }
  /// For tests, which kill it.
  qint64 helperProcessId() const { return m_process ? m_process->processId() : 0; }

 signals:
  void answered();
  /// The helper failed: what happened, for the log. The drawing goes on.
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
  /// A layout, or why there is none.
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
  QProcess* m_process = nullptr;  ///< null: none was started
  QThreadPool m_pool;             ///< one thread
  Cancelled m_cancelled;          ///< of the work on that thread
  QTimer m_timer;
  QByteArray m_received;
  qsizetype m_scanned = 0;  ///< of m_received: holds no end
  std::deque<Key> m_queue;  ///< front: being worked on when m_isAtWork
  bool m_isAtWork = false;  ///< the helper or the thread has the front
  bool m_isSent = false;    ///< the helper has it
  std::uint64_t m_nextId = 1;
  int m_failures = 0;
  int m_timeoutMs = 2000;
  int m_startupMs = 8000;
  bool m_hasAnswered = false;  ///< since it was started
  std::unordered_map<Key, std::shared_ptr<const LayoutResult>, KeyHash, KeyEqual> m_cache;
};

}  // namespace cleave::views
