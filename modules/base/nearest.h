#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headlab {

/// The one of `names` that a person who typed `name` most likely meant, by edit distance (insertions, deletions,
/// replacements, swaps of neighbours; upper and lower case alike), or else by a common beginning of three letters or
/// more ("warmup": "warmup_steps"). Empty where none is near: at most about one edit in three letters. The first of
/// equals.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);

/// The `count` names nearest to `name`, the nearest first, however far.
std::vector<std::string> nearest_names(const std::string& name, std::vector<std::string> names, std::size_t count);

/// `; did you mean "heads"?`, or empty where no name is near.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names);

/// `unknown position "ropee"; did you mean "rope"? (exists: none, rope)`
std::string unknown_name(const std::string& kind, const std::string& name, const std::vector<std::string>& names);

/// "a, b, c"; an empty list gives "none". Names are shown as by in_quotes, without the marks; after 100 "and 7 more".
std::string listed(const std::vector<std::string>& names);

/// Text in quotation marks for a message: control characters escaped, and cut after 60 characters with "...".
std::string in_quotes(const std::string& text);

}  // namespace headlab
