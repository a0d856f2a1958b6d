#pragma once
#include "formats/exported_program.h"

namespace cleave::formats {

Result<ExportedProgram> openExportedProgram(const fs::path& path, const Progress& progress = {});
/// The same for an archive in memory, for tests and fuzzers.
Result<ExportedProgram> readExportedProgram(const std::shared_ptr<const ZipArchive>& archive,
                                            const Progress& progress = {});

}  // namespace cleave::formats
