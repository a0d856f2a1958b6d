/// In place of download_command.cpp where libcurl may be missing: the command does not exist.
#include "cli/commands.h"

namespace cleave::cli {

void addDownloadCommand(CLI::App&, Chosen&) {}

}  // namespace cleave::cli
