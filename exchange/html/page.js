"use strict";
(() => {
  const $ = (s) => document.querySelector(s);
  const box = $("#q"), said = $("#said"), bar = $(".bar"), help = $("#help");
  const items = () => document.querySelectorAll("main article");
  let hits = [], at = -1, asked = "", timer = 0;
  bar.hidden = false;

  const reveal = (el, focus) => {
    for (let d = el; d; d = d.parentElement) if (d.tagName === "DETAILS") d.open = true;
    for (const old of document.querySelectorAll("article.now")) old.classList.remove("now");
    el.classList.add("now");
    el.scrollIntoView({ block: "start" });
    if (focus) { el.tabIndex = -1; el.focus({ preventScroll: true }); }
  };

  // Paints what was asked for inside one item, and opens the folds that hide it.
  const paint = (el) => {
    if (!globalThis.Highlight || !CSS.highlights) return;
    const marks = new Highlight();
    const walker = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
    let first = null;
    for (let n = walker.nextNode(); n; n = walker.nextNode()) {
      const text = n.data.toLowerCase();
      for (let i = text.indexOf(asked); i >= 0 && marks.size < 2000; i = text.indexOf(asked, i + asked.length)) {
        if (text.length !== n.data.length) break;
        const r = new Range();
        r.setStart(n, i);
        r.setEnd(n, i + asked.length);
        marks.add(r);
        first = first || n.parentElement;
      }
    }
    for (let d = first; d && d !== el; d = d.parentElement) if (d.tagName === "DETAILS") d.open = true;
    CSS.highlights.set("hit", marks);
    if (first) first.scrollIntoView({ block: "center" });
  };

  const show = (i) => {
    if (!hits.length) return;
    at = (i + hits.length) % hits.length;
    reveal(hits[at]);
    paint(hits[at]);
    said.textContent = `${at + 1} of ${hits.length}`;
  };

  const search = () => {
    asked = box.value.toLowerCase().trim();
    hits = [];
    at = -1;
    if (globalThis.CSS && CSS.highlights) CSS.highlights.delete("hit");
    for (const old of document.querySelectorAll("article.now")) old.classList.remove("now");
    if (!asked) { said.textContent = ""; return; }
    for (const el of items()) if (el.textContent.toLowerCase().includes(asked)) hits.push(el);
    if (hits.length) show(0); else said.textContent = "not found";
  };

  const prompt = (step) => {
    const all = [...document.querySelectorAll("main article.user")];
    if (!all.length) return;
    const now = document.querySelector("article.now.user");
    let i = all.indexOf(now);
    if (i < 0) {
      i = all.findIndex((el) => el.offsetParent && el.getBoundingClientRect().top > 70);
      i = i < 0 ? all.length : step > 0 ? i - 1 : i;
    }
    reveal(all[Math.max(0, Math.min(all.length - 1, i + step))], true);
  };

  const folds = (open, all) => { for (const d of document.querySelectorAll(all ? "main details" : "main details.fold")) d.open = open; };
  const theme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  };

  box.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 150); });
  box.addEventListener("keydown", (e) => {
    if (e.key === "Enter") {
      e.preventDefault();
      clearTimeout(timer);
      if (box.value.toLowerCase().trim() !== asked || at < 0) search(); else show(at + (e.shiftKey ? -1 : 1));
    } else if (e.key === "Escape") { box.value = ""; search(); box.blur(); }
  });
  const keys = {
    "/": () => setTimeout(() => { box.focus(); box.select(); }), n: () => prompt(1), p: () => prompt(-1), o: () => folds(true, true), f: () => folds(false, false), t: theme,
    "?": () => (help.open ? help.close() : help.showModal()),
  };
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input")) return;
    const act = keys[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  $("#next").addEventListener("click", () => (at < 0 ? search() : show(at + 1)));
  $("#prev").addEventListener("click", () => (at < 0 ? search() : show(at - 1)));
  $("#open").addEventListener("click", keys.o);
  $("#fold").addEventListener("click", keys.f);
  $("#theme").addEventListener("click", theme);
  $("#keys").addEventListener("click", keys["?"]);

  // A link to something that is folded away opens it.
  const follow = () => {
    const el = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (el) { if (el.tagName === "DETAILS") { el.open = true; el.scrollIntoView(); } else reveal(el); }
  };
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details.turn")) d.open = true; });
  follow();
})();
