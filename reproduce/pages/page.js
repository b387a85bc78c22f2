// Filters, the picture of agreement and sorting. Without scripts the page is there, but for that picture.
const form = document.getElementById("filters"), menu = document.getElementById("menu"), side = document.getElementById("side");
const filtered = document.getElementById("filtered");
const low = e => e.textContent.toLowerCase();
const articles = [...document.querySelectorAll("article")].map(e => ({
  element: e, title: low(e.querySelector("h3")), all: [...e.querySelectorAll("h3, figcaption, .wide")].map(low).join(" "),
  claims: [...e.querySelectorAll(".claims > li")].map(c => ({ element: c, text: low(c) })),
}));

// A claim is found by its own words and the title; where none is, the figure or table is by its caption or cells.
function filter() {
  const chosen = Object.fromEntries([...new FormData(form)].filter(([, value]) => value.trim()));
  const terms = (chosen.text || "").toLowerCase().split(/\s+/).filter(Boolean);
  const has = text => terms.every(term => text.includes(term));
  let claims = 0, here = 0;
  for (const { element, title, all, claims: own } of articles) {
    const wanted = own.filter(({ element: { dataset: d } }) =>
      (!chosen.verdict || d.verdict === chosen.verdict) && (!chosen.class || d.class === chosen.class));
    const said = wanted.filter(c => has(c.text + title)), found = said.length || !has(all) ? said : wanted;
    for (const c of own) c.element.hidden = !found.includes(c);
    const bare = !chosen.verdict && !chosen.class && has(all);
    const off = (chosen.paper && element.dataset.paper !== chosen.paper) || (chosen.artifact && element.id !== chosen.artifact);
    element.hidden = off || !(found.length || bare);
    if (!element.hidden) { claims += found.length; here++; }
  }
  for (const section of document.querySelectorAll(".paper")) section.hidden = !section.querySelector("article:not([hidden])");
  for (const entry of document.querySelectorAll("[data-of]")) entry.hidden = document.getElementById(entry.dataset.of).hidden;
  const any = Object.keys(chosen).length > 0, count = `${claims} ${claims === 1 ? "claim or check" : "claims and checks"}`;
  for (const section of document.querySelectorAll(".front")) section.hidden = any;
  filtered.hidden = !any;
  filtered.firstElementChild.textContent = `${count} in ${here} ${here === 1 ? "figure or table" : "figures and tables"}: ${Object.values(chosen).join(", ")}.`;
  document.getElementById("shown").textContent = count;
  return chosen;
}

// The state of the filters is in the address, after "#?"; other addresses are places, which must not be hidden.
function changed(event) {
  const chosen = filter(), query = new URLSearchParams(chosen).toString();
  history.replaceState(null, "", query ? `#?${query}` : location.pathname + location.search);
  if (event && event.type === "change") document.getElementById("main").scrollIntoView();
}
function arrived() {
  const asked = location.hash.startsWith("#?"), place = document.getElementById(location.hash.slice(1));
  const wanted = new URLSearchParams(asked ? location.hash.slice(2) : "");
  if (asked || (place && !place.checkVisibility()))
    for (const field of form.elements) if (field.name) field.value = wanted.get(field.name) || "";
  filter();
  if (place || asked) (place || document.getElementById("main")).scrollIntoView();
}

function toggle(open) {
  side.hidden = !open;
  menu.setAttribute("aria-expanded", open);
}
form.addEventListener("input", event => { form.elements.artifact.value = ""; changed(event); });
form.addEventListener("change", changed);
form.addEventListener("reset", () => setTimeout(() => { form.elements.artifact.value = ""; changed(); }));
form.addEventListener("submit", event => event.preventDefault());
menu.addEventListener("click", () => toggle(side.hidden));
const narrow = matchMedia("(max-width: 60rem)");
narrow.addEventListener("change", () => toggle(!narrow.matches));
toggle(!narrow.matches);
side.addEventListener("click", event => { if (event.target.closest("a") && narrow.matches) toggle(false); });
addEventListener("hashchange", arrived);

// Wide tables keep the columns that name their rows, as many as fit into half of the frame, one at least.
function keep(frame) {
  const rows = [...frame.querySelectorAll("tr")], names = rows.at(-1).querySelectorAll("th");
  for (let i = 0, at = 0; i < names.length && (!i || at + names[i].offsetWidth < frame.clientWidth / 2); at += names[i++].offsetWidth)
    for (const { cells } of [rows[0], ...rows.filter(row => row.parentElement.tagName === "TBODY")])
      if (cells[i]) { cells[i].classList.add("kept"); cells[i].style.left = `${at}px`; }
}
for (const frame of document.querySelectorAll(".wide")) if (frame.scrollWidth > frame.clientWidth) keep(frame);

// Tables with one line of headings sort by a click: numbers by size, what is none last.
function sort(table, column, button) {
  const down = button.parentElement.ariaSort !== "descending", body = table.tBodies[0];
  const key = row => { const text = row.cells[column].textContent.replace(/,(?=\d{3})/g, "").replace("−", "-"); return [parseFloat(text), text]; };
  const order = ([a, s], [b, t]) => isNaN(a) || isNaN(b) ? isNaN(a) - isNaN(b) || s.localeCompare(t) : down ? b - a : a - b;
  for (const head of table.tHead.rows[0].cells) head.ariaSort = null;
  button.parentElement.ariaSort = down ? "descending" : "ascending";
  body.append(...[...body.rows].sort((a, b) => order(key(a), key(b))));
}
for (const table of document.querySelectorAll(".wide table")) {
  const heads = table.tHead?.rows.length === 1 && table.tBodies.length ? [...table.tHead.rows[0].cells] : [];
  if (heads.some(head => head.colSpan > 1)) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, column, button));
  });
}

// Ours over printed: a panel for each paper and unit, its diagonal, and the band that counts as agreement.
const data = JSON.parse(document.getElementById("points").textContent), box = document.getElementById("scatter");
const tip = document.getElementById("tip"), size = 250, left = 44, bottom = 34;
function ticks(from, to, log) {
  const decade = 10 ** Math.floor(Math.log10(to - from)), step = (to - from) / decade < 2.5 ? decade / 2 : decade;
  if (!log) return Array.from({ length: 12 }, (_, i) => (Math.ceil(from / step) + i) * step || 0).filter(v => v <= to);
  const of = digits => digits.flatMap(d => Array.from({ length: 7 }, (_, i) => d * 10 ** i)).filter(v => v >= from && v <= to);
  return [[1], [1, 2, 5], [1, 2, 3, 5, 7]].map(of).find(found => found.length > 2) || of([1, 1.5, 2, 3, 4, 5, 6, 7, 8]);
}
function drawn({ title, unit, log }, panel) {
  const mine = data.points.map((p, i) => [...p, i]).filter(p => p[0] === panel), all = mine.flatMap(p => [p[1], p[2]]);
  const pad = 0.05 * (Math.max(...all) - Math.min(...all)), from = log ? Math.min(...all) / 1.3 : Math.min(...all) - pad;
  const to = log ? Math.max(...all) * 1.3 : Math.max(...all) + pad, scaled = log ? Math.log : v => v;
  const at = v => (scaled(Math.min(Math.max(v, from), to)) - scaled(from)) / (scaled(to) - scaled(from));
  const x = v => (left + (size - left - 8) * at(v)).toFixed(1), y = v => (8 + (size - bottom - 8) * (1 - at(v))).toFixed(1);
  const band = v => unit === "%" ? [v - data.band.points, v + data.band.points] : [v * (1 - data.band.share), v * (1 + data.band.share)];
  const edge = data.band ? Array.from({ length: 41 }, (_, i) => log ? from * (to / from) ** (i / 40) : from + (to - from) * i / 40) : [];
  const zone = [...edge.map(v => [v, band(v)[0]]), ...edge.reverse().map(v => [v, band(v)[1]])].map(([a, b]) => `${x(a)},${y(b)}`).join(" ");
  const marks = ticks(from, to, log).map(v => { const text = v.toLocaleString("en").replace("-", "−");
    return `<text x="${x(v)}" y="${size - bottom + 16}" text-anchor="middle">${text}</text><text x="${left - 5}" y="${+y(v) + 4}" text-anchor="end">${text}</text>`; });
  const zero = data.band ? "" : `<path class="axis" d="M${x(0)} ${y(from)}V${y(to)}M${x(from)} ${y(0)}H${x(to)}"/>`;
  const dots = mine.map(p => `<circle class="${p[3] ? "own" : "other"}" cx="${x(p[1])}" cy="${y(p[2])}" r="3" data-i="${p[6]}"/>`);
  return `<figure><svg viewBox="0 0 ${size} ${size}" role="img" aria-label="${title}; ours over printed, ${unit}"><polygon class="band" points="${zone}"/>
    <path class="axis" d="M${x(from)} ${y(to)}V${y(from)}H${x(to)}M${x(from)} ${y(from)}L${x(to)} ${y(to)}"/>${zero}${marks.join("")}${dots.join("")}
    <text x="${(left + size) / 2}" y="${size - 3}" text-anchor="middle">printed (${unit})</text>
    <text transform="translate(9 ${(size - bottom) / 2}) rotate(-90)" text-anchor="middle">ours</text></svg><figcaption>${title} (${unit})</figcaption></figure>`;
}
if (box) {
  box.innerHTML = data.panels.map(drawn).join("");
  const over = event => data.points[event.target.dataset?.i];
  box.addEventListener("pointermove", event => {
    const point = over(event);
    tip.hidden = !point;
    if (!point) return;
    const [panel, printed, ours, , text] = point, gap = +(ours - printed).toPrecision(3);
    const { unit } = data.panels[panel];
    tip.textContent = `${data.panels[panel].title.split(":")[0]}, ${text}: ours ${ours}, printed ${printed} ${unit} (${gap < 0 ? "−" : "+"}${Math.abs(gap)})`;
    tip.style.left = `${Math.min(event.pageX + 12, document.documentElement.clientWidth - 280)}px`;
    tip.style.top = `${event.pageY + 14}px`;
  });
  box.addEventListener("pointerleave", () => { tip.hidden = true; });
  box.addEventListener("click", event => { if (over(event)) location.hash = over(event)[5]; });
}
arrived();
