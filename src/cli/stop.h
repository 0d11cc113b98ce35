#pragma once

#include <atomic>

namespace headlab {

/// From now on Ctrl-C and SIGTERM ask for a stop: the flag is set, whoever works looks at it, saves and leaves. The
/// second time the program ends at once.
const std::atomic<bool>& stop_on_signals();

}  // namespace headlab
