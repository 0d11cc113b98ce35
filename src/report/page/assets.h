#pragma once

namespace headlab {

/// What stands in each page beside its content: src/report/page/page.css and page.js, and D3 (d3js.org), which draws.
/// They are compiled into the program (cmake/Assets.cmake), so that a page needs nothing else.
const char* page_style();
const char* page_script();
const char* d3_script();

}  // namespace headlab
