#pragma once

namespace headlab {

/// The program. Exit codes: 0 done, 1 failed, 2 bad usage or bad spec, 3 an expectation did not hold.
int program(int argc, char** argv);

}  // namespace headlab
