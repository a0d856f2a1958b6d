#include "canvas/layouter.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <algorithm>

#include "canvas/layout_protocol.h"

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
  m_timer.setSingleShot(true);
  connect(&m_timer, &QTimer::timeout, this, [this] { fail(tr("the layout helper did not answer in time")); });
  connect(&m_process, &QProcess::readyReadStandardOutput, this, &Layouter::readAnswers);
  connect(&m_process, &QProcess::started, this, &Layouter::sendNext);
  connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart)
      fail(tr("%1 could not be started as the layout helper").arg(m_helper.program));
  });
  connect(&m_process, &QProcess::finished, this, [this] {
    if (m_isSent) fail(tr("the layout helper ended in the middle of a layout"));
  });
  m_process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
  startHelper();
}

Layouter::~Layouter() {
  m_isClosing = true;
  m_process.disconnect(this);
  m_process.closeWriteChannel();
  m_process.kill();
  m_process.waitForFinished(1000);
}

void Layouter::startHelper() {
  if (m_helper.program.isEmpty() || m_isClosing || m_failures >= kMaxFailures) return;
  if (m_process.state() != QProcess::NotRunning) return;
  m_hasAnswered = false;
  m_process.start(m_helper.program, m_helper.arguments);
}

std::shared_ptr<const LayoutResult> Layouter::find(const LayoutRequest& request) {
  auto key = std::make_shared<const LayoutRequest>(request);
  if (const auto known = m_cache.find(key); known != m_cache.end()) return known->second;
  const bool hasHelper = !m_helper.program.isEmpty() && m_failures < kMaxFailures;
  if (isColumn(request) || !hasHelper) {
    LayoutResult result = layeredLayout(request);
    attachCurves(request, result);
    result.isSimplified = !isColumn(request);
    if (m_cache.size() >= kMaxCached) m_cache.clear();
    return m_cache[std::move(key)] = std::make_shared<const LayoutResult>(std::move(result));
  }
  const bool isWaiting = std::any_of(m_queue.begin(), m_queue.end(), [&](const Key& k) { return *k == request; });
  if (!isWaiting) m_queue.push_back(std::move(key));
  sendNext();
  return nullptr;
}

void Layouter::sendNext() {
  if (m_queue.empty() || m_isSent) return;
  if (m_process.state() == QProcess::NotRunning) {
    startHelper();
    if (!m_timer.isActive()) m_timer.start(m_startupMs);
    return;
  }
  if (m_process.state() != QProcess::Running) return;
  m_process.write(QByteArray::fromStdString(encodeRequest(m_nextId, *m_queue.front())));
  m_isSent = true;
  m_timer.start(m_hasAnswered ? m_timeoutMs : std::max(m_timeoutMs, m_startupMs));
}

void Layouter::readAnswers() {
  m_received += m_process.readAllStandardOutput();
  while (true) {
    const auto end = m_received.startsWith("end\n") ? 0 : m_received.indexOf("\nend\n");
    if (end < 0) return;
    const QByteArray text = m_received.left(end + 5);
    m_received.remove(0, end + 5);
    const auto answered = decodeAnswer(std::string_view(text.constData(), static_cast<std::size_t>(text.size())));
    if (!answered || answered->id != m_nextId || !m_isSent)
      return fail(tr("the layout helper sent an answer that makes no sense"));
    const LayoutRequest& request = *m_queue.front();
    const bool fits = answered->result && answered->result->positions.size() == request.boxes.size() &&
                      answered->result->curves.size() == request.edges.size();
    if (!fits)
      return fail(answered->error.empty() ? tr("the layout helper sent too few positions")
                                          : QString::fromStdString(answered->error));
    m_failures = 0;
    m_hasAnswered = true;
    answer(*answered->result);
  }
}

void Layouter::answer(LayoutResult result) {
  m_timer.stop();
  m_isSent = false;
  ++m_nextId;
  const Key key = m_queue.front();
  m_queue.pop_front();
  attachCurves(*key, result);
  if (m_cache.size() >= kMaxCached) m_cache.clear();
  m_cache[key] = std::make_shared<const LayoutResult>(std::move(result));
  sendNext();
  emit this->answered();
}

void Layouter::fail(const QString& what) {
  m_timer.stop();
  ++m_failures;
  m_received.clear();
  m_isSent = false;
  if (m_process.state() != QProcess::NotRunning) {
    m_process.kill();
    m_process.waitForFinished(500);
  }
  emit helperFailed(m_failures < kMaxFailures
                        ? tr("%1; this module is drawn with the simplified layout").arg(what)
                        : tr("%1, three times in a row; the simplified layout is used from now on").arg(what));
  if (m_queue.empty()) return;
  LayoutResult result = layeredLayout(*m_queue.front());
  result.isSimplified = true;
  if (m_failures >= kMaxFailures) m_queue.resize(1);  // the others are answered when they are asked for again
  startHelper();
  answer(std::move(result));
}

void Layouter::cancel() {
  m_queue.clear();
  m_timer.stop();
  if (!m_isSent) return;
  m_isSent = false;
  m_received.clear();
  ++m_nextId;
  m_process.kill();
  m_process.waitForFinished(500);
  startHelper();
}

}  // namespace cleave::views
