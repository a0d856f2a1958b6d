#pragma once
/// `cleave-cli` as a function, for its `main` and for tests, which call it in a process of their own.
namespace cleave::cli {

/// Reads the arguments, runs the command that they name, and answers the exit code. Once in a process.
int runProgram(int argc, char** argv);

}  // namespace cleave::cli
