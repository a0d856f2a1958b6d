#include <QTest>

#include <random>

#include "formats/safetensors.h"
#include "tests/formats/folder_builder.h"
#include "tests/support/error_of.h"
#include "tests/support/seeds.h"

using namespace cleave;
using namespace cleave::formats;
using cleave::graph::DType;
using cleave::test::errorOf;
using cleave::test::safetensorsBytes;
using cleave::test::TemporaryFolder;

namespace {

constexpr const char* kWhere = "models/x/model.safetensors";

std::string lengthBytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes;
}

std::vector<std::byte> randomBytes(std::mt19937_64& random, std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xFF);
  return bytes;
}

/// The guarantees of an accepted header, checked without the reader's own code: the ranges tile the data up to the end
/// of the file.
bool isSound(const SafetensorsHeader& header, std::int64_t fileBytes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const auto& [name, entry] : header.tensors) {
    if (entry.bytes != graph::sizeInBytes(entry.type)) return false;
    ranges.emplace_back(entry.offset, entry.offset + entry.bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first != ranges[i - 1].second) return false;
  }
  return ranges.empty() || (ranges.front().first >= 10 && ranges.back().second == fileBytes);
}

}  // namespace

class SafetensorsTest : public QObject {
  Q_OBJECT
 private slots:
  void readsAFileOfTheReferenceLibrary() {
    const fs::path file = fs::path(CLEAVE_TEST_DATA) / "models/llama/expected.safetensors";
    const auto header = readSafetensorsHeader(file);
    QVERIFY2(header.has_value(), qPrintable(errorOf(header)));
    QCOMPARE(header->tensors.size(), 4u);
    const WeightSource& ids = header->tensors.at("input_ids");
    const WeightSource& logits = header->tensors.at("logits");
    QCOMPARE(ids.type, (graph::TensorType{DType::Int64, {2, 16}}));
    QCOMPARE(logits.type, (graph::TensorType{DType::Float32, {2, 16, 256}}));
    QCOMPARE(logits.bytes, 2 * 16 * 256 * 4);
    QCOMPARE(logits.offset - ids.offset, 512);
    QVERIFY(isSound(*header, static_cast<std::int64_t>(fs::file_size(file))));
  }

  void acceptsEveryWellFormedHeader_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<int>("tensors");
    const auto row = [](const char* name, const std::string& content, int tensors) {
      QTest::newRow(name) << QByteArray::fromStdString(content) << tensors;
    };
    row("no tensors", safetensorsBytes("{}"), 0);
    row("metadata alone", safetensorsBytes(R"({"__metadata__":{"format":"pt"}})"), 0);
    row("padded with spaces", safetensorsBytes(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}      )", 3), 1);
    row("scalar", safetensorsBytes(R"({"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})", 8), 1);
    row("empty tensor", safetensorsBytes(R"({"a":{"dtype":"F64","shape":[0,4],"data_offsets":[0,0]}})"), 1);
    row("keys against the offsets' order",
        safetensorsBytes(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[2,5]},"b":{"dtype":"I16","shape":[1],)"
                         R"("data_offsets":[0,2]}})",
                         5),
        2);
    row("empty tensor between others",
        safetensorsBytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[0],)"
                         R"("data_offsets":[2,2]},)"
                         R"("c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                         3),
        3);
    row("every dtype",
        safetensorsBytes(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],)"
                         R"("data_offsets":[8,12]},)"
                         R"("c":{"dtype":"F16","shape":[1],"data_offsets":[12,14]},"d":{"dtype":"BF16",)"
                         R"("shape":[1],"data_offsets":[14,16]},)"
                         R"("e":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[16,17]},"f":{"dtype":"F8_E5M2",)"
                         R"("shape":[1],"data_offsets":[17,18]},)"
                         R"("g":{"dtype":"I64","shape":[1],"data_offsets":[18,26]},"h":{"dtype":"I32",)"
                         R"("shape":[1],"data_offsets":[26,30]},)"
                         R"("i":{"dtype":"I16","shape":[1],"data_offsets":[30,32]},"j":{"dtype":"I8","shape":[1],)"
                         R"("data_offsets":[32,33]},)"
                         R"("k":{"dtype":"U8","shape":[1],"data_offsets":[33,34]},"l":{"dtype":"BOOL",)"
                         R"("shape":[1],"data_offsets":[34,35]}})",
                         35),
        12);
    row("dtypes that nobody computes with",
        safetensorsBytes(R"({"a":{"dtype":"U32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F4",)"
                         R"("shape":[3,2],"data_offsets":[8,11]}})",
                         11),
        2);
    row("white space before the object",
        safetensorsBytes(R"(  {"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1), 1);
    row("no metadata",
        safetensorsBytes(R"({"__metadata__":null,"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1), 1);
    row("name in Unicode", safetensorsBytes(R"({"größe":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1), 1);
  }
  void acceptsEveryWellFormedHeader() {
    QFETCH(QByteArray, content);
    QFETCH(int, tensors);
    const std::string text = content.toStdString();
    const auto header = parseSafetensorsHeader(text, kWhere);
    QVERIFY2(header.has_value(), qPrintable(errorOf(header)));
    QCOMPARE(static_cast<int>(header->tensors.size()), tensors);
    QVERIFY(isSound(*header, std::ssize(text)));
  }

  void dtypesThatNobodyComputesWithAreBytes() {
    const std::string text = safetensorsBytes(R"({"w":{"dtype":"U32","shape":[2,3],"data_offsets":[0,24]}})", 24);
    const auto header = parseSafetensorsHeader(text, kWhere);
    QVERIFY(header.has_value());
    const WeightSource& tensor = header->tensors.at("w");
    QCOMPARE(tensor.foreignType, std::string("U32[2, 3]"));
    QVERIFY(tensor.type == graph::TensorType({graph::DType::UInt8, {24}}));
  }

  void refusesMalformedHeaders_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("phrase");
    const auto raw = [](const char* name, const std::string& content, const char* phrase) {
      QTest::newRow(name) << QByteArray::fromStdString(content) << QString(phrase);
    };
    const auto row = [&](const char* name, const std::string& header, std::size_t dataBytes, const char* phrase) {
      raw(name, safetensorsBytes(header, dataBytes), phrase);
    };
    const auto one = [&](const char* name, const std::string& entry, const char* phrase, std::size_t dataBytes = 8) {
      row(name, "{\"w\":" + entry + "}", dataBytes, phrase);
    };
    raw("empty file", "", "has 0 bytes");
    raw("shorter than the length", "\x02\0\0", "It is truncated");
    raw("length beyond the file", lengthBytes(100) + "{}",
        "announces a header of 100 bytes, but only 2 follow. The file is truncated");
    raw("length beyond the limit", lengthBytes(100'000'001) + "{}",
        "announces a header of 100000001 bytes; the limit is 100000000");
    raw("length of all ones", lengthBytes(~0ull) + "{}", "announces a header of 18446744073709551615 bytes");
    raw("length with the sign bit", lengthBytes(1ull << 63) + "{}", "announces a header of 9223372036854775808 bytes");
    raw("header of no bytes", lengthBytes(0), "does not begin with '{'");
    raw("a zip archive", std::string("PK\3\4\0\0\0\0", 8), "announces a header of 67324752 bytes, but only 0 follow");
    row("header is a list", "[]", 0, "does not begin with '{'");
    row("header is cut", R"({"w":{"dtype":"F32")", 0, "is not valid JSON at line 1");
    row("text after the object", "{}x", 0, "is not valid JSON");
    row("not UTF-8", "{\"\xff\":1}", 0, "ill-formed UTF-8");
    row("duplicate tensor",
        R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
        2, "has the key \"w\" twice");
    one("duplicate dtype", R"({"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]})",
        "has the key \"w.dtype\" twice", 1);
    row("nested too deep", R"({"w":{"x":[[[[[[[[1]]]]]]]]}})", 0, "is nested deeper than 8 levels");
    one("entry is a number", "3", "tensor \"w\" is described by 3, not by an object");
    one("no dtype", R"({"shape":[2],"data_offsets":[0,8]})", "tensor \"w\" has no dtype");
    one("dtype is a number", R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})",
        "tensor \"w\" has the dtype 32, which is not a text");
    one("half a byte", R"({"dtype":"F4","shape":[3],"data_offsets":[0,2]})",
        "tensor \"w\" has the shape [3] of F4, which is not a whole number of bytes");
    one("PyTorch's dtype name", R"({"dtype":"float32","shape":[2],"data_offsets":[0,8]})",
        "has the dtype \"float32\", which does not exist in the format (it has F64, F32,");
    one("no shape", R"({"dtype":"F32","data_offsets":[0,8]})", "tensor \"w\" has no shape");
    one("shape is a number", R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})",
        "tensor \"w\" has the shape 2, which is not a list");
    one("negative size", R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "tensor \"w\" has -2 in its shape");
    one("two negative sizes", R"({"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]})",
        "tensor \"w\" has -2 in its shape");
    one("fractional size", R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})",
        "tensor \"w\" has 2.0 in its shape");
    one("size as text", R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})", "tensor \"w\" has \"2\" in its shape");
    one("null size", R"({"dtype":"F32","shape":[null],"data_offsets":[0,8]})", "tensor \"w\" has null in its shape");
    one("size beyond 64 bits", R"({"dtype":"F32","shape":[18446744073709551618],"data_offsets":[0,8]})",
        "in its shape, but a whole number from 0 to 2^63 - 1 is required");
    one("elements overflow", R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})",
        "whose size in bits does not fit 64 bits");
    one("bytes overflow", R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,8]})",
        "whose size in bits does not fit 64 bits");
    one("elements wrap to two", R"({"dtype":"F32","shape":[4611686018427387905,4],"data_offsets":[0,16]})",
        "whose size in bits does not fit 64 bits", 16);
    std::string ones = "1";
    for (int i = 0; i < 64; ++i) ones += ",1";
    one("too many dimensions", R"({"dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1]})",
        "has 65 dimensions; at most 64 are accepted", 1);
    one("no offsets", R"({"dtype":"F32","shape":[2]})", "tensor \"w\" has no data_offsets");
    one("one offset", R"({"dtype":"F32","shape":[2],"data_offsets":[8]})", "tensor \"w\" has 1 data_offsets");
    one("three offsets", R"({"dtype":"F32","shape":[2],"data_offsets":[0,4,8]})", "tensor \"w\" has 3 data_offsets");
    one("offsets are an object", R"({"dtype":"F32","shape":[2],"data_offsets":{"0":0}})",
        "data_offsets {\"0\":0}, which is not a list");
    one("negative offset", R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})",
        "tensor \"w\" has -8 in its data_offsets");
    one("offsets end before they begin", R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})",
        "which end before they begin");
    one("fewer bytes than the shape", R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
        "tensor \"w\" has the shape [3] of F32, that is 12 bytes, but its data_offsets [0, 8] hold 8");
    one("more bytes than the shape", R"({"dtype":"F16","shape":[3],"data_offsets":[0,8]})",
        "that is 6 bytes, but its data_offsets [0, 8] hold 8");
    one("data cut", R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})",
        "tensor \"w\" ends at byte 8 of the data, but the file holds only 7 bytes of data. The file is truncated", 7);
    one("data left over", R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})",
        "its tensors end at byte 8: 1 byte belongs to no tensor", 9);
    row("data without tensors", "{}", 4, "4 bytes belong to no tensor");
    one("hole before the first", R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})",
        "tensor \"w\" begins at byte 4 of the data, after a gap that begins at 0");
    one("offsets near the limit",
        R"({"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807]})",
        "tensor \"w\" ends at byte 9223372036854775807 of the data");
    row("hole between two",
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
        5, "tensor \"b\" begins at byte 3 of the data, after a gap that begins at 2");
    row("overlap",
        R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})",
        5, "tensor \"b\" begins at byte 2 of the data and overlaps tensor \"a\", which ends at 3");
    row("same bytes twice",
        R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
        3, "tensor \"b\" begins at byte 0 of the data and overlaps tensor \"a\"");
    row("empty tensor inside another",
        R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
        3, "overlaps tensor \"a\"");
    row("metadata is a text", R"({"__metadata__":"pt"})", 0, "__metadata__ must be an object, but it is \"pt\"");
    row("metadata holds a number", R"({"__metadata__":{"epoch":3}})", 0,
        "__metadata__ must hold texts only, but \"epoch\" is 3");
    row("metadata holds an object", R"({"__metadata__":{"a":{}}})", 0,
        "__metadata__ must hold texts only, but \"a\" is {}");
  }
  void refusesMalformedHeaders() {
    QFETCH(QByteArray, content);
    QFETCH(QString, phrase);
    const TemporaryFolder folder;
    const fs::path file = folder.write("model.safetensors", content.toStdString());
    const auto header = readSafetensorsHeader(file);
    QVERIFY(!header);
    QCOMPARE(header.error().code, ErrorCode::BadInput);
    const QString message = errorOf(header);
    QVERIFY2(message.contains(QString::fromStdString(file.string())) && message.contains(phrase), qPrintable(message));
    QVERIFY2(message.endsWith('.') && !message.contains('\n'), qPrintable(message));
    const auto inMemory = parseSafetensorsHeader(content.toStdString(), file.string());
    QCOMPARE(errorOf(inMemory), message);
  }

  void refusesWhatIsNotAFile() {
    const TemporaryFolder folder;
    QVERIFY(errorOf(readSafetensorsHeader(folder.path())).contains("is not a regular file"));
    QVERIFY(errorOf(readSafetensorsHeader(folder.path() / "none.safetensors")).contains("No such file"));
  }

  void readsBackWhatItWrote() {
    std::mt19937_64 random(test::seed(20260101));
    const TemporaryFolder folder;
    const DType dtypes[] = {DType::Float64,    DType::Float32,    DType::Float16, DType::BFloat16,
                            DType::Float8E4M3, DType::Float8E5M2, DType::Int64,   DType::Int32,
                            DType::Int16,      DType::Int8,       DType::UInt8,   DType::Bool};
    for (std::uint64_t round = 0, rounds = test::rounds(50); round < rounds; ++round) {
      std::vector<std::vector<std::byte>> payloads;
      std::vector<TensorView> tensors;
      const int count = static_cast<int>(random() % 12);
      for (int i = 0; i < count; ++i) {
        TensorView tensor{fmt::format("layer.{}.\"ü\"", i), {dtypes[random() % 12], {}}, {}};
        for (unsigned d = random() % 4; d > 0; --d) tensor.type.shape.push_back(random() % 5);
        payloads.push_back(randomBytes(random, graph::sizeInBytes(tensor.type)));
        tensors.push_back(tensor);
      }
      for (int i = 0; i < count; ++i)
        tensors[static_cast<std::size_t>(i)].bytes = payloads[static_cast<std::size_t>(i)];
      const fs::path file = folder.path() / "out.safetensors";
      const auto written = writeSafetensors(file, tensors, {{"round", std::to_string(round)}});
      QVERIFY2(written.has_value(), qPrintable(errorOf(written)));
      const auto header = readSafetensorsHeader(file);
      QVERIFY2(header.has_value(), qPrintable(errorOf(header)));
      QCOMPARE(header->metadata.at("round"), std::to_string(round));
      QCOMPARE(header->tensors.size(), tensors.size());
      const auto opened = RandomAccessFile::open(file);
      for (const TensorView& tensor : tensors) {
        const WeightSource& entry = header->tensors.at(tensor.name);
        QCOMPARE(entry.type, tensor.type);
        QCOMPARE(entry.offset % graph::itemSize(entry.type.dtype), 0);
        std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
        QVERIFY(opened->readAt(entry.offset, bytes));
        QVERIFY(std::equal(bytes.begin(), bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
      }
    }
  }

  void refusesToWriteWhatItCouldNotRead() {
    const TemporaryFolder folder;
    const fs::path file = folder.write("out.safetensors", "as it was");
    const std::vector<std::byte> bytes(8);
    const TensorView good{"w", {DType::Float32, {2}}, bytes};
    const auto refusal = [&](const std::vector<TensorView>& tensors) {
      return errorOf(writeSafetensors(file, tensors));
    };
    QVERIFY(refusal({good, good}).contains("tensor \"w\" cannot be written twice"));
    QVERIFY(refusal({{"w", {DType::Float32, {3}}, bytes}}).contains("it has 8 bytes, which do not make a f32[3]"));
    QVERIFY(refusal({{"w", {DType::Float32, {-2, -1}}, bytes}}).contains("do not make"));
    QVERIFY(refusal({{"__metadata__", {DType::Float32, {2}}, bytes}}).contains("the format reserves this name"));
    QVERIFY(refusal({{"\xff", {DType::Float32, {2}}, bytes}}).contains("is not valid UTF-8"));
    QCOMPARE(readTextFile(file, 100).value(), std::string("as it was"));
    QVERIFY(errorOf(writeSafetensors(folder.path() / "none/out.safetensors", std::vector{good}))
                .contains("none/out.safetensors"));
  }

  void survivesDamage() {
    std::mt19937_64 random(test::seed(7));
    const fs::path file = fs::path(CLEAVE_TEST_DATA) / "models/llama-tied/model.safetensors";
    const std::string whole = readTextFile(file, 10 << 20).value();
    const std::string small =
        safetensorsBytes(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                         R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})",
                         14);
    int believed = 0;
    for (std::uint64_t round = 0, rounds = test::rounds(20'000); round < rounds; ++round) {
      std::string damaged = round % 20 == 0 ? whole : small;
      // Only the length and the header are read, so only they are damaged.
      const std::size_t reach = std::min<std::size_t>(damaged.size(), round % 20 == 0 ? 4000 : small.size());
      for (unsigned flips = 1 + random() % 3; flips > 0; --flips)
        damaged[random() % reach] = static_cast<char>(random());
      if (random() % 4 == 0) damaged.resize(random() % damaged.size());
      const auto header = parseSafetensorsHeader(damaged, kWhere);
      if (header) {
        ++believed;
        QVERIFY2(isSound(*header, std::ssize(damaged)), qPrintable(QString("round %1").arg(round)));
      } else {
        QVERIFY(!header.error().message.empty());
      }
    }
    QVERIFY(believed > 0);  // damage to names and data bytes is not damage to the format
  }
};

QTEST_APPLESS_MAIN(SafetensorsTest)
#include "tst_safetensors.moc"
