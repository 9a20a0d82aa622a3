"use strict";
// The script of a live page: what is written to the session appears, where it was scrolled to and folded stays.
(() => {
  const page = window.transcriptPage, { prepare, open, allPieces } = page;
  const main = document.getElementById("conversation"), end = document.getElementById("end"), status = document.getElementById("live");
  // The HTML of each child of an open piece as it came: what has not changed is kept with its folds.
  const sources = new WeakMap();
  page.filled = (piece) => { for (const child of piece.children) sources.set(child, child.outerHTML); };
  const say = (text, isOn) => { status.textContent = text; status.classList.toggle("on", isOn); };
  const isAtEnd = () => scrollY + innerHeight > document.documentElement.scrollHeight - 120;
  const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);

  function put(piece, html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const old = new Map();
    for (const child of piece.children) {
      const source = sources.get(child);
      if (source !== undefined) (old.get(source) || old.set(source, []).get(source)).push(child);
    }
    let next = piece.firstElementChild;
    for (const child of [...template.content.children]) {
      const source = child.outerHTML;
      const kept = old.get(source) && old.get(source).shift();
      if (kept && kept === next) next = next.nextElementSibling;
      else piece.insertBefore(kept || child, next);
      if (!kept) sources.set(child, source);
    }
    while (next) { const gone = next; next = next.nextElementSibling; gone.remove(); }
    for (const node of [...piece.childNodes]) if (node.nodeType === 3) node.remove();
    piece.style.height = "";
  }

  function update({ keep, parts }) {
    const sections = allPieces();
    parts.forEach((part, at) => {
      let section = sections[keep + at];
      if (!section) {
        section = document.createElement("section");
        section.className = "piece";
        main.insertBefore(section, end);
      }
      section.dataset.src = part.src;
      section.dataset.height = part.height;
      prepare(section);
      // A missing part is requested when its placeholder becomes visible.
      if (part.html !== undefined && (section.firstChild || page.follows)) put(section, part.html);
      else if (section.firstChild) { section.replaceChildren(); open(section); }
      else section.style.height = part.height + "px";
    });
    for (const section of sections.slice(keep + parts.length)) section.remove();
    if (page.follows) toEnd();
  }

  // The end stays visible until the reader goes up, and again once they are back there.
  const leave = (event) => { if (!(event.deltaY >= 0)) page.follows = false; };
  for (const kind of ["wheel", "touchmove", "pointerdown"]) addEventListener(kind, leave, { passive: true });
  addEventListener("keydown", (event) => { if (["ArrowUp", "PageUp", "Home", "Tab"].includes(event.key)) page.follows = false; });
  addEventListener("scroll", () => { if (isAtEnd()) page.follows = true; }, { passive: true });
  new ResizeObserver(() => { if (page.follows) toEnd(); }).observe(main);

  // The browser connects again by itself, and says which event was the last one.
  const events = new EventSource(end.dataset.events);
  events.addEventListener("parts", (event) => update(JSON.parse(event.data)));
  events.addEventListener("open", () => say("live", true));
  events.addEventListener("error", () => say(events.readyState === EventSource.CLOSED ? "closed" : "connecting again", false));
  // Without a place to go to, the end of the session is shown first.
  page.follows = !location.hash && !new URLSearchParams(location.search).has("at");
  if (page.follows) {
    const last = allPieces().at(-1);
    if (last) open(last).then(toEnd);
  }
})();
