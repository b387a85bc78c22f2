// Search, filters and the contents list. Without scripts the whole page is there.
const form = document.getElementById("filters"), menu = document.getElementById("menu"), side = document.getElementById("side");
const articles = [...document.querySelectorAll("article")];
const words = new Map([...document.querySelectorAll(".claims > li, article h3")].map(e => [e, e.textContent.toLowerCase()]));

function filter() {
  const { text, paper, verdict, class: ground } = Object.fromEntries(new FormData(form));
  const terms = text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const article of articles) {
    const title = words.get(article.querySelector("h3"));
    let here = 0;
    for (const claim of article.querySelectorAll(".claims > li")) {
      const found = terms.every(term => words.get(claim).includes(term) || title.includes(term));
      claim.hidden = !(found && (!verdict || claim.dataset.verdict === verdict) && (!ground || claim.dataset.class === ground));
      here += !claim.hidden;
    }
    const bare = !verdict && !ground && terms.every(term => title.includes(term));
    article.hidden = (paper && article.dataset.paper !== paper) || !(here || bare);
    shown += article.hidden ? 0 : here;
  }
  for (const section of document.querySelectorAll(".paper"))
    section.hidden = !section.querySelector("article:not([hidden])");
  for (const entry of document.querySelectorAll("[data-of]")) entry.hidden = document.getElementById(entry.dataset.of).hidden;
  document.getElementById("shown").textContent = `${shown} claims and checks`;
}

function toggle(open) {
  side.hidden = !open;
  menu.setAttribute("aria-expanded", open);
}

form.addEventListener("input", filter);
form.addEventListener("reset", () => setTimeout(filter));
form.addEventListener("submit", event => event.preventDefault());
menu.addEventListener("click", () => toggle(side.hidden));
const narrow = matchMedia("(max-width: 60rem)");
narrow.addEventListener("change", () => toggle(!narrow.matches));
toggle(!narrow.matches);
side.addEventListener("click", event => { if (event.target.closest("a") && narrow.matches) toggle(false); });
filter();
