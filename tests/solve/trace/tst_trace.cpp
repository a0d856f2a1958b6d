#include "base/files.h"
#include "solve/problem/device_profile.h"
#include "solve/problem/variables.h"
#include "tests/support/llama_graph.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

using namespace cleave;
using namespace cleave::solve;

namespace {

std::shared_ptr<const Problem> exploding(std::int64_t layers) {
  return test::problemOf(test::llamaGraph({.layers = layers, .hasLoss = false}), 2, {"lm_head=row"});
}

Event numbered(std::uint64_t i) {
  return {.type = EventType::Visit, .node = static_cast<std::uint32_t>(i), .detail = static_cast<std::uint32_t>(i * 7)};
}

std::string bytesOf(const fs::path& file) { return *readTextFile(file, 1 << 28); }

void write(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

/// The file in version 2, without a digest.
std::string withoutDigest(std::string file) {
  file[8] = 2;
  file.resize(file.size() - sizeof(std::uint64_t));
  return file;
}

void compareTraces(const Trace& a, const Trace& b) {
  QVERIFY(test::eventsOf(a) == test::eventsOf(b));
  QCOMPARE(a.choiceCount(), b.choiceCount());
  QCOMPARE(a.conflictCount(), b.conflictCount());
  for (std::size_t i = 0; i < a.choiceCount(); ++i) QVERIFY(a.choice(ChoiceId(i)) == b.choice(ChoiceId(i)));
  for (std::size_t i = 0; i < a.conflictCount(); ++i) QVERIFY(a.conflict(ConflictId(i)) == b.conflict(ConflictId(i)));
  QCOMPARE(a.stats().tries, b.stats().tries);
  QCOMPARE(a.stats().events, b.stats().events);
  QCOMPARE(graph::toText(*a.problem()->graph), graph::toText(*b.problem()->graph));
  QCOMPARE(a.problem()->pins.size(), b.problem()->pins.size());
  QCOMPARE(a.problem()->context.worldSize, b.problem()->context.worldSize);
  QCOMPARE(a.problem()->context.candidateSet, b.problem()->context.candidateSet);
  QVERIFY(a.engine() && a.engine() == b.engine());
  QCOMPARE(a.problem()->context.sequenceParallel, b.problem()->context.sequenceParallel);
  QVERIFY(a.problem()->cost == b.problem()->cost);
}

}  // namespace

class TestTrace : public QObject {
  Q_OBJECT
 private slots:
  void keepsTablesSmallInLongSearches() {
    const auto trace = test::record(exploding(5)).trace;
    QVERIFY(trace->stats().tries > 100'000);
    QVERIFY(trace->choiceCount() < 60);
    QVERIFY(trace->conflictCount() < 60);
  }

  void spillsEventsBeyondItsMemory() {
    const auto problem = exploding(1);
    TraceRecorder recorder(problem, {.memoryBytes = 64 << 10});
    constexpr std::uint64_t kEvents = 100'000;
    for (std::uint64_t i = 0; i < kEvents; ++i) {
      QVERIFY(recorder.onEvent(numbered(i)));
      if (i % 1000 == 0) QVERIFY(recorder.memoryBytes() <= 64 << 10);
    }
    const auto trace = recorder.trace();
    QCOMPARE(trace->size(), kEvents);
    std::vector<Event> events(kEvents);
    QCOMPARE(trace->read(0, events), std::size_t{kEvents});
    for (std::uint64_t i = 0; i < kEvents; ++i) QVERIFY(events[i] == numbered(i));
    std::vector<Event> across(5000);
    QCOMPARE(trace->read(kEvents - 7000, across), std::size_t{5000});
    QVERIFY(across.front() == numbered(kEvents - 7000));
    QCOMPARE(trace->read(kEvents - 10, across), std::size_t{10});
    QCOMPARE(trace->read(kEvents, across), std::size_t{0});
    QCOMPARE(trace->read(~StepId{0}, across), std::size_t{0});
  }

  void searchesEquallyWithLittleMemory() {
    const auto problem = exploding(3);
    compareTraces(*test::record(problem).trace, *test::record(problem, {.memoryBytes = 1}).trace);
  }

  void stopsAtItsLimitAndKeepsTheEnd() {
    const auto recorded = test::record(exploding(4), {.totalBytes = 16'000});
    QCOMPARE(recorded.result.outcome, Outcome::Stopped);
    QCOMPARE(recorded.trace->size(), StepId{1001});
    QCOMPARE(test::eventsOf(*recorded.trace).back().type, EventType::Stopped);
  }

  void asksAtItsLimitToContinue() {
    int asked = 0;
    const auto problem = exploding(3);
    const auto recorded = test::record(problem, {.totalBytes = 16'000, .onFull = [&](std::uint64_t bytes) {
                                                   ++asked;
                                                   return bytes < 100'000;
                                                 }});
    QCOMPARE(recorded.result.outcome, Outcome::Stopped);
    QCOMPARE(asked, 4);  // at 16, 32, 64 and 128 kB
    TraceRecorder recorder(problem, {.totalBytes = 160});
    for (int i = 0; i < 10; ++i) QVERIFY(recorder.onEvent(numbered(0)));
    QVERIFY(recorder.whyStopped().empty());
    QVERIFY(!recorder.onEvent(numbered(0)));
    QVERIFY(recorder.whyStopped().find("limit") != std::string::npos);
  }

  void isReadWhileItGrows() {
    const auto problem = exploding(5);
    TraceRecorder recorder(problem, {.memoryBytes = 1 << 20});
    const auto trace = recorder.trace();
    std::atomic<bool> isDone = false;
    std::jthread engine([&] {
      const auto result = solve::solve(*problem, Engine::Reference, recorder);
      QVERIFY(result.has_value());
      isDone = true;
    });
    Cursor cursor(trace);
    std::mt19937_64 random(test::seed(5));
    int looks = 0;
    while (!isDone || looks < 20) {
      const StepId size = trace->size();
      if (size == 0) continue;
      cursor.seek(looks % 2 == 0 ? size : random() % size);
      if (const auto last = cursor.lastEvent()) QVERIFY(!describe(*trace, *last).empty());
      if (const auto at = cursor.previous(EventType::Conflict)) cursor.seek(*at);
      ++looks;
    }
    engine.join();
    cursor.seek(trace->size());
    QCOMPARE(cursor.lastEvent()->type, EventType::Exhausted);
    QVERIFY(test::eventsOf(*trace) == test::eventsOf(*test::record(problem).trace));
  }

  void opensSavedFiles() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "search.cleave-trace";
    for (const auto& problem :
         {exploding(2), test::problemOf(test::llamaGraph({.isTied = true}), 4, {}, rules::SequenceParallel::On)}) {
      for (const Engine engine : {Engine::Reference, Engine::Learning}) {
        const auto trace = test::record(problem, {}, {}, engine).trace;
        QVERIFY(saveTrace(*trace, file).has_value());
        const auto opened = openTrace(file);
        QVERIFY2(opened.has_value(), opened ? "" : opened.error().message.c_str());
        compareTraces(*trace, **opened);
        Cursor a(trace), b(*opened);
        a.seek(trace->size() / 2);
        b.seek(trace->size() / 2);
        QVERIFY(a.changedSince(b).empty());
        const std::string first = bytesOf(file);
        QVERIFY(saveTrace(**opened, file).has_value());
        QVERIFY(bytesOf(file) == first);
      }
    }
  }

  /// Older files lack the engine in the header. They can still be read.
  void opensFilesWithoutAnEngine() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "t";
    QVERIFY(saveTrace(*test::record(exploding(1)).trace, file).has_value());
    std::string bytes = bytesOf(file);
    const std::string engine = R"(,"engine":"reference")";
    const auto at = bytes.find(engine);
    QVERIFY(at != std::string::npos);
    write(file, withoutDigest(bytes.replace(at, engine.size(), engine.size(), ' ')));
    const auto opened = openTrace(file);
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message.c_str());
    QVERIFY(!(*opened)->engine());
  }

  /// Older files also lack the device of the costs.
  void opensFilesWithoutADevice() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "t";
    auto problem = std::make_shared<Problem>(*exploding(1));
    problem->cost.profile.name = "lab";
    problem->cost.profile.memoryBytes = 3ll << 30;
    const auto trace = test::record(problem).trace;
    QVERIFY(saveTrace(*trace, file).has_value());
    compareTraces(*trace, **openTrace(file));
    std::string bytes = bytesOf(file);
    const std::string device = ",\"device\":" + jsonText(toJson(problem->cost.profile));
    const auto at = bytes.find(device);
    QVERIFY(at != std::string::npos);
    write(file, withoutDigest(bytes.replace(at, device.size(), device.size(), ' ')));
    const auto opened = openTrace(file);
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message.c_str());
    QVERIFY((*opened)->problem()->cost.profile == DeviceProfile());
  }

  void savesTheEventsOfAStoppedSearch() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "stopped.cleave-trace";
    const auto trace = test::record(exploding(4), {.totalBytes = 8'000}).trace;
    QVERIFY(saveTrace(*trace, file).has_value());
    compareTraces(*trace, **openTrace(file));
  }

  void removesItsFilesWhenSavingIsCancelledOrFails() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "t";
    const auto trace = test::record(exploding(1)).trace;
    std::stop_source stop;
    stop.request_stop();
    const auto cancelled = saveTrace(*trace, file, Progress(stop.get_token()));
    QCOMPARE(cancelled.error().code, ErrorCode::Cancelled);
    QVERIFY(fs::is_empty(file.parent_path()));
    const auto failed = saveTrace(*trace, "/nonexistent/folder/t");
    QCOMPARE(failed.error().code, ErrorCode::Environment);
    QVERIFY(failed.error().message.find("/nonexistent/folder/t") != std::string::npos);
  }

  void refusesDamagedFilesWithOneSentence_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("phrase");
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "t";
    QVERIFY(saveTrace(*test::record(exploding(1)).trace, file).has_value());
    const std::string good = bytesOf(file);
    const auto row = [&](const char* name, const std::string& bytes, const char* phrase) {
      QTest::newRow(name) << QByteArray(bytes.data(), static_cast<int>(bytes.size())) << QString(phrase);
    };
    std::uint64_t headerBytes = 0;
    std::memcpy(&headerBytes, good.data() + 16, 8);
    const std::size_t eventsAt = 32 + headerBytes;
    const auto patched = [&](std::size_t at, const std::string& with) {
      return std::string(good).replace(at, with.size(), with);
    };
    const auto replaced = [&](const std::string& what, const std::string& with) {
      std::string bytes = good;
      const auto at = bytes.find(what);
      if (at == std::string::npos || what.size() != with.size()) qFatal("bad row: %s", what.c_str());
      return bytes.replace(at, what.size(), with);
    };
    row("empty", "", "has 0 bytes, but the start of a trace alone has 32");
    row("another file", std::string(100, 'x'), "CLVTRACE");
    row("newer version", patched(8, std::string("\x09\0\0\0", 4)), "version 9");
    // Contents that are valid but differ from the recorded ones.
    row("another index of a candidate", patched(eventsAt + 16 + 2, "\x05"), "digest does not match");
    row("another slack", replaced("\"slack_percent\":1", "\"slack_percent\":2"), "digest does not match");
    row("another digest", good.substr(0, good.size() - 1) + static_cast<char>(good.back() ^ 1),
        "digest does not match");
    row("truncated", good.substr(0, good.size() - 5), "damaged");
    row("cut header", good.substr(0, 200), "damaged");
    row("huge header", patched(16, std::string(8, '\x7f')), "damaged");
    row("huge event count", patched(24, std::string(8, '\x7f')), "damaged");
    row("not JSON", patched(40, "}}}}"), "is not valid JSON at line 1");
    row("unknown menu", replaced("\"optimum\"", "\"opt1mum\""),
        "header.problem.menu is \"opt1mum\", which this version of Cleave does not know");
    row("no ranks", replaced("\"ranks\":2", "\"ranks\":0"), "rank");
    row("no placement", replaced("\"results\":[\"R\"]", "\"results\":[\"Q\"]"), "placement");
    const auto withHeader = [&](std::string header) {
      header.append((16 - header.size() % 16) % 16, ' ');
      const std::uint64_t sizes[2] = {header.size(), 0};
      return withoutDigest(good).substr(0, 16) + std::string(reinterpret_cast<const char*>(sizes), sizeof sizes) +
             header;
    };
    const std::string header = good.substr(32, headerBytes);
    const auto inHeader = [&](const std::string& what, const std::string& with) {
      const auto at = header.find(what);
      if (at == std::string::npos) qFatal("bad row: %s", what.c_str());
      return withHeader(std::string(header).replace(at, what.size(), with));
    };
    row("a scope nested 100,000 deep",
        inHeader("\"scope\":1", "\"scope\":" + std::string(100'000, '[') + std::string(100'000, ']')),
        "nested deeper than 32 levels");
    row("a scope that is a list", inHeader("\"scope\":", "\"scope\":[[1]],\"was\":"),
        ".scope must be an integer from 0 to");
    row("a class that is a number", inHeader("{\"path\":\"\"", "{\"class\":5,\"path\":\"\""),
        "graph.scopes[0].class must be a text, but it is 5");
    row("a field twice", inHeader("\"problem\":{", "\"problem\":{\"ranks\":2,"), "has the key \"problem.ranks\" twice");
    row("a text that is not UTF-8", inHeader("\"menu\":\"", "\"menu\":\"\xff"), "ill-formed UTF-8");
    row("unknown event type", patched(eventsAt, "\x2a"), "unknown type 42");
    row("unknown node", patched(eventsAt + 4, "\xff\xff\xff\x7f"), "names node");
    row("unknown choice", patched(eventsAt + 16 + 8, "\xff\xff"), "refers to choice");
    row("out of order", patched(eventsAt + 16 * 3, good.substr(eventsAt + 16, 16)), "order");
  }
  void refusesDamagedFilesWithOneSentence() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, phrase);
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "t";
    write(file, bytes.toStdString());
    const auto opened = openTrace(file);
    QVERIFY(!opened.has_value());
    QCOMPARE(opened.error().code, ErrorCode::BadInput);
    const QString message = QString::fromStdString(opened.error().message);
    QVERIFY2(message.contains(phrase), qPrintable(message));
    QVERIFY2(message.contains(QString::fromStdString(file.string())), qPrintable(message));
  }

  void opensFilesWithoutADigest() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "t";
    const auto trace = test::record(exploding(1)).trace;
    QVERIFY(saveTrace(*trace, file).has_value());
    write(file, withoutDigest(bytesOf(file)));
    const auto opened = openTrace(file);
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message.c_str());
    compareTraces(*trace, **opened);
  }

  /// Every changed byte is detected. Without a digest, an accepted file can at least be read to its end.
  void survivesRandomDamage_data() {
    const test::Rows<bool> row("hasDigest");
    row("with digest", true);
    row("without", false);
  }
  void survivesRandomDamage() {
    QFETCH(bool, hasDigest);
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "t";
    QVERIFY(saveTrace(*test::record(exploding(1)).trace, file).has_value());
    const std::string good = hasDigest ? bytesOf(file) : withoutDigest(bytesOf(file));
    std::mt19937_64 random(test::seed(20));
    const std::uint64_t rounds = test::rounds(300);
    int opens = 0;
    for (std::uint64_t left = rounds; left > 0; --left) {
      std::string bytes = good;
      for (std::uint64_t hits = 1 + random() % 4; hits > 0; --hits)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      if (random() % 4 == 0) bytes.resize(random() % bytes.size());
      write(file, bytes);
      const auto opened = openTrace(file);
      if (!opened) {
        QVERIFY(!opened.error().message.empty());
        continue;
      }
      QVERIFY(!hasDigest || bytes == good);
      ++opens;
      Cursor cursor(*opened);
      cursor.seek((*opened)->size());
      for (ValueId v : idRange<ValueId>((*opened)->problem()->graph->values.size())) cursor.placementOf(v);
      timeline(**opened, 0, (*opened)->size(), 10);
    }
    QVERIFY(hasDigest || rounds < 300 || opens > 10);
  }
};

QTEST_APPLESS_MAIN(TestTrace)
#include "tst_trace.moc"
