#include "views/base/save_file.h"

#include "base/output_file.h"
#include "views/base/text.h"

namespace cleave::views {

Result<void> checkIsFile(const QString& file) {
  std::error_code ignored;
  const fs::file_type type = fs::status(toStd(file), ignored).type();
  if (type == fs::file_type::regular || type == fs::file_type::not_found || type == fs::file_type::none) return {};
  if (type == fs::file_type::directory) return fail(ErrorCode::BadUsage, "{} is a folder.", toStd(file));
  return fail(ErrorCode::BadUsage, "{} is not a regular file. Choose a file, or use cleave-cli for pipes and devices.",
              toStd(file));
}

Result<void> saveFile(const QString& file, const QByteArray& content, const Progress& progress) {
  CLEAVE_TRY_VOID(checkIsFile(file));
  return writeFile(toStd(file), {content.constData(), static_cast<std::size_t>(content.size())}, progress.stopToken());
}

}  // namespace cleave::views
