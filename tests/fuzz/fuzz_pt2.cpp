// An exported program. Bytes that begin with "PK" are used as an archive. Other bytes are three texts with NUL bytes
// between them (the program, the weights' config, the constants' config), which are put into a valid archive, so that
// mutations reach the JSON. Reading always returns. An accepted program's calls read only defined values, and its
// weights are inside the file.
#include <string>

#include "formats/exported_sizes.h"
#include "formats/exported_weights.h"
#include "formats/open_exported.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/exported_archive.h"

using namespace cleave;
using namespace cleave::formats;

namespace {

std::string archiveOf(std::string_view rest) {
  const auto part = [&] {
    const std::string_view first = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), first.size() + 1));
    return std::string(first);
  };
  test::ZipBuilder zip;
  zip.add("net/models/model.json", part());
  zip.add("net/data/weights/model_weights_config.json", part());
  zip.add("net/data/constants/model_constants_config.json", part());
  for (int i = 0; i < 4; ++i) zip.add("net/data/weights/weight_" + std::to_string(i), std::string(64, 'w'));
  zip.add("net/data/constants/tensor_0", std::string(16, 'c'));
  return zip.bytes();
}

void checkReferences(const ExportedProgram& program) {
  const auto isThere = [&](ExportedId id) { CLEAVE_CHECK(!id.isValid() || id.index() < program.values.size()); };
  for (const ExportedNode& node : program.nodes) {
    CLEAVE_CHECK(node.module < program.modules.size() && !program.modules[node.module].empty());
    CLEAVE_CHECK(!node.source || *node.source < program.sources.size());
    for (const auto& [name, argument] : node.arguments) {
      if (const auto* id = std::get_if<ExportedId>(&argument)) isThere(*id);
      if (const auto* ids = std::get_if<std::vector<ExportedId>>(&argument))
        for (const ExportedId id : *ids) isThere(id);
    }
  }
  for (const ExportedInput& input : program.inputs) CLEAVE_CHECK(input.value.index() < program.values.size());
  for (const ExportedId output : program.outputs) CLEAVE_CHECK(output.index() < program.values.size());
}

void readWeights(const ExportedProgram& program, std::int64_t fileBytes) {
  for (const auto& [name, tensor] : program.tensors) {
    CLEAVE_CHECK(tensor.offset >= 0 && tensor.offset <= fileBytes);
    if (tensor.bytes > 4096) continue;  // a view may repeat elements of its storage
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
    CLEAVE_CHECK(readElements(*program.archive, tensor, storageOrder(tensor), 0, bytes).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.starts_with("PK")) bytes = archiveOf(bytes);
  const auto fileBytes = static_cast<std::int64_t>(bytes.size());
  auto archive = ZipArchive::inMemory(std::move(bytes), "x.pt2");
  if (!archive) {
    wasAccepted = false;
    CLEAVE_CHECK(!archive.error().message.empty() && archive.error().code == ErrorCode::BadInput);
    return 0;
  }
  for (const ZipEntry& entry : archive->entries())
    CLEAVE_CHECK(entry.offset >= 0 && entry.bytes >= 0 && entry.offset + entry.bytes <= fileBytes);
  const auto program = readExportedProgram(std::make_shared<const ZipArchive>(*std::move(archive)));
  wasAccepted = program.has_value();
  if (!program) {
    CLEAVE_CHECK(!program.error().message.empty() && program.error().code == ErrorCode::BadInput);
    return 0;
  }
  checkReferences(*program);
  readWeights(*program, fileBytes);
  const auto sizes = bindSymbols(*program, {});
  if (sizes) batchAndSequenceOf(*program, *sizes);
  return 0;
}
