#pragma once

namespace headlab {

inline constexpr char version[] = "0.1.0";

}  // namespace headlab
