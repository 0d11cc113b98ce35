#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace headlab {

/// JSON that the program wrote and may find damaged: never a crash, whatever the bytes. Needs no LibTorch.

/// The deepest nesting that is read; what the program writes stays far below.
constexpr int deepest_json = 100;

/// Throws FileError: "<where>: not JSON (parse error at line 1, column 9: ...)". Of repeated keys the last one counts.
nlohmann::json parse_json(const std::string& bytes, const std::string& where);
nlohmann::ordered_json parse_ordered_json(const std::string& bytes, const std::string& where);

/// The JSON object in a file. Throws FileError, also for another kind of value.
nlohmann::json read_json_file(const std::filesystem::path& path);
nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& path);

/// `value` on one line, cut where it is long, for messages.
std::string shown(const nlohmann::json& value);

/// What an exception of nlohmann::json says, without its number: one short line of ASCII.
std::string said_by(const nlohmann::json::exception& error);

}  // namespace headlab
