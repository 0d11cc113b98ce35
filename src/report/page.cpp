#include "src/report/page.h"

#include "src/report/html.h"
#include "src/report/page/assets.h"

namespace headlab {

std::string page(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         html::escape(title) + "</title>\n<style>" + page_style() + "</style>\n</head>\n<body>\n" + body +
         (body.find("class=\"plot\"") == std::string::npos ? std::string()
                                                           : "<script>" + std::string(d3_script()) + "</script>\n") +
         "<script>" + page_script() + "</script>\n</body>\n</html>\n";
}

std::string page_of_parts(const std::string& name, const std::string& question, const std::string& head,
                          const std::vector<PagePart>& parts) {
  std::string body, links;
  for (const auto& part : parts) {
    auto section = html::section(part.id, part.title, part.content);
    if (section.empty()) continue;
    body += section;
    links += "<a href=\"#" + part.id + "\">" + html::escape(part.title) + "</a> ";
  }
  auto title = name.empty() || question.empty() ? name + question : name + ": " + question;
  return page(title.empty() ? "headlab report" : title,
              head + (links.empty() ? "" : "<nav aria-label=\"Parts of the page\">" + links + "</nav>\n") + "<main>\n" +
                  body + "</main>\n");
}

}  // namespace headlab
