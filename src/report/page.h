#pragma once

#include <string>

namespace headlab {

/// The whole HTML document around `body`: style and script are in it, and its policy forbids every request, so that it
/// opens offline and what a sample text holds can do nothing. `title` is text, `body` HTML.
std::string page(const std::string& title, const std::string& body);

}  // namespace headlab
