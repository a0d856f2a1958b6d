/// The line protocol: an encoded message is read back, and no line crashes the reader.
#include "protocol/events.h"
#include "tests/support/seeds.h"

#include <QTest>

#include <cmath>
#include <random>

using namespace cleave::protocol;

namespace {

/// The longest possible text in a line.
Span wideSpan() {
  constexpr std::int64_t kLong = std::int64_t{1} << 60;
  return {SpanKind::ReduceScatter, std::numeric_limits<std::int32_t>::max(), kLong, kLong - 1, kLong, 1 << 20, 1 << 20};
}

std::vector<Message> samples() {
  MemorySample memory;
  memory.timeUs = 123456;
  memory.weights = 1LL << 40;
  memory.programNode = 17;
  RankResult result;
  result.bytesRead = 4096;
  result.loss = 5.25;
  result.hasLoss = true;
  result.outputDigests = {{"logits", "00ff"}, {"loss", "12ab"}};
  result.program = "0123456789abcdef";
  return {Hello{kProtocolVersion, 3, 4711, "cpu"},
          PhaseChange{Phase::WarmUp, 2, 7},
          memory,
          Heartbeat{12'345},
          CollectiveDone{5, "all_gather", 1024, 88},
          Measurement{Measured::ReduceScatter, 1 << 20, 4, 12, 1.25e-3, 1e-3, 2.5e-3},
          TrainingStep{3, 10, 2.5, 0.75, true, 1234},
          Generated{1200, 45'000, 15, 6144},
          StepTimes{"boot", 12, 34, 500, 502, {Span{SpanKind::Forward, 7, 0, 5, 9}, wideSpan()}},
          MemoryAccount{900,
                        SpanKind::Backward,
                        4,
                        {1, 2, 3, 4, 5, 6, 7},
                        {7, 6, 5, 4, 3, 2, 1},
                        {{MemoryKind::Saved, 9, 77}},
                        {{MemoryKind::Transient, -1, 5}, {MemoryKind::Optimizer, 3, 1}}},
          result,
          ProgramDone{2, "00ff00ff00ff00ff", result},
          OutputPart{5, {std::string("\0\xff\n\"{", 5)}},
          RankError{"line one\nline \"two\" \x01", true, cleave::ErrorCode::Environment}};
}

}  // namespace

class EventsTest : public QObject {
  Q_OBJECT
 private slots:
  void readsBackWhatItWrites() {
    for (const Message& message : samples()) {
      const std::string line = encode(message);
      QCOMPARE(std::count(line.begin(), line.end(), '\n'), 1);
      const auto back = decode(line);
      QVERIFY2(back, back ? "" : back.error().message.c_str());
      QCOMPARE(back->index(), message.index());
      QCOMPARE(encode(*back), line);
    }
    const auto error = decode(encode(samples().back()));
    QVERIFY(std::get<RankError>(*error).peerFailed);
    QCOMPARE(std::get<RankError>(*error).message, std::get<RankError>(samples().back()).message);
  }

  void carriesPartsOfFilesOfAnyBytes() {
    const std::string bytes(kMaxPartBytes, '\xfe');
    const std::string line = encode(OutputPart{1 << 20, {bytes}});
    const auto back = decode(line);
    QVERIFY(back && std::get<OutputPart>(*back).bytes.data == bytes && std::get<OutputPart>(*back).total == 1 << 20);
    for (const std::string& wrong :
         {std::string("{\"type\":\"output\",\"bytes\":\"?\"}"), std::string("{\"type\":\"output\",\"bytes\":5}"),
          "{\"type\":\"output\",\"bytes\":\"" + std::string(44'000, 'A') + "\"}"})
      QVERIFY(!decode(wrong));
  }

  void timesFitALineHoweverWideTheyAre() {
    const StepTimes sent{"boot", 0, 0, 0, 1 << 20, std::vector<Span>(kMostSpansInLine, wideSpan())};
    const std::string line = encode(sent);
    QVERIFY(line.size() <= kMaxLineBytes);
    const auto back = decode(line);
    QVERIFY2(back, back ? "" : back.error().message.c_str());
    QVERIFY(std::get<StepTimes>(*back).spans == sent.spans);
    for (const char* wrong : {R"([1])", R"([0,0,0,0,0,0])", R"([9,0,0,0,0,0,1])", R"([0,-2,0,0,0,0,1])",
                              R"([0,0,0,5,4,0,1])", R"([0,0,0,0,0,0,0])", R"("x")"})
      QVERIFY2(!decode(std::string(R"({"type":"times","spans":)") + wrong + "}"), wrong);
  }

  void measurementsKeepAllDigits() {
    for (const Measured what : {Measured::Half, Measured::Float32, Measured::Float64, Measured::Memory,
                                Measured::AllReduce, Measured::AllGather, Measured::ReduceScatter}) {
      const Measurement sent{what, std::int64_t{1} << 40, 64, 100, 1.0 / 3e6, 1e-9, 12.75};
      const auto back = decode(encode(sent));
      QVERIFY2(back, back ? "" : back.error().message.c_str());
      const auto& read = std::get<Measurement>(*back);
      QCOMPARE(read.what, sent.what);
      QCOMPARE(read.amount, sent.amount);
      QCOMPARE(read.threads, sent.threads);
      QCOMPARE(read.repeats, sent.repeats);
      QVERIFY(read.median == sent.median && read.lowest == sent.lowest && read.highest == sent.highest);
    }
  }

  void keepsLossesThatAreNoNumbers() {
    for (double loss : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      RankResult result;
      result.loss = loss;
      const auto back = decode(encode(result));
      QVERIFY(back);
      const double read = std::get<RankResult>(*back).loss;
      QVERIFY(std::isnan(loss) ? std::isnan(read) : read == loss);
    }
  }

  void cutsLongTextsSoThatALineFits() {
    const auto line = encode(RankError{std::string(1 << 20, '\x02')});
    QVERIFY(line.size() <= kMaxLineBytes);
    RankResult many;
    for (int i = 0; i < 5000; ++i) many.outputDigests["output_" + std::to_string(i)] = "0123456789abcdef";
    QVERIFY(encode(many).size() <= kMaxLineBytes);
    const auto umlauts = decode(encode(RankError{[] {
      std::string text;
      for (int i = 0; i < 9000; ++i) text += "ä";
      return text;
    }()}));
    QVERIFY(umlauts);
    QVERIFY(std::get<RankError>(*umlauts).message.find("\xEF\xBF\xBD") == std::string::npos);
  }

  void replacesBytesThatAreNoUtf8() { QVERIFY(decode(encode(RankError{"\xff\xfe broken"}))); }

  void decodesAnUnknownTypeAsAHeartbeat() {
    const auto message = decode(R"({"type":"weather","sunny":true})");
    QVERIFY(message);
    QVERIFY(std::holds_alternative<Heartbeat>(*message));
  }

  void rejectsMalformedLines_data() {
    QTest::addColumn<QByteArray>("line");
    QTest::addColumn<QByteArray>("phrase");
    QTest::newRow("empty") << QByteArray("") << QByteArray("A rank's line is empty");
    QTest::newRow("array") << QByteArray("[1]") << QByteArray("must hold a JSON object");
    QTest::newRow("cut") << QByteArray("{\"type\":\"hel") << QByteArray("not valid JSON");
    QTest::newRow("no type") << QByteArray("{}") << QByteArray("type is missing");
    QTest::newRow("type is a number") << QByteArray(R"({"type":3})") << QByteArray("type must be a text, but it is 3");
    QTest::newRow("not UTF-8") << QByteArray("{\"type\":\"\xff\"}") << QByteArray("ill-formed UTF-8");
    QTest::newRow("a field twice") << QByteArray(R"({"type":"hello","rank":0,"rank":1})")
                                   << QByteArray("the key \"rank\" twice");
    QTest::newRow("text for a number") << QByteArray(R"({"type":"hello","rank":"0"})")
                                       << QByteArray("rank must be an integer");
    QTest::newRow("fraction") << QByteArray(R"({"type":"hello","rank":0.5})") << QByteArray("rank must be an integer");
    QTest::newRow("beyond 32 bits") << QByteArray(R"({"type":"hello","rank":99999999999})")
                                    << QByteArray("to 2147483647");
    QTest::newRow("beyond 64 bits") << QByteArray(R"({"type":"memory","rss":18446744073709551615})")
                                    << QByteArray("rss must be an integer");
    QTest::newRow("unknown phase") << QByteArray(R"({"type":"phase","phase":"dreaming"})") << QByteArray("phase");
    QTest::newRow("nothing measured") << QByteArray(R"({"type":"measurement","amount":1})")
                                      << QByteArray("what is missing");
    QTest::newRow("measured, unknown") << QByteArray(R"({"type":"measurement","what":"weight"})")
                                       << QByteArray("what is \"weight\"");
    QTest::newRow("measured, no time") << QByteArray(R"({"type":"measurement","what":"memory","median":"long"})")
                                       << QByteArray("median must be a number");
    QTest::newRow("measured, too much") << QByteArray(R"({"type":"measurement","what":"half","amount":1e30})")
                                        << QByteArray("amount must be an integer");
    QTest::newRow("other version") << QByteArray(R"({"type":"hello","version":99})") << QByteArray("version 99");
    QTest::newRow("digests") << QByteArray(R"({"type":"result","digests":{"a":1}})") << QByteArray("digests");
    QTest::newRow("too long") << QByteArray(kMaxLineBytes + 1, ' ') << QByteArray("bytes");
    QTest::newRow("deep") << QByteArray(30000, '[') << QByteArray("nested deeper than 4 levels");
  }
  void rejectsMalformedLines() {
    QFETCH(QByteArray, line);
    QFETCH(QByteArray, phrase);
    const auto message = decode(line.toStdString());
    QVERIFY(!message);
    QVERIFY2(message.error().message.find(phrase.toStdString()) != std::string::npos, message.error().message.c_str());
  }

  void survivesMutatedLines() {
    std::mt19937_64 random(cleave::test::seed());
    const auto messages = samples();
    const std::uint64_t rounds = cleave::test::rounds(20000);
    std::uint64_t read = 0;
    for (std::uint64_t left = rounds; left > 0; --left) {
      std::string line = encode(messages[random() % messages.size()]);
      for (unsigned edits = 1 + random() % 4; edits > 0 && !line.empty(); --edits) {
        const std::size_t at = random() % line.size();
        switch (random() % 4) {
          case 0: line[at] = static_cast<char>(random()); break;
          case 1: line.erase(at, 1 + random() % 8); break;
          case 2: line.insert(at, line.substr(random() % line.size(), random() % 16)); break;
          default: line.insert(at, 1, "{}[]\",:0-9e"[random() % 11]); break;
        }
      }
      const auto message = decode(line);
      if (!message) continue;
      ++read;
      QVERIFY(decode(encode(*message)));
    }
    QVERIFY2(rounds < 100 || (read > 0 && read < rounds), qPrintable(QString("%1 of %2 read").arg(read).arg(rounds)));
  }
};

QTEST_APPLESS_MAIN(EventsTest)
#include "tst_events.moc"
