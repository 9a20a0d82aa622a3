"use strict";
// The script of a page: opens the compressed pieces of a long session near what is visible, and closes them again; finds text
// in all of them; keys. Pieces are HTML that `transcript` wrote: texts of the session are escaped in them.
(() => {
  const $ = (id) => document.getElementById(id);
  const main = $("conversation"), nav = document.querySelector("nav"), tools = document.querySelector(".tools");
  const isPacked = (piece) => piece.hasAttribute("data-packed") || piece.hasAttribute("data-src");
  const allPieces = () => [...main.querySelectorAll("section.piece")];
  // The interface for the script of a live page; `follows` is whether the end stays visible while the session grows.
  const page = { follows: true, filled() {} };
  const idle = () => new Promise((done) => setTimeout(done));

  // The HTML of a piece.
  async function htmlOf(piece) {
    if (piece.hasAttribute("data-src")) {
      const answer = await fetch(piece.dataset.src);
      if (!answer.ok) throw new Error("the server answered " + answer.status);
      return answer.text();
    }
    if (!isPacked(piece)) return piece.innerHTML;
    const bytes = Uint8Array.from(atob(piece.dataset.packed), (c) => c.charCodeAt(0));
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(inflated).text();
  }

  // The open folds of each piece, so that they are restored when it is unpacked again.
  const folds = new WeakMap();
  const wanted = new Set(), opening = new Map();
  let isUnfolded = false;

  function keepFolds(piece) {
    folds.set(piece, [...piece.querySelectorAll("details")].map((details) => details.open));
  }
  function restoreFolds(piece) {
    const open = folds.get(piece);
    piece.querySelectorAll("details").forEach((details, at) => {
      if (isUnfolded) details.open = true;
      else if (open && at < open.length) details.open = open[at];
    });
  }
  function fill(piece, html) {
    piece.innerHTML = html;
    piece.style.height = "";
    page.filled(piece);
    restoreFolds(piece);
  }
  // Opens a piece; resolves when its elements are there.
  function open(piece) {
    if (!isPacked(piece) || piece.firstChild) return Promise.resolve();
    let promise = opening.get(piece);
    if (!promise) {
      promise = htmlOf(piece).then((html) => fill(piece, html), (error) => {
        piece.textContent = "This part cannot be shown: " + error.message;
      }).finally(() => opening.delete(piece));
      opening.set(piece, promise);
    }
    return promise;
  }
  function close(piece) {
    if (!isPacked(piece) || !piece.firstChild || wanted.has(piece) || piece.contains(document.activeElement)) return;
    keepFolds(piece);
    piece.style.height = piece.offsetHeight + "px";
    piece.replaceChildren();
  }
  // One after the other, so that no frame opens many.
  let isWorking = false;
  async function work() {
    if (isWorking) return;
    isWorking = true;
    for (;;) {
      const next = [...wanted].find((piece) => isPacked(piece) && !piece.firstChild);
      if (!next) break;
      await open(next);
      await idle();
    }
    isWorking = false;
  }
  function watcher(root, margin) {
    return new IntersectionObserver((changes) => {
      for (const change of changes) {
        if (change.isIntersecting) wanted.add(change.target);
        else if (wanted.delete(change.target)) setTimeout(() => close(change.target), 300);
      }
      work();
    }, { root, rootMargin: margin });
  }
  const nearMain = watcher(null, "60% 0px"), nearNav = nav && watcher(nav, "300px 0px");
  // Browsers lay out no page that is higher than about 33 million pixels.
  const whole = allPieces().reduce((sum, piece) => sum + +(piece.dataset.height || 0), 0), scale = Math.min(1, 2e7 / whole);
  function prepare(piece) {
    if (!isPacked(piece) || piece.isPrepared) return;
    piece.isPrepared = true;
    if (piece.dataset.rows) piece.style.height = piece.dataset.rows * 1.95 + "em";
    else piece.style.height = Math.ceil(piece.dataset.height * scale) + "px";
    (piece.closest("nav") ? nearNav : nearMain).observe(piece);
  }
  document.querySelectorAll(".piece").forEach(prepare);

  // Shows the element with this id, wherever it is.
  async function go(id, number) {
    page.follows = false;
    const shown = () => document.getElementById(id);
    if (!shown()) {
      const pieces = allPieces();
      const likely = number === undefined ? undefined : pieces[number];
      for (const piece of likely ? [likely, ...pieces] : pieces) {
        if (!isPacked(piece) || piece.firstChild || !(await htmlOf(piece)).includes(` id="${id}"`)) continue;
        wanted.add(piece);
        await open(piece);
        break;
      }
    }
    const element = shown();
    if (!element) return;
    // Skip hidden elements: the filter hides them.
    if (hides() && element.closest(hides())) {
      show.value = "";
      show.dispatchEvent(new Event("change"));
    }
    for (let above = element.parentElement; above; above = above.parentElement) if (above.localName === "details") above.open = true;
    await settle(() => element.scrollIntoView({ block: "start" }));
    document.querySelectorAll(".here").forEach((other) => other.classList.remove("here"));
    element.classList.add("here");
  }
  // Pieces that open above change where an element is: scrolls until it stays.
  async function settle(scroll) {
    let before = NaN;
    for (let turn = 0; turn < 12; turn++) {
      scroll();
      await new Promise((done) => setTimeout(done, 60));
      const now = document.documentElement.scrollHeight;
      if (now === before && opening.size === 0 && !isWorking) break;
      before = now;
    }
  }
  const idIn = (hash) => { const id = hash.slice(1); return /^[\w.-]{1,90}$/.test(id) ? id : null; };
  addEventListener("hashchange", () => { const id = idIn(location.hash); if (id) go(id); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    const id = link && idIn(link.getAttribute("href"));
    if (!id || event.ctrlKey || event.metaKey || id === "conversation") return;
    event.preventDefault();
    history.pushState(null, "", "#" + id);
    go(id, link.dataset.in === undefined ? undefined : +link.dataset.in);
  });

  // Find.
  const find = $("find"), found = $("found"), show = $("show");
  const entities = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&#x27;": "'" };
  const textOf = (html) => html.replace(/<[^>]*>/g, "").replace(/&(lt|gt|amp|quot|#39|#x27);/g, (entity) => entities[entity]);
  // Of each match: its piece, and which one of the piece it is.
  let matches = [], hidden = 0, current = -1, search = 0, needle = "";
  function* places(text, needle) {
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) yield at;
  }
  // The selector of hidden elements for each filter (page.css).
  const hiddenBy = { talk: ".call, .result, .thinking, .aside", prompts: ".item:not(.person), .turn" };
  const hides = () => hiddenBy[show.value];
  // The elements of a piece, without showing it.
  async function elementsOf(piece) {
    if (piece.firstChild) return piece;
    const template = document.createElement("template");
    template.innerHTML = await htmlOf(piece);
    return template.content;
  }
  async function searchAll() {
    const run = ++search;
    needle = find.value.toLowerCase();
    matches = []; hidden = 0; current = -1;
    clearMarks();
    found.textContent = "";
    if (!needle) return;
    let spent = performance.now();
    const pieces = allPieces();
    for (const [number, piece] of pieces.entries()) {
      let nth = 0;
      if (hides()) {
        const ranges = rangesIn(await elementsOf(piece), needle);
        if (run !== search) return;
        for (const range of ranges) {
          if (range.startContainer.parentElement.closest(hides())) { hidden++; nth++; }
          else matches.push({ piece, nth: nth++ });
        }
      } else {
        const text = piece.firstChild ? piece.textContent : textOf(await htmlOf(piece));
        if (run !== search) return;
        for (const _ of places(text.toLowerCase(), needle)) matches.push({ piece, nth: nth++ });
      }
      if (performance.now() - spent > 20) {
        found.textContent = `${matches.length} … ${Math.round((100 * number) / pieces.length)} %`;
        await idle();
        spent = performance.now();
      }
    }
    found.textContent = (matches.length ? `${matches.length} found` : hidden ? "nothing shown" : "nothing found") + more();
    if (matches.length) step(firstBelow());
  }
  const more = () => (hidden ? ` · ${hidden} more hidden` : "");
  // The first match that is not above what is visible.
  function firstBelow() {
    const at = matches.findIndex((match) => match.piece.getBoundingClientRect().bottom > 0);
    return at < 0 ? 0 : at;
  }
  function clearMarks() {
    if (window.CSS && CSS.highlights) CSS.highlights.clear();
  }
  async function step(to) {
    if (!matches.length) return;
    page.follows = false;
    current = (to + matches.length) % matches.length;
    const { piece, nth } = matches[current], run = search;
    found.textContent = `${current + 1} of ${matches.length}` + more();
    for (let above = piece.parentElement; above; above = above.parentElement) if (above.localName === "details") above.open = true;
    wanted.add(piece);
    await open(piece);
    if (run !== search) return;
    const ranges = rangesIn(piece, needle);
    const range = ranges[Math.min(nth, ranges.length - 1)];
    if (!range) return;
    for (let above = range.startContainer.parentElement; above; above = above.parentElement) if (above.localName === "details") above.open = true;
    if (window.CSS && CSS.highlights) {
      CSS.highlights.set("found", new Highlight(...ranges));
      CSS.highlights.set("current", new Highlight(range));
    }
    const scroll = () => {
      const at = range.getBoundingClientRect();
      if (at.top < 80 || at.bottom > innerHeight - 40) scrollBy(0, at.top - innerHeight / 3);
    };
    await settle(scroll);
  }
  function rangesIn(piece, needle) {
    const walker = document.createTreeWalker(piece, NodeFilter.SHOW_TEXT), nodes = [];
    let text = "";
    for (let node; (node = walker.nextNode()); ) { nodes.push([text.length, node]); text += node.data; }
    text = text.toLowerCase();
    let at = 0;
    const place = (offset) => {
      while (at + 1 < nodes.length && nodes[at + 1][0] <= offset) at++;
      return [nodes[at][1], Math.min(offset - nodes[at][0], nodes[at][1].length)];
    };
    return [...places(text, needle)].map((start) => {
      const range = document.createRange();
      range.setStart(...place(start));
      range.setEnd(...place(start + needle.length - 1));
      range.setEnd(range.endContainer, Math.min(range.endOffset + 1, range.endContainer.length));
      return range;
    });
  }
  let typing;
  find.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(searchAll, 200); });
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (needle === find.value.toLowerCase() && matches.length) step(current + (event.shiftKey ? -1 : 1));
      else { clearTimeout(typing); searchAll(); }
    } else if (event.key === "Escape") { find.value = ""; searchAll(); find.blur(); }
  });
  $("next").addEventListener("click", () => step(current + 1));
  $("previous").addEventListener("click", () => step(current - 1));
  function unfold() {
    isUnfolded = !isUnfolded;
    $("unfold").setAttribute("aria-pressed", isUnfolded);
    $("unfold").textContent = isUnfolded ? "Fold all" : "Unfold all";
    main.querySelectorAll("details:not(.branch)").forEach((details) => { details.open = isUnfolded; });
  }
  $("unfold").addEventListener("click", unfold);

  // Where the page scrolls an element to: below the bar. A fraction of a pixel is lost on the way.
  const edge = () => (parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0) + 2;
  // The prompts of the conversation in a piece of it. The image and the text of a prompt are one: the first has the id.
  const promptsIn = (piece) => [...piece.querySelectorAll(":scope > .person[id]")].filter((prompt) => prompt.offsetParent);
  const piecesOfMain = () => [...main.querySelectorAll(":scope > .piece")];
  const hasPrompt = (html) => /<article class="item person[^"]*" id=/.test(html);
  // Goes to the next or the previous prompt, also where nothing is open yet.
  let jumps = 0;
  async function jump(forward) {
    page.follows = false;
    const run = ++jumps, top = edge();
    const isPast = (at) => (forward ? at > top : at <= top - 12);
    const pieces = piecesOfMain().filter((piece) => piece.offsetParent);
    for (const piece of forward ? pieces : pieces.reverse()) {
      const box = piece.getBoundingClientRect();
      if (!isPast(forward ? box.bottom : box.top)) continue;
      if (isPacked(piece) && !piece.firstChild) {
        if (!hasPrompt(await htmlOf(piece))) continue;
        wanted.add(piece);
        await open(piece);
      }
      if (run !== jumps) return;
      const found = promptsIn(piece).filter((prompt) => isPast(prompt.getBoundingClientRect().top));
      const target = found.at(forward ? 0 : -1);
      if (target) return settle(() => { if (run === jumps) target.scrollIntoView({ block: "start" }); });
    }
    scrollBy(0, (forward ? 1 : -1) * innerHeight);
  }
  let isScrolling = false;
  addEventListener("scroll", () => {
    if (isScrolling || !nav) return;
    isScrolling = true;
    setTimeout(() => {
      isScrolling = false;
      // The prompt that is read, in the list.
      const top = edge(), prompts = piecesOfMain().flatMap(promptsIn);
      const now = prompts.findLast((prompt) => prompt.getBoundingClientRect().top <= top);
      const link = now && nav.querySelector(`a[href="#${CSS.escape(now.id)}"]`);
      nav.querySelectorAll("[aria-current]").forEach((old) => old !== link && old.removeAttribute("aria-current"));
      if (link && !link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "location");
        const top = link.offsetTop - nav.offsetTop;
        if (top < nav.scrollTop || top > nav.scrollTop + nav.clientHeight - 40) nav.scrollTop = top - nav.clientHeight / 2;
      }
    }, 120);
  }, { passive: true });
  addEventListener("keydown", (event) => {
    const isTyping = /^(input|textarea|select)$/i.test(event.target.localName);
    const isBrowserFind = (event.ctrlKey || event.metaKey) && event.key === "f";
    // Compressed pieces are not in the DOM: the find of the browser cannot see them. A second time opens that one.
    const takesFind = isBrowserFind && main.querySelector("section[data-packed], section[data-src]") && document.activeElement !== find;
    if (takesFind || (event.key === "/" && !isTyping)) {
      event.preventDefault();
      find.focus();
      find.select();
      return;
    }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") jump(true);
    else if (event.key === "k") jump(false);
    else if (event.key === "n") step(current + 1);
    else if (event.key === "N") step(current - 1);
    else if (event.key === "u") unfold();
  });
  // The filter.
  show.addEventListener("change", () => {
    main.dataset.show = show.value;
    if (needle) searchAll();
  });
  // Paper shows everything that is open on the screen, and the pieces as well.
  addEventListener("beforeprint", () => main.querySelectorAll("section.piece").forEach((piece) => { piece.style.height = ""; }));

  tools.hidden = false;
  Object.assign(page, { prepare, open, allPieces });
  const at = new URLSearchParams(location.search).get("at");
  const start = idIn(location.hash) || (at && idIn("#" + at));
  if (start) go(start);
  window.transcriptPage = page;
})();
