#include "src/text/one_process.h"

// The name as both libraries know it; SentencePiece constructs its object here before main.
alignas(64) char FLAGS_minloglevel[64];

namespace headlab {

void share_flags() {
  static char* volatile keeps_the_linker_from_dropping_it = FLAGS_minloglevel;
  (void)keeps_the_linker_from_dropping_it;
}

}  // namespace headlab
