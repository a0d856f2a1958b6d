// Safetensors headers: the tensors of an accepted file tile the data exactly.
#include <algorithm>

#include "formats/safetensors.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cleave;
using namespace cleave::formats;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  const auto header = parseSafetensorsHeader(content, "input");
  wasAccepted = header.has_value();
  if (!header) {
    CLEAVE_CHECK(header.error().code == ErrorCode::BadInput);
    return 0;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const auto& [name, entry] : header->tensors) {
    CLEAVE_CHECK(entry.bytes == graph::sizeInBytes(entry.type));
    ranges.emplace_back(entry.offset, entry.offset + entry.bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const bool isLast = i + 1 == ranges.size();
    CLEAVE_CHECK(ranges[i].second == (isLast ? std::ssize(content) : ranges[i + 1].first));
  }
  return 0;
}
