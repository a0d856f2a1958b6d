#pragma once
/// Writing what the user named, without harm to what lies there. Functions are safe to call from any thread; an object
/// is used by one thread at a time.
#include "base/files.h"

#include <stop_token>

namespace cleave {

/// An output that the user named, while it is written. What lies there decides how; nothing is replaced by another kind
/// of thing, and links, modes and owners stay:
///
/// | the path leads to            | the bytes go                                                                      |
/// |------------------------------|-----------------------------------------------------------------------------------|
/// | nothing, or a regular file   | to a temporary file beside it, which takes its name in `finish`: all or nothing |
/// | a device, a pipe, a terminal | straight through                                                                  |
/// | our own stdout or stderr     | through that descriptor, after what was printed before                            |
/// | a file that has other hard links, or whose owner or folder we cannot write for | into it                         |
///
/// A link is followed: what it leads to is written, also when that is yet to be made. Environment for every failure.
/// Opening and writing wait as long as a pipe has no reader, or a full one; `stop` ends that with Cancelled.
///
/// The temporary file is ".cleave-PID-N.part". Its maker holds a lock on it (flock: the kernel drops it with the
/// process), so that one which a killed process left behind is known: the next output in that folder removes it.
///
///     CLEAVE_TRY(OutputFile out, OutputFile::open(path, progress.stopToken()));
///     CLEAVE_TRY_VOID(out.write(header));
///     CLEAVE_TRY_VOID(out.finish());
class OutputFile {
 public:
  static Result<OutputFile> open(const fs::path& file, std::stop_token stop = {});
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  /// Not finished: the temporary file is gone and the old one as it was.
  ~OutputFile();

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  Result<void> finish();

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state);
  std::unique_ptr<State> m_state;
};

/// The whole content through an OutputFile.
Result<void> writeFile(const fs::path& file, std::string_view content, std::stop_token stop = {});

/// To a descriptor that is open already and others may share (stdout). Waits as OutputFile does; a broken pipe is a
/// signal, or an error where that is ignored.
Result<void> writeTo(int descriptor, std::string_view name, std::string_view content, const std::stop_token& stop = {});

/// Removes the temporary files of all outputs that this process has not finished: before it ends without unwinding.
void removeUnfinishedOutputs();

/// Writes all of an open file.
Result<void> copyInto(OutputFile& out, const RandomAccessFile& from);

}  // namespace cleave
