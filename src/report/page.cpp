#include "src/report/page.h"

#include "src/report/html.h"

namespace headlab {
namespace {

constexpr const char* style = R"css(
:root {
  color-scheme: light dark;
  --ground: #fff; --panel: #f6f7f9; --text: #1b1f24; --soft: #59636e; --rule: #d5d9df; --link: #0b57a4;
  --good: #0b57a4; --bad: #a33f00; --mark: #fff3bf;
  --c0: #0b6cb8; --c1: #c25400; --c2: #00795c; --c3: #8a4391; --c4: #7d6400; --c5: #b0174f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --panel: #1d2127; --text: #e4e8ed; --soft: #9aa5b1; --rule: #363d46; --link: #7cb8f2;
    --good: #7cb8f2; --bad: #ffa061; --mark: #4a4212;
    --c0: #62aeee; --c1: #ff9a4d; --c2: #3fc9a0; --c3: #d59bdb; --c4: #d9bf45; --c5: #ff86ab;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body {
  margin: 0 auto; max-width: 74rem; padding: 1.5rem clamp(0.8rem, 3vw, 2rem) 4rem;
  background: var(--ground); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
h1 { font-size: clamp(1.35rem, 1rem + 1.8vw, 2rem); line-height: 1.25; margin: 0.2rem 0 0.8rem; text-wrap: balance; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 0.7rem; padding-bottom: 0.25rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.5rem 0 0.5rem; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
p, figure { margin: 0.5rem 0; }
code, pre { font: 0.85rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; padding: 0.7rem 0.9rem;
      overflow-x: auto; margin: 0.5rem 0; }
.soft, .scale, .run { color: var(--soft); font-size: 0.9rem; overflow-wrap: anywhere; }
.run { margin: 0; }
nav { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; margin: 1.4rem 0 0; font-size: 0.92rem; }

.verdicts { list-style: none; padding: 0; margin: 0.8rem 0; display: grid; gap: 0.5rem; }
.verdicts li { display: grid; grid-template-columns: minmax(12.4rem, auto) 1fr auto; gap: 0.1rem 1rem;
               align-items: baseline; background: var(--panel); border-left: 4px solid var(--good);
               border-radius: 4px; padding: 0.6rem 0.9rem; }
.verdicts li.fails { border-left-color: var(--bad); }
.verdicts b { color: var(--good); white-space: nowrap; }
.verdicts .fails b { color: var(--bad); }
.verdicts li.open { border-left: 4px dashed var(--soft); }
.verdicts .open b { color: var(--soft); }
.evidence { grid-column: 2; display: flex; flex-wrap: wrap; align-items: center; gap: 0.1rem 0.9rem; color: var(--soft);
            font-size: 0.9rem; }
.interval { width: 200px; height: 26px; flex: none; }
.interval .side { fill: var(--good); opacity: 0.14; }
.interval .bound { stroke: var(--text); stroke-width: 1.2; stroke-dasharray: 3 2; }
.interval .reach { stroke: var(--text); stroke-width: 1.6; fill: none; }
.interval .seed { fill: var(--soft); opacity: 0.75; }
.interval .mean { fill: var(--text); }
.verdicts code { grid-column: 2; color: var(--soft); overflow-wrap: anywhere; }
.verdicts .numbers { grid-column: 3; grid-row: 1 / span 3; align-self: center; font-size: 1.15rem; white-space: nowrap;
                     font-variant-numeric: tabular-nums; }

.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: 0.92rem; }
caption { text-align: left; color: var(--soft); font-size: 0.9rem; padding: 0.2rem 0 0.35rem; }
th, td { padding: 0.3rem 0.8rem 0.3rem 0; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--rule); }
th + th, td, th + td { padding-left: 0.4rem; }
thead th { font-weight: 600; color: var(--soft); white-space: nowrap; }
tbody th { font-weight: 500; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.range { color: var(--soft); font-size: 0.85em; white-space: nowrap; }
tr:target { background: var(--mark); }
.sortable button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
.sortable button::after { content: " \2195"; opacity: 0.55; }
.sortable [aria-sort="ascending"] button::after { content: " \2191"; opacity: 1; }
.sortable [aria-sort="descending"] button::after { content: " \2193"; opacity: 1; }
.tall .scroll { max-height: 32rem; overflow: auto; border: 1px solid var(--rule); border-radius: 6px;
  padding: 0 0.8rem; }
.tall td { white-space: nowrap; }
.tall thead th { position: sticky; top: 0; background: var(--ground); }

.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 0.8rem; }
.chart { background: var(--panel); border-radius: 6px; padding: 0.7rem 0.8rem 0.4rem; min-width: 0; max-width: 32rem; }
.chart svg { width: 100%; height: auto; display: block; overflow: visible; }
.chart svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
figcaption { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline; font-size: 0.92rem;
  margin-bottom: 0.3rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0 0.9rem; color: var(--soft); }
.legend span { display: inline-flex; align-items: center; gap: 0.4em; }
.legend i.area { display: inline-block; width: 1.6em; height: 0.8em; background: currentColor; opacity: 0.28; }
.chart svg.key { width: 2.6em; height: 0.72em; flex: none; }
.note { color: var(--soft); font-size: 0.82rem; margin: 0.15rem 0 0.3rem; }
.axes path { stroke: var(--rule); fill: none; }
.line { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; }
.line.dashed { stroke-dasharray: 6 4; }
.line.dotted { stroke-dasharray: 1.8 3; }
.line.dashdot { stroke-dasharray: 8 3 1.8 3; }
.line.long { stroke-dasharray: 13 4; }
.line.faint { stroke-width: 1; opacity: 0.5; }
.band { fill: currentColor; fill-opacity: 0.12; stroke: currentColor; stroke-opacity: 0.3; stroke-width: 0.6; }
.band.c6 { stroke-dasharray: 2 3; stroke-opacity: 0.7; }
.points circle { fill: currentColor; opacity: 0; }
.points circle:hover { opacity: 0.5; }
.marks path, .key .mark { fill: currentColor; stroke: none; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--soft); }

.maps { display: flex; flex-wrap: wrap; gap: 0.8rem 0.9rem; }
.map { font-size: 0.76rem; font-variant-numeric: tabular-nums; border-collapse: separate; border-spacing: 2px; }
.map th, .map td { border: 0; padding: 0; text-align: center; vertical-align: middle; }
.map thead th { font-weight: 400; }
.map small { font-size: 0.92em; white-space: nowrap; padding-right: 0.2rem; }
.map tbody th { font-weight: 400; color: var(--soft); text-align: right; padding-right: 0.5rem; }
.map td { min-width: 2.3rem; height: 1.8rem; border-radius: 3px; position: relative; }
.map td a { display: grid; place-items: center; height: 100%; padding: 0 0.15rem; color: inherit;
  text-decoration: none; }
.map td a:hover { outline: 2px solid var(--link); border-radius: 3px; }
.map .gone, .map .none { color: var(--soft); box-shadow: inset 0 0 0 1px var(--rule); }
.map .kept { background: var(--c0); color: var(--ground); }
.map .out::after { content: ""; position: absolute; inset: 0; pointer-events: none; border-radius: 3px;
  background: linear-gradient(to top right, transparent calc(50% - 0.9px), currentColor calc(50% - 0.9px),
              currentColor calc(50% + 0.9px), transparent calc(50% + 0.9px)); opacity: 0.6; }
.ramp { display: inline-flex; vertical-align: middle; margin: 0 0.2rem; }
.ramp i { width: 1rem; height: 0.8rem; }

.samples { display: grid; gap: 0.7rem; }
.sample { margin: 0; background: var(--panel); border-radius: 6px; padding: 0.6rem 0.9rem; display: grid;
          grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; }
.sample dt { color: var(--soft); font-size: 0.9rem; }
.sample dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
.sample .same { font-size: 0.8rem; color: var(--soft); white-space: nowrap; }
summary { cursor: pointer; padding: 0.2rem 0; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1.2rem; margin: 0.5rem 0; }
dl.facts dt { color: var(--soft); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }

@media (max-width: 40rem) {
  .verdicts li { grid-template-columns: 1fr; }
  .verdicts code, .verdicts .numbers, .evidence { grid-column: 1; grid-row: auto; align-self: auto; }
  .sample, dl.facts { grid-template-columns: 1fr; }
  .sample dd, dl.facts dd { margin-bottom: 0.35rem; }
  .map td { min-width: 2.2rem; }
  .map { font-size: 0.74rem; }
}
@media print {
  :root { --ground: #fff; --panel: #fff; --text: #000; --soft: #444; --rule: #bbb; --link: #000; --good: #0b57a4;
          --bad: #a33f00; --c0: #0b6cb8; --c1: #c25400; --c2: #00795c; --c3: #8a4391; --c4: #7d6400; --c5: #b0174f;
          color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .map td, .ramp i, .verdicts li, .legend i, .map .kept { print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
  figure, .sample, .verdicts li, .maps > div, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .tall .scroll { max-height: none; border: 0; padding: 0; }
  .scroll { overflow: visible; }
  pre { white-space: pre-wrap; }
}
)css";

constexpr const char* script = R"js(
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => row.cells[column].dataset.key ?? row.cells[column].textContent;
    const empty = text => text === "" || text === "nan";
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const x = key(a), y = key(b);
      if (empty(x) || empty(y)) return empty(x) - empty(y);
      const order = isNaN(x) || isNaN(y) ? x.localeCompare(y, undefined, {numeric: true}) : x - y;
      return down ? -order : order;
    });
    body.append(...rows);
  }));
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => part.open = true));
)js";

}  // namespace

std::string page(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         html::escape(title) + "</title>\n<style>" + style + "</style>\n</head>\n<body>\n" + body + "<script>" +
         script + "</script>\n</body>\n</html>\n";
}

std::string page_of_parts(const std::string& name, const std::string& question, const std::string& head, const std::vector<PagePart>& parts) {
  std::string body, links;
  for (const auto& part : parts) {
    auto section = html::section(part.id, part.title, part.content);
    if (section.empty()) continue;
    body += section;
    links += "<a href=\"#" + part.id + "\">" + html::escape(part.title) + "</a> ";
  }
  auto title = name.empty() || question.empty() ? name + question : name + ": " + question;
  return page(title.empty() ? "headlab report" : title,
              head + (links.empty() ? "" : "<nav aria-label=\"Parts of the page\">" + links + "</nav>\n") + "<main>\n" + body + "</main>\n");
}

}  // namespace headlab
