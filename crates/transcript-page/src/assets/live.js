"use strict";
// The script of a live page: what is written to the session appears, where it was scrolled to and folded stays.
(() => {
  const { prepare, fill, open, allPieces } = window.transcriptPage;
  const main = document.getElementById("conversation"), end = document.getElementById("end"), status = document.getElementById("live");
  // The HTML of each child of an open piece as it came: what has not changed is kept with its folds.
  const sources = new WeakMap();
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
    const stays = isAtEnd(), sections = allPieces();
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
      // What is not on the page is asked for when it is visible.
      if (part.html !== undefined && (section.firstChild || stays)) put(section, part.html);
      else if (section.firstChild) { section.replaceChildren(); open(section); }
      else section.style.height = part.height + "px";
    });
    for (const section of sections.slice(keep + parts.length)) section.remove();
    if (stays) toEnd();
  }

  // The browser connects again by itself, and says which event was the last one.
  const events = new EventSource(end.dataset.events);
  events.addEventListener("parts", (event) => update(JSON.parse(event.data)));
  events.addEventListener("open", () => say("live", true));
  events.addEventListener("error", () => say(events.readyState === EventSource.CLOSED ? "closed" : "connecting again", false));
  // Without a place to go to, the end of the session is shown first.
  if (!location.hash) {
    const last = allPieces().at(-1);
    if (last) open(last).then(() => { toEnd(); setTimeout(toEnd, 150); });
  }
})();
