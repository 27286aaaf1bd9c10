// Keeps a page as it is now on the server: fetches the page itself again and takes over the parts marked data-live.
// The element #pulse says how often, and which event stream says "now". Without this script everything works by reload.
(() => {
  "use strict";
  const SOON = 150, SLOWEST = 30000, REFUSED = 15000; // milliseconds
  let tag = "", timer = 0, due = 0, failures = 0, busy = false, again = false, source = null, quietUntil = 0;

  const here = new URL(location.href);
  if (here.searchParams.has("notice")) {
    here.searchParams.delete("notice"); // said once
    history.replaceState(null, "", here);
  }

  const pulse = () => document.getElementById("pulse");
  const mark = (state) => {
    document.documentElement.dataset.connection = state;
    const place = document.querySelector(".live-mark");
    const text = { live: "live", lost: "not refreshing", still: "" }[state];
    if (place && place.textContent !== text) place.textContent = text;
  };

  async function refresh() {
    timer = 0;
    if (busy || document.hidden) { again = busy; return; }
    busy = true;
    try {
      const answer = await fetch(here, { headers: { "X-Refresh": "1", "If-None-Match": tag }, cache: "no-store" });
      if (answer.status === 401) { location.reload(); return; }
      if (answer.status !== 304 && !answer.ok) throw new Error(String(answer.status));
      if (answer.ok) {
        take(new DOMParser().parseFromString(await answer.text(), "text/html"));
        tag = answer.headers.get("ETag") || "";
      }
      failures = 0;
      mark("live");
    } catch {
      failures += 1;
      mark("lost");
    } finally {
      busy = false;
      arm(again ? SOON : null);
      again = false;
    }
  }

  function take(fresh) {
    document.title = fresh.title;
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(old.id);
      if (!now || old.isEqualNode(now) || inUse(old)) continue;
      const focused = old.contains(document.activeElement) ? trace(document.activeElement) : "";
      for (const open of old.querySelectorAll("details[open][id]")) now.querySelector("#" + open.id)?.setAttribute("open", "");
      old.replaceWith(document.adoptNode(now));
      if (focused) now.querySelector(focused)?.focus({ preventScroll: true });
    }
  }

  // A form that somebody has opened, and text that somebody has marked, stay as they are.
  function inUse(part) {
    const marked = getSelection();
    return part.querySelector("details[open] form") !== null || (!marked.isCollapsed && marked.containsNode(part, true));
  }

  const trace = (element) => element.id ? "#" + CSS.escape(element.id)
    : element.hasAttribute("href") ? `[href="${CSS.escape(element.getAttribute("href"))}"]`
    : element.localName === "summary" ? "summary" : "";

  // The next refresh, unless one is due sooner: a stream that never pauses must not put it off.
  function arm(after) {
    const every = Number(pulse()?.dataset.every || 0) * 1000;
    follow(every ? pulse().dataset.stream : undefined, pulse()?.dataset.events);
    if (!every) { clearTimeout(timer); timer = 0; mark("still"); return; }
    const wait = after ?? (failures ? Math.min(every * 2 ** failures, SLOWEST) : every);
    if (timer && due <= Date.now() + wait) return;
    clearTimeout(timer);
    due = Date.now() + wait;
    timer = setTimeout(refresh, wait);
  }

  function follow(stream, names) {
    if (source && !stream) { source.close(); source = null; }
    if (!stream || source || document.hidden || Date.now() < quietUntil) return;
    source = new EventSource(stream);
    for (const name of names.split(" ")) source.addEventListener(name, () => arm(SOON));
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return; // it connects again by itself
      source = null;
      quietUntil = Date.now() + REFUSED;
      arm(SOON);
    };
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); source = null; } else refresh();
  });
  if (pulse()) { mark("live"); arm(null); }
})();
