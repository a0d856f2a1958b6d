#include "cli/bisecting.h"

#include "base/output_file.h"
#include "cli/console.h"

#include <optional>

namespace cleave::cli {

Result<int> runBisection(const pipeline::BisectRequest& request, const std::string& json, const Progress& progress) {
  // Before the ranks run: a report that cannot be written is known at once.
  std::optional<OutputFile> file;
  if (!json.empty() && json != "-") {
    CLEAVE_TRY(file, OutputFile::open(json, progress.stopToken()));
  }
  CLEAVE_TRY(const pipeline::Bisection found, pipeline::bisect(request, progress));
  endProgress();
  const std::string report = toJson(found, *request.plan) + "\n";
  if (file) {
    CLEAVE_TRY_VOID(file->write(report));
    CLEAVE_TRY_VOID(file->finish());
  }
  CLEAVE_TRY_VOID(writeOutput("-", json == "-" ? report : bisectionText(found, *request.plan)));
  return found.first ? exitCode(ErrorCode::Negative) : 0;
}

}  // namespace cleave::cli
