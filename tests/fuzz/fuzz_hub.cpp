// Names of models and addresses from users and servers: an accepted one leads only to its own target.
#include "hub/address.h"
#include "hub/cache.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cleave;
using namespace cleave::hub;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  wasAccepted = false;
  if (const auto id = HubId::parse(text)) {
    wasAccepted = true;
    CLEAVE_CHECK(isSafeName(id->folderName()) || id->repo.size() > 90);
    CLEAVE_CHECK(fs::path("refs/" + id->revision).lexically_normal().string().starts_with("refs/"));
    const auto again = HubId::parse(id->text());
    CLEAVE_CHECK(again && *again == *id);
  }
  const std::string base = "https://huggingface.co/a/b/resolve/main/config.json";
  if (const auto address = addressFrom(base, text)) {
    wasAccepted = wasAccepted || text.starts_with("https://");
    const auto origin = originOf(*address);
    CLEAVE_CHECK(origin && (origin->scheme == "http" || origin->scheme == "https"));
    // Parsing the normalised address gives the same address, so its spelling cannot change the target.
    const auto again = addressFrom(base, *address);
    CLEAVE_CHECK(again && *again == *address);
  }
  if (text.find('\0') == std::string::npos) {
    if (const auto snapshot = snapshotOf(text)) {
      wasAccepted = true;
      CLEAVE_CHECK(isSafeName(snapshot->id.revision));
    }
  }
  return 0;
}
