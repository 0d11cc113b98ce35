#pragma once

#include <string>
#include <vector>

namespace headlab {

/// A part of a page: its anchor, its title and what stands in it, HTML; empty: it is left out.
struct PagePart {
  std::string id, title, content;
};

/// The document of something with a name and a question (text, each may be empty): `head`, links to the parts, and the
/// parts.
std::string page_of_parts(const std::string& name, const std::string& question, const std::string& head,
                          const std::vector<PagePart>& parts);

/// The whole HTML document around `body`: style and script are in it, and its policy forbids every request, so that it
/// opens offline and what a sample text holds can do nothing. `title` is text, `body` HTML.
std::string page(const std::string& title, const std::string& body);

}  // namespace headlab
