#include "views/graph/layout/layouter.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <algorithm>

#include "views/graph/layout/layout_protocol.h"

namespace cleave::views {
namespace {

constexpr int kMaxFailures = 3;
constexpr std::size_t kMaxCached = 2048;

}  // namespace

LayoutHelper LayoutHelper::find() {
  const QStringList arguments{QStringLiteral("--layout-worker")};
  const QString asked = qEnvironmentVariable("CLEAVE_LAYOUT_WORKER");
  if (asked == QLatin1String("none")) return {};
  if (!asked.isEmpty()) return {asked, arguments};
  const QString here = QCoreApplication::applicationDirPath();
  for (const QString& place : {here + QStringLiteral("/cleave"), here + QStringLiteral("/../bin/cleave")})
    if (QFileInfo(place).isExecutable()) return {place, arguments};
  return {};
}

Layouter::Layouter(LayoutHelper helper, QObject* parent) : QObject(parent), m_helper(std::move(helper)) {
  m_pool.setMaxThreadCount(1);
  m_timer.setSingleShot(true);
  connect(&m_timer, &QTimer::timeout, this, [this] { fail(QStringLiteral("the layout helper timed out")); });
  startHelper();
}

Layouter::~Layouter() {
  dropHelper();
  if (m_cancelled) *m_cancelled = true;
  m_pool.waitForDone();  // the layout polls the flag: a few milliseconds
}

bool Layouter::hasHelper() const { return !m_helper.program.isEmpty() && m_failures < kMaxFailures; }

void Layouter::startHelper() {
  if (!hasHelper() || m_process) return;
  m_hasAnswered = false;
  m_received.clear();
  m_scanned = 0;
  m_process = new QProcess(this);
  m_process->setProcessChannelMode(QProcess::ForwardedErrorChannel);
  connect(m_process, &QProcess::readyReadStandardOutput, this, &Layouter::readAnswers);
  connect(m_process, &QProcess::started, this, &Layouter::sendNext);
  connect(m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart)
      fail(QStringLiteral("the layout helper %1 could not be started").arg(m_helper.program));
  });
  connect(m_process, &QProcess::finished, this, [this] {
    if (m_isSent) return fail(QStringLiteral("the layout helper exited during a layout"));
    dropHelper();  // between two layouts: the next one starts it again
  });
  m_process->start(m_helper.program, m_helper.arguments);
}

/// Kills the process and does not wait for it.
void Layouter::dropHelper() {
  QProcess* process = std::exchange(m_process, nullptr);
  m_isSent = false;
  if (!process) return;
  process->disconnect(this);
  if (process->state() == QProcess::NotRunning) return process->deleteLater();
  process->setParent(nullptr);  // it deletes itself from now on
  connect(process, &QProcess::finished, process, &QObject::deleteLater);
  process->kill();
}

void Layouter::keep(Key key, std::shared_ptr<const LayoutResult> layout) {
  if (m_cache.size() >= kMaxCached) m_cache.clear();
  m_cache[std::move(key)] = std::move(layout);
}

std::shared_ptr<const LayoutResult> Layouter::find(const LayoutRequest& request) {
  auto key = std::make_shared<const LayoutRequest>(request);
  if (const auto known = m_cache.find(key); known != m_cache.end()) return known->second;
  if (isColumn(request)) {
    LayoutResult result = layeredLayout(request);
    attachCurves(request, result);
    auto layout = std::make_shared<const LayoutResult>(std::move(result));
    keep(std::move(key), layout);
    return layout;
  }
  const bool isWaiting = std::any_of(m_queue.begin(), m_queue.end(), [&](const Key& k) { return *k == request; });
  if (!isWaiting) m_queue.push_back(std::move(key));
  sendNext();
  return nullptr;
}

void Layouter::sendNext() {
  if (m_queue.empty() || m_isAtWork) return;
  if (!hasHelper()) return layOutHere(m_queue.front());
  if (!m_process) startHelper();
  if (m_process->state() == QProcess::Running) {
    m_process->write(QByteArray::fromStdString(encodeRequest(m_nextId, *m_queue.front())));
    m_isAtWork = m_isSent = true;
    m_timer.start(m_hasAnswered ? m_timeoutMs : std::max(m_timeoutMs, m_startupMs));
  } else if (!m_timer.isActive()) {
    m_timer.start(m_startupMs);
  }
}

void Layouter::readAnswers() {
  m_received += m_process->readAllStandardOutput();
  static const QByteArray kEnd = QByteArrayLiteral("\nend\n");
  const qsizetype end = m_received.indexOf(kEnd, std::max<qsizetype>(0, m_scanned - kEnd.size()));
  m_scanned = m_received.size();
  if (end < 0) return;
  QByteArray text = m_received.left(end + kEnd.size());
  m_received.remove(0, text.size());
  m_scanned = 0;
  if (!m_isSent || !m_received.isEmpty()) return fail(QStringLiteral("the layout helper sent an invalid answer"));
  m_timer.stop();
  m_isSent = false;
  compute([text, key = m_queue.front(), id = m_nextId](const std::atomic_bool&) -> LaidOut {
    auto answered = decodeAnswer(std::string_view(text.constData(), static_cast<std::size_t>(text.size())));
    if (!answered || answered->id != id) return {nullptr, QStringLiteral("the layout helper sent an invalid answer")};
    if (!answered->result) return {nullptr, QString::fromStdString(answered->error)};
    LayoutResult& result = *answered->result;
    if (result.positions.size() != key->boxes.size() || result.curves.size() != key->edges.size())
      return {nullptr, QStringLiteral("the layout helper sent too few positions")};
    attachCurves(*key, result);
    return {std::make_shared<const LayoutResult>(std::move(result)), {}};
  });
}

void Layouter::layOutHere(const Key& key) {
  m_isAtWork = true;
  compute([key](const std::atomic_bool& cancelled) -> LaidOut {
    LayoutResult result = layeredLayout(*key, &cancelled);
    if (!cancelled) attachCurves(*key, result);
    result.isSimplified = true;
    return {std::make_shared<const LayoutResult>(std::move(result)), {}};
  });
}

void Layouter::compute(std::function<LaidOut(const std::atomic_bool&)> work) {
  m_cancelled = std::make_shared<std::atomic_bool>(false);
  m_pool.start([this, work = std::move(work), cancelled = m_cancelled, id = m_nextId] {
    LaidOut answer = work(*cancelled);
    if (*cancelled) return;
    QMetaObject::invokeMethod(
        this, [this, id, answer = std::move(answer)] { take(id, answer); }, Qt::QueuedConnection);
  });
}

void Layouter::take(std::uint64_t id, const LaidOut& answer) {
  if (id != m_nextId || m_queue.empty()) return;  // cancelled in the meantime
  if (!answer.layout) return fail(answer.failure);
  if (!answer.layout->isSimplified) {
    m_failures = 0;
    m_hasAnswered = true;
  }
  ++m_nextId;
  m_isAtWork = false;
  keep(m_queue.front(), answer.layout);
  m_queue.pop_front();
  sendNext();
  emit answered();
}

/// The helper failed for this request: use the built-in layout.
void Layouter::fail(const QString& what) {
  m_timer.stop();
  ++m_failures;
  dropHelper();
  emit helperFailed(
      hasHelper() ? QStringLiteral("%1; this module uses the simplified layout").arg(what)
                  : QStringLiteral("%1; 3 failures in a row, so the simplified layout is used from now on").arg(what));
  m_isAtWork = false;
  if (m_queue.empty()) return;
  startHelper();
  layOutHere(m_queue.front());
}

void Layouter::cancel() {
  m_queue.clear();
  m_timer.stop();
  if (m_cancelled) *m_cancelled = true;
  ++m_nextId;
  m_isAtWork = false;
  if (!m_isSent) return;
  dropHelper();
  startHelper();
}

}  // namespace cleave::views
