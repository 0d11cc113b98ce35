"use strict";
// What a report page does beside being read: sorting and filtering tables, drawing charts with D3, and the panel of a head.

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
const figures = value => Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(2) : String(+value.toPrecision(4));

// Tables ---------------------------------------------------------------------------------------------------------------

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

for (const frame of document.querySelectorAll(".tall")) {
  const table = frame.querySelector("table");
  if (!table || table.tBodies[0].rows.length < 8) continue;
  const input = make("input", {type: "search", placeholder: "dec.cross, removed", "aria-label": "Show rows that hold these words"});
  const count = make("span", {class: "soft", role: "status"});
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = words.length ? " " + shown + " of " + table.tBodies[0].rows.length : "";
  });
  frame.before(make("p", {class: "filter"}, make("label", {}, "Filter ", input), count));
}

// Charts ---------------------------------------------------------------------------------------------------------------

const happened = event => event && event.type ? event : d3.event;  // D3 5 has it as a global, later ones hand it over
const leastIndex = (list, of) => list.reduce((best, one, i) => best < 0 || of(one) < of(list[best]) ? i : best, -1);

// Lines differ by dashes and by the shape of their marks, not by colour alone.
const dashes = ["", "dashed", "dotted", "dashdot", "long"];
const turned = {draw: (context, size) => {
  const side = -Math.sqrt(size / (Math.sqrt(3) * 3));
  context.moveTo(0, -side * 2);
  context.lineTo(-Math.sqrt(3) * side, side);
  context.lineTo(Math.sqrt(3) * side, side);
  context.closePath();
}};

function drawChart(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const plot = figure.querySelector(".plot"), caption = figure.querySelector("figcaption");
  const width = 380, height = data.height, left = 52, right = 12, top = 10, bottom = 42;
  const symbols = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, turned, d3.symbolCross, d3.symbolCircle];
  const mark = colour => d3.symbol().type(symbols[colour]).size(colour === 6 ? 14 : 32)();
  const style = line => `c${line.colour} ${dashes[line.pattern]}${line.faint ? " faint" : ""}`;
  const off = new Set();
  let logarithmic = false, range = null;

  const svg = d3.select(plot).append("svg").attr("viewBox", [0, 0, width, height]).attr("role", "img").attr("aria-label", data.summary);
  const tip = make("div", {class: "tip", role: "status"});
  plot.append(tip);

  const named = data.lines.filter(line => !line.faint);
  const tools = make("span", {class: "tools"});
  if (named.length > 1 || data.bands.some(band => band.name)) {
    const legend = make("span", {class: "legend"});
    for (const line of named) {
      const button = make("button", {type: "button", "aria-pressed": "true"});
      const key = d3.select(button).append("svg").attr("class", "key").attr("viewBox", "0 0 36 10").attr("aria-hidden", "true");
      key.append("path").attr("class", "line " + style(line)).attr("d", "M1,5H35");
      if (line.marks) key.append("path").attr("class", "mark " + style(line)).attr("transform", "translate(18,5)").attr("d", mark(line.colour));
      button.append(line.name);
      button.addEventListener("click", () => {
        if (!off.delete(line.name)) off.add(line.name);
        button.setAttribute("aria-pressed", !off.has(line.name));
        draw();
      });
      legend.append(button, " ");
    }
    for (const band of data.bands.filter(band => band.name)) legend.append(make("span", {}, make("i", {class: "area c" + band.colour}), band.name), " ");
    caption.append(legend);
  }
  const values = data.lines.flatMap(line => line.points.map(point => point[1])).filter(value => value !== null);
  if (d3.min(values) > 0 && d3.max(values) / d3.min(values) > 20) {
    const button = make("button", {type: "button", "aria-pressed": "false"}, "log scale");
    button.addEventListener("click", () => {
      logarithmic = !logarithmic;
      button.setAttribute("aria-pressed", logarithmic);
      draw();
    });
    tools.append(button);
  }
  const whole = make("button", {type: "button", hidden: ""}, "whole range");
  whole.addEventListener("click", () => { range = null; draw(); });
  tools.append(whole);
  caption.append(tools);

  let x, xs = [], at = -1, shown = [];
  function point(index) {
    at = Math.max(0, Math.min(xs.length - 1, index));
    if (xs.length === 0) return;
    const rows = shown.filter(line => !line.faint).flatMap(line => {
      const found = line.points.find(point => point[0] === xs[at]);
      return found && found[1] !== null ? [make("span", {}, line.name, make("b", {}, figures(found[1])))] : [];
    });
    tip.replaceChildren(make("span", {class: "soft"}, data.x + " " + figures(xs[at])), ...rows);
    const share = x(xs[at]) / width;
    tip.style.top = "0.4rem";
    tip.style.left = share < 0.55 ? `calc(${100 * share}% + 0.6rem)` : "";
    tip.style.right = share < 0.55 ? "" : `calc(${100 * (1 - share)}% + 0.6rem)`;
    svg.select(".cursor").attr("d", `M${x(xs[at])},${top}V${height - bottom}`);
  }
  function leave() {
    tip.replaceChildren();
    svg.select(".cursor").attr("d", null);
  }

  function draw() {
    leave();
    whole.hidden = !range;
    const inside = value => !range || (value >= range[0] && value <= range[1]);
    shown = data.lines.filter(line => !off.has(line.name));
    if (shown.length === 0) shown = data.lines;
    const bands = data.bands.filter(band => !off.has(band.of));
    const points = shown.flatMap(line => line.points).filter(point => point[1] !== null && inside(point[0]));
    const reach = bands.flatMap(band => band.ranges).filter(one => inside(one[0])).flatMap(one => [one[1], one[2]]);
    const extent = range ?? d3.extent([...data.lines.flatMap(line => line.points.map(point => point[0])), ...data.bands.flatMap(band => band.ranges.map(one => one[0]))]);
    x = d3.scaleLinear().domain(extent[0] === extent[1] ? [extent[0] - 1, extent[1] + 1] : extent).range([left, width - right]);
    const ys = d3.extent([...points.map(point => point[1]), ...reach].filter(value => !logarithmic || value > 0));
    if (ys[0] === ys[1]) ys[0] -= Math.abs(ys[0]) * 0.1 || 1, ys[1] += Math.abs(ys[1]) * 0.1 || 1;
    const y = (logarithmic ? d3.scaleLog() : d3.scaleLinear()).domain(ys).range([height - bottom, top]).nice(5);
    xs = [...new Set(shown.filter(line => !line.faint).flatMap(line => line.points.map(point => point[0])).filter(inside))].sort((a, b) => a - b);

    svg.selectAll("*").remove();
    const grid = svg.append("g").attr("class", "axes");
    grid.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5, logarithmic ? ".2~g" : undefined).tickSize(-(width - left - right)).tickPadding(7));
    grid.append("g").attr("transform", `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(5).tickSize(5));
    grid.append("text").attr("x", (left + width - right) / 2).attr("y", height - 8).attr("text-anchor", "middle").text(data.x);
    const clip = svg.append("g");
    clip.append("path").attr("class", "cursor");
    for (const band of bands) {
      const of = band.ranges.filter(one => inside(one[0]) && (!logarithmic || one[1] > 0));
      if (of.length === 1) clip.append("path").attr("class", "line c" + band.colour).attr("d", `M${x(of[0][0])},${y(of[0][1])}V${y(of[0][2])}`);
      else clip.append("path").attr("class", "band c" + band.colour).attr("d", d3.area().x(one => x(one[0])).y0(one => y(one[1])).y1(one => y(one[2]))(of));
    }
    const there = point => point[1] !== null && inside(point[0]) && (!logarithmic || point[1] > 0);
    for (const line of shown) {
      clip.append("path").attr("class", "line " + style(line)).attr("d", d3.line().defined(there).x(point => x(point[0])).y(point => y(point[1]))(line.points));
      if (!line.marks) continue;
      for (const point of line.points.filter(there))
        clip.append("path").attr("class", "mark " + style(line)).attr("transform", `translate(${x(point[0])},${y(point[1])})`).attr("d", mark(line.colour));
    }
    const brush = d3.brushX().extent([[left, top], [width - right, height - bottom]]).filter(event => happened(event).type === "mousedown" && !happened(event).button).on("end", event => {
      const chosen = happened(event).selection;
      if (!chosen) return;
      const [low, high] = chosen.map(x.invert);
      if (xs.filter(value => value >= low && value <= high).length > 1) range = [low, high];
      draw();
    });
    svg.append("g").attr("class", "brush").call(brush);
  }
  draw();
  plot.addEventListener("pointermove", event => {
    const frame = svg.node().getBoundingClientRect(), place = (event.clientX - frame.left) / frame.width * width;
    point(leastIndex(xs, one => Math.abs(x(one) - place)));
  });
  plot.addEventListener("pointerleave", leave);
  plot.addEventListener("focus", () => point(at < 0 ? xs.length - 1 : at));
  plot.addEventListener("blur", leave);
  plot.addEventListener("keydown", event => {
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: xs.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    point(to);
  });
}
document.querySelectorAll("figure.chart").forEach(drawChart);

// The panel of a head --------------------------------------------------------------------------------------------------

const heads = document.querySelector("#heads table");
const maps = [...document.querySelectorAll("script.attention")].map(script => ({stage: script.dataset.stage, ...JSON.parse(script.textContent)}));
const headOf = link => decodeURIComponent(link.hash).slice("#head-".length);
const panel = make("aside", {class: "panel", role: "dialog", "aria-labelledby": "panel-title", tabindex: "-1", hidden: ""});
let opener = null, chosenText = 0;

/// The weights of a head on a text as a drawing: a square a query and key, filled by its weight.
function drawWeights(place, queries, keys, base64) {
  const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
  const cell = 18, across = 84, above = 84;
  const svg = d3.select(place).append("svg").attr("viewBox", [0, 0, across + cell * keys.length + 26, above + cell * queries.length + 4]).attr("role", "img")
    .attr("aria-label", "Each token's largest weight: " + queries.map((token, t) => {
      const row = bytes.subarray(t * keys.length, (t + 1) * keys.length), most = leastIndex([...row], weight => -weight);
      return `${token} at ${keys[most]} ${(row[most] / 255).toFixed(2)}`;
    }).join(", "));
  svg.style("max-width", `${(across + cell * keys.length + 26) * 1.6}px`);
  const shortened = token => token.length > 12 ? token.slice(0, 11) + "…" : token;
  keys.forEach((token, s) => svg.append("text").attr("transform", `translate(${across + cell * (s + 0.65)},${above - 5}) rotate(-60)`).text(shortened(token)));
  queries.forEach((token, t) => svg.append("text").attr("x", across - 6).attr("y", above + cell * (t + 0.7)).attr("text-anchor", "end").text(shortened(token)));
  queries.forEach((query, t) => keys.forEach((key, s) => {
    const weight = bytes[t * keys.length + s] / 255;
    svg.append("rect").attr("class", "weight").attr("x", across + cell * s).attr("y", above + cell * t).attr("width", cell).attr("height", cell)
      .attr("fill-opacity", weight).append("title").text(`${query} looks at ${key}: ${weight.toFixed(2)}`);
  }));
}

function attentionOf(name, place) {
  for (const map of maps) {
    const weights = (map.heads[name] ?? {}).attention;
    if (!weights) continue;
    const choose = make("select", {"aria-label": "Text"});
    map.texts.forEach((text, i) => choose.append(make("option", {value: i}, (text.source ?? text.target).filter(token => !/^<\/?s>$/.test(token)).join(" "))));
    const drawing = make("div", {});
    const show = () => {
      chosenText = +choose.value;
      drawing.replaceChildren();
      const text = map.texts[chosenText], stack = name.split(".").slice(0, 2).join(".");
      const queries = stack === "enc.self" && text.source ? text.source : text.target;
      drawWeights(drawing, queries, stack === "dec.self" || !text.source ? text.target : text.source, weights[chosenText]);
    };
    choose.value = Math.min(chosenText, map.texts.length - 1);
    choose.addEventListener("change", show);
    place.append(make("h4", {}, "What it looks at: " + map.stage), choose, drawing,
                 make("p", {class: "note"}, "A row is a token, a column what it looks at; the fuller a square, the larger the weight, from 0 to 1."));
    show();
  }
}

function markHead(name) {
  for (const link of document.querySelectorAll(".map a"))
    if (headOf(link) === name) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
}

function openHead(name, from) {
  const row = document.getElementById("head-" + name);
  if (!row) return;
  if (from) opener = from;
  markHead(name);
  const close = make("button", {type: "button"}, "close"), before = make("button", {type: "button"}, "previous"), after = make("button", {type: "button"}, "next");
  const all = [...heads.tBodies[0].rows], here = all.indexOf(row);
  close.addEventListener("click", closeHead);
  before.addEventListener("click", () => openHead(all[(here + all.length - 1) % all.length].id.slice(5)));
  after.addEventListener("click", () => openHead(all[(here + 1) % all.length].id.slice(5)));
  const body = make("tbody", {});
  [...heads.tHead.rows[0].cells].forEach((head, column) => {
    const cell = row.cells[column];
    if (column === 0 || cell.textContent === "") return;
    const key = cell.dataset.key, place = make("td", {});
    if (key !== undefined && key !== "nan") {
      const others = all.map(one => one.cells[column].dataset.key).filter(value => value !== undefined && value !== "" && value !== "nan").map(Number);
      place.textContent = `${others.filter(value => value > +key).length + 1} of ${others.length}`;
    }
    body.append(make("tr", {}, make("th", {scope: "row"}, head.textContent), make("td", {class: "number"}, cell.textContent), place));
  });
  const content = make("div", {});
  panel.replaceChildren(make("div", {class: "tools"}, before, after, close), make("h3", {id: "panel-title"}, name),
                        make("table", {}, make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "what"), make("th", {scope: "col"}, "value"),
                             make("th", {scope: "col"}, "highest first"))), body), content);
  panel.hidden = false;
  attentionOf(name, content);
  panel.focus({preventScroll: true});
}
function closeHead() {
  panel.hidden = true;
  markHead(null);
  if (opener) opener.focus({preventScroll: true});
}
if (heads) {
  document.body.append(panel);
  document.addEventListener("keydown", event => { if (event.key === "Escape" && !panel.hidden) closeHead(); });
  for (const row of heads.tBodies[0].rows) {
    const name = row.cells[0].textContent, link = make("a", {href: "#head-" + name}, name);
    row.cells[0].replaceChildren(link);
    link.addEventListener("click", event => { event.preventDefault(); openHead(name, link); });
  }
  for (const map of document.querySelectorAll("table.map")) {
    map.addEventListener("click", event => {
      const link = event.target.closest("a");
      if (!link) return;
      event.preventDefault();
      openHead(headOf(link), link);
    });
    // One stop of the tab key a map; arrows go from head to head.
    const links = [...map.querySelectorAll("a")];
    links.forEach((link, i) => link.tabIndex = i ? -1 : 0);
    map.addEventListener("keydown", event => {
      const cell = document.activeElement.closest("td");
      const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
      if (!cell || !step) return;
      event.preventDefault();
      const row = map.tBodies[0].rows[cell.parentElement.sectionRowIndex + step[0]];
      const next = row && row.cells[cell.cellIndex + step[1]] && row.cells[cell.cellIndex + step[1]].querySelector("a");
      if (!next) return;
      links.forEach(link => link.tabIndex = -1);
      next.tabIndex = 0;
      next.focus();
    });
  }
}

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => part.open = true));
