#include <qfloat16.h>  // nlohmann/json tests whether QTest's types convert, so they must be complete
#include <QMap>
#include <QTest>

#include <unistd.h>

#include <random>
#include <set>

#include "formats/model_folder.h"
#include "formats/safetensors.h"
#include "formats/weight_files.h"
#include "tests/formats/folder_builder.h"
#include "tests/support/error_of.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"

#include <nlohmann/json.hpp>

using namespace cleave;
using namespace cleave::formats;
using cleave::test::errorOf;
using cleave::test::oneTensor;
using cleave::test::safetensorsBytes;
using cleave::test::TemporaryFolder;

namespace {

constexpr const char* kConfig = R"({"model_type": "llama"})";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string indexOf(const std::string& weightMap) {
  return "{\"metadata\":{\"total_size\":16},\"weight_map\":" + weightMap + "}";
}

/// File name (relative) → content; one row in a table of folders.
using Files = QMap<QString, QByteArray>;

void writeAll(const TemporaryFolder& folder, const Files& files) {
  for (auto it = files.begin(); it != files.end(); ++it) folder.write(it.key().toStdString(), it.value().toStdString());
}

QByteArray tensorFile(const char* name) { return QByteArray::fromStdString(oneTensor(name)); }
QByteArray indexFile(const char* weightMap) { return QByteArray::fromStdString(indexOf(weightMap)); }

}  // namespace

class ModelFolderTest : public QObject {
  Q_OBJECT
 private slots:
  void opensTheFixtures_data() {
    const test::Rows<int, int> row("tensors", "files");
    row("llama", 21, 3);
    row("llama-tied", 20, 1);
    row("qwen2", 27, 1);
    row("gpt2", 28, 1);
    row("mixtral", 41, 4);
  }
  void opensTheFixtures() {
    QFETCH(int, tensors);
    QFETCH(int, files);
    const fs::path path = fs::path(CLEAVE_TEST_DATA) / "models" / QTest::currentDataTag();
    const auto model = openModelFolder(path);
    QVERIFY2(model.has_value(), qPrintable(errorOf(model)));
    QCOMPARE(model->path, path);
    QVERIFY(model->config->contains("model_type"));
    QVERIFY(model->hasWeights());
    QCOMPARE(static_cast<int>(model->tensors.size()), tensors);
    std::set<std::string> used;
    for (const auto& [name, tensor] : model->tensors) {
      used.insert(tensor.file);
      QCOMPARE(tensor.bytes, graph::sizeInBytes(tensor.type));
    }
    QCOMPARE(static_cast<int>(used.size()), files);
  }

  void readsTheRawConfig() {
    const auto model = openModelFolder(fs::path(CLEAVE_TEST_DATA) / "models/llama/config.json");
    QVERIFY2(model.has_value(), qPrintable(errorOf(model)));
    QCOMPARE((*model->config)["hidden_size"], nlohmann::json(64));
    QVERIFY((*model->config)["rope_scaling"].is_null());
    const WeightSource& head = model->tensors.at("lm_head.weight");
    QCOMPARE(head.file, std::string("model-00003-of-00003.safetensors"));
    QCOMPARE(head.type, (graph::TensorType{graph::DType::Float32, {256, 64}}));
  }

  void opensWellFormedFolders_data() {
    const test::Rows<Files, QStringList> rows("files", "expected");  // "tensor in file"
    const auto row = [&](const char* name, Files files, const QStringList& expected) {
      files.insert("config.json", kConfig);
      rows(name, files, expected);
    };
    row("config alone", {}, {});
    row("config beside other files",
        {{"README.md", "x"}, {"training_args.bin", "x"}, {"optimizer.pt", "x"}, {"tokenizer.json", "{}"}}, {});
    row("expected outputs are not weights", {{"expected.safetensors", tensorFile("logits")}}, {});
    row("adapters are not weights", {{"adapter_model.safetensors", tensorFile("a")}}, {});
    row("one file", {{"model.safetensors", tensorFile("a")}, {"expected.safetensors", tensorFile("a")}},
        {"a in model.safetensors"});
    row("safetensors win over pickles", {{"model.safetensors", tensorFile("a")}, {"pytorch_model.bin", "x"}},
        {"a in model.safetensors"});
    row("one file of another name", {{"weights.safetensors", tensorFile("a")}}, {"a in weights.safetensors"});
    row("a variant", {{"model.fp16.safetensors", tensorFile("a")}}, {"a in model.fp16.safetensors"});
    row("index",
        {{kIndex, indexFile(R"({"a":"x.safetensors","b":"y.safetensors"})")},
         {"x.safetensors", tensorFile("a")},
         {"y.safetensors", tensorFile("b")}},
        {"a in x.safetensors", "b in y.safetensors"});
    row("index into a subfolder",
        {{kIndex, indexFile(R"({"a":"sub/x.safetensors"})")}, {"sub/x.safetensors", tensorFile("a")}},
        {"a in sub/x.safetensors"});
    row("index with two spellings of one file",
        {{kIndex, indexFile(R"({"a":"./x.safetensors","b":"x.safetensors"})")},
         {"x.safetensors", QByteArray::fromStdString(safetensorsBytes(
                               R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],)"
                               R"("data_offsets":[1,2]}})",
                               2))}},
        {"a in x.safetensors", "b in x.safetensors"});
    row("index that names the single file",
        {{kIndex, indexFile(R"({"a":"model.safetensors"})")}, {"model.safetensors", tensorFile("a")}},
        {"a in model.safetensors"});
    row("a single file beside an old index",
        {{kIndex, indexFile(R"({"a":"model-00001-of-00002.safetensors"})")}, {"model.safetensors", tensorFile("a")}},
        {"a in model.safetensors"});
    row("a tensor that the index leaves out",
        {{kIndex, indexFile(R"({"a":"x.safetensors","b":"y.safetensors"})")},
         {"x.safetensors", QByteArray::fromStdString(safetensorsBytes(
                               R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"c":{"dtype":"U8","shape":[1],)"
                               R"("data_offsets":[1,2]}})",
                               2))},
         {"y.safetensors", tensorFile("b")}},
        {"a in x.safetensors", "b in y.safetensors", "c in x.safetensors"});
    row("shards without an index",
        {{"model-00001-of-00002.safetensors", tensorFile("a")}, {"model-00002-of-00002.safetensors", tensorFile("b")}},
        {"a in model-00001-of-00002.safetensors", "b in model-00002-of-00002.safetensors"});
    row("names that only look like shards",
        {{"model-00001-of-0000x.safetensors", tensorFile("a")}, {"model-00009-of-00002.safetensors", tensorFile("b")}},
        {"a in model-00001-of-0000x.safetensors", "b in model-00009-of-00002.safetensors"});
    row("two model files without numbers",
        {{"model-a.safetensors", tensorFile("a")}, {"model-b.safetensors", tensorFile("b")}},
        {"a in model-a.safetensors", "b in model-b.safetensors"});
  }
  void opensWellFormedFolders() {
    QFETCH(Files, files);
    QFETCH(QStringList, expected);
    const TemporaryFolder folder;
    writeAll(folder, files);
    const auto model = openModelFolder(folder.path());
    QVERIFY2(model.has_value(), qPrintable(errorOf(model)));
    QStringList found;
    for (const auto& [name, tensor] : model->tensors) found << QString::fromStdString(name + " in " + tensor.file);
    QCOMPARE(found, expected);
    QCOMPARE(model->hasWeights(), !expected.isEmpty());
  }

  void refusesMalformedFolders_data() {
    const test::Rows<Files, QString, QString> row("files", "place", "phrase");
    const auto withConfig = [&](const char* name, Files files, const char* place, const char* phrase) {
      files.insert("config.json", kConfig);
      row(name, files, place, phrase);
    };
    const auto mapped = [&](const char* name, const char* fileName, const char* phrase) {
      const std::string map = nlohmann::json{{"lm_head.weight", std::string(fileName)}}.dump();
      withConfig(name,
                 {{kIndex, indexFile(map.c_str())}, {"model-00001-of-00001.safetensors", tensorFile("lm_head.weight")}},
                 kIndex, phrase);
    };

    row("empty folder", {}, "", "is empty. A model folder needs a config.json");
    row("no config", {{"README.md", "x"}}, "", "has no config.json, so it is not a model folder");
    row("weights without config", {{"model.safetensors", tensorFile("a")}}, "",
        "has weights (model.safetensors), but no config.json");
    row("pickle without config", {{"pytorch_model.bin", "x"}}, "",
        "has weights (pytorch_model.bin), but no config.json");
    row("GGUF alone", {{"model.Q4_K_M.gguf", "GGUF"}}, "",
        "holds a GGUF file (model.Q4_K_M.gguf), which Cleave does not read");
    row("adapter", {{"adapter_config.json", "{}"}, {"adapter_model.safetensors", tensorFile("a")}}, "",
        "holds an adapter (adapter_config.json), not a model");
    row("Meta's own form", {{"params.json", "{}"}, {"consolidated.00.pth", "x"}}, "",
        "has a params.json, but no config.json");

    row("empty config", {{"config.json", ""}}, "config.json", "is empty");
    row("config is not JSON", {{"config.json", "model_type: llama"}}, "config.json",
        "is not valid JSON at line 1, column 1");
    row("config is a list", {{"config.json", "[]"}}, "config.json", "must hold a JSON object, but it holds []");
    row("config with a duplicate key", {{"config.json", R"({"hidden_size":1,"hidden_size":2})"}}, "config.json",
        "has the key \"hidden_size\" twice");
    row("config too deep", {{"config.json", "{\"a\":" + QByteArray(100, '[') + QByteArray(100, ']') + "}"}},
        "config.json", "is nested deeper than 64 levels");
    row("config too large", {{"config.json", "{\"a\":\"" + QByteArray(17 << 20, 'x') + "\"}"}}, "config.json",
        "the limit is 16777216");

    withConfig("pickled weights", {{"pytorch_model.bin", "x"}}, "pytorch_model.bin",
               "holds its weights as PyTorch pickle only: a pickle can run any program");
    withConfig("sharded pickles", {{"pytorch_model-00001-of-00002.bin", "x"}, {"pytorch_model.bin.index.json", "{}"}},
               "pytorch_model-00001-of-00002.bin", "convert it once with: python -c");
    withConfig("a .pt file", {{"model.pt", "x"}}, "model.pt", "save_pretrained");
    withConfig("a .pth file", {{"consolidated.00.pth", "x"}}, "consolidated.00.pth", "PyTorch pickle");
    withConfig("a .ckpt file", {{"last.ckpt", "x"}}, "last.ckpt", "PyTorch pickle");
    withConfig("GGUF weights", {{"model.gguf", "x"}}, "model.gguf",
               "holds its weights as GGUF only: Cleave reads safetensors");
    withConfig("Flax weights", {{"flax_model.msgpack", "x"}}, "flax_model.msgpack", "holds its weights as Flax only");
    withConfig("TensorFlow weights", {{"tf_model.h5", "x"}}, "tf_model.h5", "holds its weights as TensorFlow only");

    withConfig("truncated weights", {{"model.safetensors", tensorFile("w").chopped(1)}}, "model.safetensors",
               "tensor \"w\" ends at byte 8 of the data");
    withConfig("empty weights", {{"model.safetensors", ""}}, "model.safetensors", "has 0 bytes");
    withConfig("a Git LFS pointer instead of weights",
               {{"model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"}},
               "model.safetensors", "is a Git LFS pointer, not the file itself. Run git lfs pull");
    withConfig("two files of unknown names",
               {{"one.safetensors", tensorFile("a")}, {"two.safetensors", tensorFile("b")}}, "",
               "has 2 safetensors files (one.safetensors, two.safetensors) and no model.safetensors.index.json");
    withConfig("a tensor in two files",
               {{"model-a.safetensors", tensorFile("w")}, {"model-b.safetensors", tensorFile("w")}}, "",
               "tensor \"w\" is in model-a.safetensors and in model-b.safetensors");
    withConfig(
        "a missing shard without an index",
        {{"model-00001-of-00003.safetensors", tensorFile("a")}, {"model-00003-of-00003.safetensors", tensorFile("b")}},
        "model-00002-of-00003.safetensors",
        "is missing. It is one of 3 files according to the name of model-00001-of-00003.safetensors");

    withConfig("empty index", {{kIndex, ""}}, kIndex, "is empty");
    withConfig("index is not JSON", {{kIndex, "{"}}, kIndex, "is not valid JSON");
    withConfig("index is a list", {{kIndex, "[1]"}}, kIndex, "must hold a JSON object, but it holds [1]");
    withConfig("index without weight_map", {{kIndex, "{}"}}, kIndex, "weight_map is missing: it must be an object");
    withConfig("weight_map is a list", {{kIndex, indexFile("[]")}}, kIndex,
               "weight_map must be an object that maps each tensor to its file, but it is []");
    withConfig("weight_map is empty", {{kIndex, indexFile("{}")}}, kIndex, "weight_map has no tensors");
    withConfig("weight_map with a number", {{kIndex, indexFile(R"({"w":3})")}}, kIndex,
               "weight_map[\"w\"] must be a file name, but it is 3");
    withConfig("weight_map with a duplicate", {{kIndex, indexFile(R"({"w":"a.safetensors","w":"a.safetensors"})")}},
               kIndex, "has the key \"weight_map.w\" twice");
    mapped("parent folder", "../x.safetensors",
           "weight_map[\"lm_head.weight\"] is \"../x.safetensors\": the path contains \"..\"");
    mapped("parent folder inside", "sub/../../x.safetensors", "the path contains \"..\"");
    mapped("parent folder at the end", "x.safetensors/..", "the path contains \"..\"");
    mapped("absolute path", "/etc/x.safetensors", "is \"/etc/x.safetensors\": the path is absolute");
    mapped("drive letter", "C:x.safetensors", "the path begins with a drive letter");
    mapped("backslash", "..\\x.safetensors", "the name contains a backslash");
    mapped("empty name", "", "the name is empty");
    mapped("suffix alone", ".safetensors", "does not end in .safetensors");
    mapped("other suffix", "x.json",
           "the name does not end in .safetensors; it must name a .safetensors file inside the model folder");
    mapped("suffix in capitals", "x.SAFETENSORS", "does not end in .safetensors");
    mapped("pickle", "pytorch_model.bin", "it is a pickle, which Cleave does not read");
    withConfig("NUL", {{kIndex, indexFile(R"({"w":"model.safetensors\u0000.safetensors"})")}}, kIndex,
               "the name contains a NUL character");
    withConfig("bad name beside a single file",
               {{kIndex, indexFile(R"({"w":"../x.safetensors"})")}, {"model.safetensors", tensorFile("w")}}, kIndex,
               "the path contains \"..\"");
    withConfig(
        "missing shard",
        {{kIndex, indexFile(R"({"a":"x.safetensors","b":"y.safetensors"})")}, {"x.safetensors", tensorFile("a")}},
        "y.safetensors", "is missing: model.safetensors.index.json says that it holds \"b\"");
    withConfig("missing shards",
               {{kIndex, indexFile(R"({"a":"x.safetensors","b":"y.safetensors","c":"z.safetensors"})")},
                {"x.safetensors", tensorFile("a")}},
               "y.safetensors", "is missing (and 1 more of the index)");
    withConfig(
        "tensor absent from its file",
        {{kIndex, indexFile(R"({"a":"x.safetensors","b":"x.safetensors"})")}, {"x.safetensors", tensorFile("a")}}, "",
        "tensor \"b\" is not in x.safetensors, although model.safetensors.index.json lists it there.");
    withConfig("a folder where weights should be", {{"model.safetensors/weights", "x"}}, "model.safetensors",
               "is a directory, but a file of that name would hold weights");
    withConfig("a folder where the index should be", {{QString(kIndex) + "/x", "x"}}, kIndex, "is a directory");
    QTest::newRow("a folder where the config should be") << Files{{"config.json/x", "x"}} << "config.json"
                                                         << "is a directory, but the model's config must be a file";
    withConfig("tensor in another file",
               {{kIndex, indexFile(R"({"a":"y.safetensors","b":"x.safetensors"})")},
                {"x.safetensors", tensorFile("a")},
                {"y.safetensors", tensorFile("b")}},
               "",
               "tensor \"a\" is not in y.safetensors, although model.safetensors.index.json lists it there; it is in "
               "x.safetensors");
    withConfig(
        "duplicate across indexed files",
        {{kIndex, indexFile(R"({"a":"x.safetensors","b":"y.safetensors"})")},
         {"x.safetensors", tensorFile("a")},
         {"y.safetensors", QByteArray::fromStdString(safetensorsBytes(
                               R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],)"
                               R"("data_offsets":[1,2]}})",
                               2))}},
        "", "tensor \"a\" is in x.safetensors and in y.safetensors");
  }
  void refusesMalformedFolders() {
    QFETCH(Files, files);
    QFETCH(QString, place);
    QFETCH(QString, phrase);
    const TemporaryFolder folder;
    writeAll(folder, files);
    const auto model = openModelFolder(folder.path());
    QVERIFY(!model);
    QCOMPARE(model.error().code, ErrorCode::BadInput);
    const QString message = errorOf(model);
    const QString where = QString::fromStdString((folder.path() / place.toStdString()).string());
    QVERIFY2(message.contains(where.endsWith('/') ? where.chopped(1) : where), qPrintable(message));
    QVERIFY2(message.contains(phrase), qPrintable(message));
    QVERIFY2(message.endsWith('.') || message.endsWith("NEW_FOLDER."), qPrintable(message));
    QVERIFY2(!message.contains('\n'), qPrintable(message));
  }

  void refusesWhatIsNoFolder() {
    const TemporaryFolder folder;
    const auto text = folder.write("notes.txt", "x");
    const auto weights = folder.write("model.safetensors", oneTensor("a"));
    const auto pickle = folder.write("model.pt", "x");
    QVERIFY(errorOf(openModelFolder(folder.path() / "nowhere")).contains("nowhere does not exist. Give a folder"));
    QVERIFY(errorOf(openModelFolder(folder.path() / "nowhere/config.json")).contains("does not exist"));
    QVERIFY(errorOf(openModelFolder(text / "below")).contains("notes.txt/below"));
    QVERIFY(errorOf(openModelFolder(text)).contains("notes.txt is not a model. Open a folder with a config.json"));
    QVERIFY(errorOf(openModelFolder(weights)).contains("model.safetensors is a weights file. Open its folder"));
    QVERIFY(errorOf(openModelFolder(pickle)).contains("model.pt is not a model"));
    QVERIFY(errorOf(openModelFolder("")).contains("path of the model is empty"));
    QVERIFY(errorOf(openModelFolder(std::string(5000, 'x'))).contains("Cannot open xxx"));
  }

  void namesLoopsOfLinks() {
    for (const char* name : {"config.json", "model.safetensors"}) {
      const TemporaryFolder folder;
      folder.write("config.json", kConfig);
      fs::remove(folder.path() / name);
      fs::create_symlink(name, folder.path() / name);
      const QString message = errorOf(openModelFolder(folder.path()));
      const std::string where = (folder.path() / name).string();
      QVERIFY2(message.startsWith(QString::fromStdString(where + " is a loop of symbolic links")), qPrintable(message));
      if (name == std::string_view("config.json"))
        QVERIFY(errorOf(openModelFolder(folder.path() / name)).contains("is a loop of symbolic links"));
    }
  }

  void keepsWideIntegersInConfigs() {
    const TemporaryFolder folder;
    folder.write("config.json", R"({"model_type":"llama","model_max_length":1000000000000000019884624838656})");
    QVERIFY(openModelFolder(folder.path()));
  }

  void namesTheFolderAbsolutely() {
    const TemporaryFolder folder;
    folder.write("m/config.json", kConfig);
    const fs::path expected = folder.path() / "m";
    QCOMPARE(openModelFolder(folder.path() / "m/")->path, expected);
    QCOMPARE(openModelFolder(folder.path() / "./m/./config.json")->path, expected);
    QCOMPARE(openModelFolder(folder.path() / "m/../m")->path, fs::canonical(expected));
    const fs::path before = fs::current_path();
    fs::current_path(expected);
    const auto here = openModelFolder(".");
    const auto config = openModelFolder("config.json");
    fs::current_path(before);
    QCOMPARE(here->path, fs::canonical(expected));
    QCOMPARE(config->path, fs::canonical(expected));
  }

  void followsLinksOfAHubCache() {
    const TemporaryFolder cache;
    cache.write("models--org--tiny/blobs/aaaa", kConfig);
    cache.write("models--org--tiny/blobs/bbbb", oneTensor("w"));
    const fs::path snapshot = cache.path() / "models--org--tiny/snapshots/0123";
    fs::create_directories(snapshot);
    fs::create_symlink("../../blobs/aaaa", snapshot / "config.json");
    fs::create_symlink("../../blobs/bbbb", snapshot / "model.safetensors");
    const auto model = openModelFolder(snapshot);
    QVERIFY2(model.has_value(), qPrintable(errorOf(model)));
    QCOMPARE(model->tensors.at("w").file, std::string("model.safetensors"));
    const auto opened = openWeightFile(snapshot, "model.safetensors");
    QVERIFY2(opened.has_value(), qPrintable(errorOf(opened)));
    QVERIFY(opened->isAt(cache.path() / "models--org--tiny/blobs/bbbb"));
    QCOMPARE(opened->path(), snapshot / "model.safetensors");

    fs::create_directory_symlink(snapshot, cache.path() / "by-name");
    QVERIFY(openModelFolder(cache.path() / "by-name"));

    fs::remove(cache.path() / "models--org--tiny/blobs/bbbb");
    QVERIFY(errorOf(openModelFolder(snapshot)).contains("model.safetensors: No such file"));
    fs::remove(cache.path() / "models--org--tiny/blobs/aaaa");
    QVERIFY(
        errorOf(openModelFolder(snapshot)).contains("config.json is a link to ../../blobs/aaaa, which does not exist"));
  }

  /// Links made by the folder's owner: absolute, relative, of a folder, a chain.
  void followsLinksThatTheOwnerPlaced() {
    const TemporaryFolder folder;
    const fs::path model = folder.path() / "m";
    folder.write("m/config.json", kConfig);
    const fs::path elsewhere = folder.write("elsewhere/x.safetensors", oneTensor("w"));
    fs::create_symlink(elsewhere, folder.path() / "link");
    for (const fs::path& target : {elsewhere, fs::path("../elsewhere/x.safetensors"), folder.path() / "link"}) {
      fs::create_symlink(target, model / "model.safetensors");
      const auto opened = openModelFolder(model);
      QVERIFY2(opened && opened->tensors.contains("w"), qPrintable(errorOf(opened)));
      QVERIFY(openWeightFile(model, "model.safetensors")->isAt(elsewhere));
      fs::remove(model / "model.safetensors");
    }
    fs::create_directory_symlink("../elsewhere", model / "sub");
    folder.write(fs::path("m") / kIndex, indexOf(R"({"w":"sub/x.safetensors"})"));
    QVERIFY(openModelFolder(model)->tensors.contains("w"));
    // A name that leads out by itself is rejected, with or without a link.
    for (const char* name : {"../elsewhere/x.safetensors", "sub/../../elsewhere/x.safetensors", "../../etc/passwd"}) {
      folder.write(fs::path("m") / kIndex, indexOf(fmt::format("{{\"w\":\"{}\"}}", name)));
      QVERIFY(errorOf(openModelFolder(model)).contains("the path contains \"..\""));
      QVERIFY(errorOf(openWeightFile(model, name)).contains("the path contains \"..\""));
    }
  }

  /// In a folder where others may write, their links are not followed.
  void refusesLinksOfOthers() {
    const TemporaryFolder folder;
    folder.write("m/config.json", kConfig);
    const fs::path elsewhere = folder.write("elsewhere/x.safetensors", oneTensor("w"));
    const fs::path link = folder.path() / "m/model.safetensors";
    fs::create_symlink(elsewhere, link);
    constexpr uid_t kOther = 12345, kOwner = 12346;
    if (::lchown(link.c_str(), kOther, kOther) != 0) QSKIP("only root can give files away");
    QVERIFY(errorOf(openModelFolder(link.parent_path()))
                .contains("model.safetensors is a link that neither you nor the owner of"));
    QCOMPARE(::chown(link.parent_path().c_str(), kOwner, kOwner), 0);
    QVERIFY(!openWeightFile(link.parent_path(), "model.safetensors"));
    QCOMPARE(::lchown(link.c_str(), kOwner, kOwner), 0);
    QVERIFY(openWeightFile(link.parent_path(), "model.safetensors"));
    fs::remove(link);
    fs::create_directory_symlink("../elsewhere", folder.path() / "m/sub");
    QVERIFY(openWeightFile(folder.path() / "m", "sub/x.safetensors"));
    QCOMPARE(::lchown((folder.path() / "m/sub").c_str(), kOther, kOther), 0);
    QVERIFY(
        errorOf(openWeightFile(folder.path() / "m", "sub/x.safetensors")).contains("m/sub is a link that neither you"));
  }

  void allowsLinksInsideTheFolder() {
    const TemporaryFolder folder;
    folder.write("config.json", kConfig);
    folder.write("weights/1.safetensors", oneTensor("w"));
    fs::create_symlink("weights/1.safetensors", folder.path() / "model.safetensors");
    QVERIFY(openModelFolder(folder.path()));
  }

  void refusesSpecialFiles() {
    const TemporaryFolder folder;
    folder.write("config.json", kConfig);
    fs::create_symlink("model.safetensors", folder.path() / "model.safetensors");  // a loop
    QVERIFY(errorOf(openModelFolder(folder.path())).contains("model.safetensors"));
    fs::remove(folder.path() / "model.safetensors");
    fs::create_directory(folder.path() / "weights.safetensors");  // names another file, which is not a weight file
    QVERIFY(!openModelFolder(folder.path())->hasWeights());
  }

  void reportsAndStops() {
    std::stop_source source;
    std::vector<std::int64_t> done;
    const Progress progress(source.get_token(), [&](const ProgressUpdate& update) {
      QCOMPARE(update.total, 3);
      done.push_back(update.done);
      if (update.done == 1) source.request_stop();
    });
    const auto model = openModelFolder(fs::path(CLEAVE_TEST_DATA) / "models/llama", progress);
    QVERIFY(!model);
    QCOMPARE(model.error().code, ErrorCode::Cancelled);
    QCOMPARE(done, (std::vector<std::int64_t>{0, 1}));
  }

  void survivesDamagedFolders() {
    std::mt19937_64 random(test::seed(11));
    const TemporaryFolder folder;
    const std::string index = indexOf(R"({"a":"x.safetensors","b":"y.safetensors"})");
    const std::map<std::string, std::string> whole{{"config.json", kConfig},
                                                   {kIndex, index},
                                                   {"x.safetensors", oneTensor("a")},
                                                   {"y.safetensors", oneTensor("b")}};
    for (const auto& [name, content] : whole) folder.write(name, content);
    const std::uint64_t rounds = test::rounds(1000);
    std::uint64_t refused = 0;
    for (std::uint64_t left = rounds; left > 0; --left) {
      auto victim = std::next(whole.begin(), static_cast<long>(random() % whole.size()));
      std::string content = victim->second;
      for (unsigned flips = 1 + random() % 2; flips > 0; --flips)
        content[random() % content.size()] = static_cast<char>(random());
      if (random() % 4 == 0) content.resize(random() % content.size());
      folder.write(victim->first, content);
      const auto model = openModelFolder(folder.path());
      folder.write(victim->first, victim->second);
      if (model) continue;
      ++refused;
      QVERIFY2(model.error().code == ErrorCode::BadInput && !model.error().message.empty(), qPrintable(errorOf(model)));
    }
    QVERIFY2(rounds < 100 || (refused > 0 && refused < rounds), qPrintable(QString::number(refused)));
  }
};

QTEST_APPLESS_MAIN(ModelFolderTest)
#include "tst_model_folder.moc"
