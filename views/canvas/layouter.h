#pragma once
/// Answers layout requests: from its cache at once, otherwise later, from the Graphviz helper process.
///
/// GUI thread only; never blocks. A request the helper does not answer within the limit, or that kills it, is answered
/// by the built-in layout and marked simplified; after three failures in a row the helper is given up for this session.
///
///     Layouter layouter(LayoutHelper::find());
///     connect(&layouter, &Layouter::answered, this, &View::rebuild);
///     if (auto layout = layouter.find(request)) use(*layout);   // null: ask again after answered()
#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QTimer>
#include <deque>
#include <unordered_map>

#include "canvas/layout.h"

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

  /// The layout if it is known; otherwise null, and it is on its way. `count` boxes of nothing to decide are answered
  /// at once.
  std::shared_ptr<const LayoutResult> find(const LayoutRequest& request);
  bool isBusy() const { return !m_queue.empty(); }
  /// Drops what waits and kills a layout in progress; the cache stays.
  void cancel();
  void setTimeout(int ms) { m_timeoutMs = ms; }
  /// For the first answer after the program starts: a cold start reads hundreds of megabytes of libraries.
  void setStartupTimeout(int ms) { m_startupMs = ms; }
  std::size_t cacheSize() const { return m_cache.size(); }
  qint64 helperProcessId() const { return m_process.processId(); }

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

  void startHelper();
  void sendNext();
  void readAnswers();
  void fail(const QString& what);
  void answer(LayoutResult result);

  LayoutHelper m_helper;
  QProcess m_process;
  QTimer m_timer;
  QByteArray m_received;
  std::deque<Key> m_queue;  ///< front: being worked on when m_isSent
  bool m_isSent = false;
  bool m_isClosing = false;
  std::uint64_t m_nextId = 1;
  int m_failures = 0;
  int m_timeoutMs = 2000;
  int m_startupMs = 8000;
  bool m_hasAnswered = false;  ///< since it was started
  std::unordered_map<Key, std::shared_ptr<const LayoutResult>, KeyHash, KeyEqual> m_cache;
};

}  // namespace cleave::views
