// Filters and sorting. Without scripts the page is there.
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
    const off = (chosen.paper && element.dataset.paper !== chosen.paper) || (chosen.artifact && element.id !== chosen.artifact.replace("/", "-"));
    element.hidden = off || !(found.length || bare);
    if (!element.hidden) { claims += found.length; here++; }
  }
  for (const section of document.querySelectorAll(".paper")) section.hidden = !section.querySelector("article:not([hidden])");
  for (const entry of document.querySelectorAll("[data-of]")) entry.hidden = document.getElementById(entry.dataset.of).hidden;
  const any = Object.keys(chosen).length > 0, count = `${claims} ${claims === 1 ? "claim or check" : "claims and checks"}`;
  for (const part of document.querySelectorAll(".front")) part.hidden = any;
  for (const part of document.querySelectorAll(".paper > details")) part.open ||= any;
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
  const part = place?.closest("section")?.querySelector("details");
  if (part) part.open = true;
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

// Wide tables keep the columns that name their rows, as many as leave a third of the frame, one at least.
function keep(frame) {
  const rows = frame.querySelectorAll("tr"), names = frame.querySelectorAll("tbody tr:first-child th");
  for (let i = 0, at = 0; i < names.length && (!i || at + names[i].offsetWidth < frame.clientWidth * 2 / 3); at += names[i++].offsetWidth)
    for (const { cells } of rows)
      if (cells[i]) { cells[i].classList.add("kept"); cells[i].style.left = `${at}px`; }
}
const fit = place => { for (const frame of place.querySelectorAll(".wide")) if (frame.scrollWidth > frame.clientWidth) keep(frame); };
for (const part of document.querySelectorAll("details")) part.addEventListener("toggle", () => fit(part));
addEventListener("beforeprint", () => { for (const part of document.querySelectorAll(".paper > details")) part.open = true; });

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
  if (heads.some(head => !head.textContent)) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, column, button));
  });
}
arrived();
