#pragma once
/// Writes files that the user named, without damage to existing files. Functions are safe to call from any thread; one
/// thread at a time uses an object.
#include "base/files.h"

#include <stop_token>

namespace cleave {

/// An output file while it is written. The method depends on what is at the path. The kind of file, links, modes and
/// owners stay:
///
/// | the path leads to            | the bytes go                                                                      |
/// |------------------------------|-----------------------------------------------------------------------------------|
/// | nothing, or a regular file   | to a temporary file beside it, renamed in `finish`: all or nothing |
/// | a device, a pipe, a terminal | directly to it                                                                  |
/// | our own stdout or stderr     | through that descriptor, after earlier output                            |
/// | a file with other hard links, or whose owner or folder we cannot write | into the file itself |
///
/// A link is followed: its target is written, or created if it does not exist. Every failure is Environment. Opening
/// and writing block while a pipe has no reader or is full; `stop` ends that with Cancelled.
///
/// The temporary file is ".cleave-PID-N.part". Its process holds a lock on it (flock: the kernel releases it with the
/// process). The next output in that folder removes files of killed processes, which hold no lock.
///
///     CLEAVE_TRY(OutputFile out, OutputFile::open(path, progress.stopToken()));
///     CLEAVE_TRY_VOID(out.write(header));
///     CLEAVE_TRY_VOID(out.finish());
class OutputFile {
 public:
  static Result<OutputFile> open(const fs::path& file, std::stop_token stop = {});
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  /// If not finished, it removes the temporary file and leaves the old file unchanged.
  ~OutputFile();

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  Result<void> finish();

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state);
  std::unique_ptr<State> m_state;
};

/// Writes the whole content through an OutputFile.
Result<void> writeFile(const fs::path& file, std::string_view content, std::stop_token stop = {});

/// Writes to an open descriptor that others may share (stdout). Blocks as OutputFile does. A broken pipe raises a
/// signal, or is an error if the signal is ignored.
Result<void> writeTo(int descriptor, std::string_view name, std::string_view content, const std::stop_token& stop = {});

/// Removes the temporary files of all unfinished outputs of this process: for an exit without unwinding.
void removeUnfinishedOutputs();

/// Writes all bytes to an open file.
Result<void> copyInto(OutputFile& out, const RandomAccessFile& from);

}  // namespace cleave
