#include "src/cli/program.h"

int main(int argc, char** argv) { return headlab::program(argc, argv); }
