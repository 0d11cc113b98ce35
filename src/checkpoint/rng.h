#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headlab {

/// Base64 (RFC 4648, with padding). decode throws FileError for anything else.
std::string base64_encode(std::string_view bytes);
std::string base64_decode(std::string_view text);

/// The states of LibTorch's default generators: {"cpu": base64} and, where there are CUDA devices, {"cuda": [base64 of
/// each device]}. A run whose states are saved and restored with its parameters draws the same numbers (dropout) as one
/// that was never interrupted. Each generator is locked meanwhile.
nlohmann::json rng_states();

/// Restores what rng_states gave. CUDA states are ignored for devices that are not there: the bits of another kind of
/// device differ anyway. Throws FileError for what is not such a state.
void set_rng_states(const nlohmann::json& states);

}  // namespace headlab
