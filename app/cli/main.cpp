// cleave-cli: plans, runs, exports and inspects tensor-parallel splits of Transformer models.
#include "cli/program.h"

int main(int argc, char** argv) { return cleave::cli::runProgram(argc, argv); }
