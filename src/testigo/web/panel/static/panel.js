// The panel works without this. With it, a page follows what happens: on a signal it fetches its own address
// again and replaces what it has marked with data-live. One stream serves all tabs of a browser, for a browser
// keeps few connections to a server: the tab that holds the lock listens, and tells the others.

const body = document.body;
const topics = JSON.parse(body.dataset.topics ?? "[]");
const live = document.getElementById("live");
const said = document.getElementById("said");
const words = said.dataset;

// What is replaced, and when it is not

const QUIET_MS = 30_000; // ages on the page grow stale by themselves
let fetching = false, again = false, waitMs = 1_000, timer = 0, dueAt = 0, seenAt = new Date();

function look() {
  again = true;
  if (!fetching) later(waitMs);
}

function later(ms) {
  const at = performance.now() + ms;
  if (timer && dueAt <= at) return;
  clearTimeout(timer);
  [timer, dueAt] = [setTimeout(refresh, ms), at];
}

async function refresh(shown = false) {
  clearTimeout(timer);
  timer = 0;
  if (document.hidden || fetching) return;
  fetching = true;
  again = false;
  const began = performance.now();
  try {
    const answer = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html" } });
    if (answer.status === 401) return ended();
    if (!answer.ok) return stand("stale");
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    replace(fresh, shown === true);
    stand(paused() ? "paused" : "live");
  } catch {
    stand("stale");
  } finally {
    fetching = false;
    waitMs = Math.min(15_000, Math.max(1_000, 5 * (performance.now() - began)));
    if (!paused()) later(again ? waitMs : QUIET_MS);
  }
}

function replace(fresh, all) {
  let news = 0, held = false;
  for (const old of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(old.getAttribute("id")); // a form's own `id` is its field of that name
    if (!next || old.innerHTML === next.innerHTML) continue;
    if (!all && inUse(old, next)) {
      held ||= settled(old) !== settled(next);
      news += [...next.querySelectorAll("tr[id]")].filter((row) => !document.getElementById(row.id)).length;
      continue;
    }
    const open = [...old.querySelectorAll("details[id][open]")].map((each) => each.id);
    const scrolled = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    old.replaceChildren(...document.importNode(next, true).childNodes);
    old.className = next.className;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    old.querySelectorAll(".scroll").forEach((each, i) => (each.scrollLeft = scrolled[i] ?? 0));
    enhance(old);
  }
  offer(held, news);
}

// Nothing moves under somebody's focus, selection or choice, and rows do not move under the pointer either.
function inUse(part, next) {
  const selection = getSelection();
  const selected = selection && !selection.isCollapsed && selection.containsNode(part, true);
  return selected || part.contains(document.activeElement) || part.querySelector("input:checked") ||
    ((scrollY > 200 || part.matches(":hover")) && rows(part) !== rows(next));
}

function rows(part) {
  return [...part.querySelectorAll("tbody tr")].map((row) => row.id || row.querySelector("th")?.textContent).join();
}

// What a part says, but for ages and for what was shown by `enhance`: nobody is told that time goes by.
function settled(part) {
  return part.innerHTML.replace(/<time [^>]*>[^<]*<\/time>| hidden=""/g, "");
}

function offer(held, news) {
  const shown = said.querySelector("button");
  if (!held) return shown && said.replaceChildren();
  const told = news ? words.new.replace("{n}", news) : words.changed;
  if (shown?.dataset.told === told) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.dataset.told = told;
  button.textContent = words.show;
  button.addEventListener("click", async () => {
    await refresh(true);
    if (document.activeElement === body) document.getElementById("main").focus({ preventScroll: true });
  });
  said.replaceChildren(`${told} `, button);
}

function ended() {
  stand("stale");
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = words.login;
  said.replaceChildren(link);
}

// Whether what is seen is so now

function stand(state) {
  if (!live) return;
  if (state === "live") seenAt = new Date();
  const told = { live: words.follows, paused: words.paused, stale: `${words.stale} ${clock(seenAt)}` }[state];
  live.dataset.state = state;
  const shown = live.querySelector(".live-state");
  if (shown.textContent !== told) shown.textContent = told;
}

function clock(at) {
  return at.toLocaleTimeString("en-GB", { timeZone: body.dataset.zone });
}

// The stream, and who of the tabs listens

const id = Math.random().toString(36).slice(2);
const channel = "BroadcastChannel" in window && navigator.locks ? new BroadcastChannel("testigo" + body.dataset.signals) : null;
const wanted = new Map();
let source = null, release = null, asked = null, retryMs = 2_000;

function paused() {
  return sessionStorage.getItem("testigo-paused") === "yes";
}

function listen() {
  stop();
  if (paused() || document.hidden) return;
  refresh();
  if (!channel) return open();
  wanted.clear();
  channel.postMessage({ from: id, want: topics });
  asked = new AbortController();
  navigator.locks.request("testigo-signals", { signal: asked.signal }, () => new Promise((done) => {
    release = done;
    channel.postMessage({ from: id, who: true });
    open();
  })).catch(() => {});
}

function stop() {
  source?.close();
  source = null;
  asked?.abort();
  release?.();
  release = asked = null;
  channel?.postMessage({ from: id, want: null });
}

function open() {
  source?.close();
  const all = [...new Set([topics, ...wanted.values()].flat())].slice(0, 20);
  const query = new URLSearchParams(all.map((topic) => ["topics", topic]));
  source = new EventSource(`${body.dataset.signals}?${query}`);
  source.addEventListener("open", () => { retryMs = 2_000; tell({ standing: "live" }); });
  source.addEventListener("changed", (event) => tell({ changed: Object.keys(JSON.parse(event.data)) }));
  source.addEventListener("live", () => tell({ standing: "live" }));
  source.addEventListener("stale", () => tell({ standing: "stale" }));
  source.addEventListener("error", () => {
    tell({ standing: "stale" });
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    setTimeout(() => { if (!source && !document.hidden && !paused()) listen(); }, retryMs);
    retryMs = Math.min(30_000, retryMs * 2);
  });
}

function tell(told) {
  channel?.postMessage({ from: id, ...told });
  hear(told);
}

function hear({ changed, standing }) {
  if (document.hidden || paused()) return;
  if (standing) stand(standing);
  if (changed?.some((topic) => topics.includes(topic))) look();
}

channel?.addEventListener("message", ({ data }) => {
  if (data.who && !document.hidden && !paused()) channel.postMessage({ from: id, want: topics });
  if ("want" in data && release) {
    const before = wanted.get(data.from)?.join() ?? "";
    data.want ? wanted.set(data.from, data.want) : wanted.delete(data.from);
    if (data.want && data.want.join() !== before && source) open();
  }
  hear(data);
});

if (live && topics.length) {
  const button = document.getElementById("pause");
  const label = () => {
    button.textContent = paused() ? words.follow : words.pause;
    button.setAttribute("aria-pressed", String(paused()));
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    sessionStorage.setItem("testigo-paused", paused() ? "no" : "yes");
    label();
    stand(paused() ? "paused" : "live");
    paused() ? (clearTimeout(timer), (timer = 0), stop()) : listen();
  });
  label();
  stand(paused() ? "paused" : "live");
  listen();
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : listen()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => event.persisted && listen());
}

// Small helps: copying, choosing all, the browser's own time zone

function enhance(part) {
  for (const button of part.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  for (const box of part.querySelectorAll("[data-check-all]")) box.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy)?.textContent ?? button.dataset.copy);
  said.textContent = words.copied;
  setTimeout(() => said.textContent === words.copied && said.replaceChildren(), 3_000);
});

document.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-check-all]")) return;
  for (const box of target.closest("form, table").querySelectorAll("td input[type=checkbox]")) box.checked = target.checked;
});

for (const input of document.querySelectorAll("input[data-browser-zone]")) {
  input.value ||= Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
}
enhance(document);

// Shortcuts, where they were not turned off; none while somebody writes

let before = "";
if ("keys" in body.dataset) document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, select, textarea, dialog[open], [contenteditable]")) return;
  const place = before === "g" && document.querySelector(`.places a[data-key="${CSS.escape(event.key)}"]`);
  before = event.key === "g" ? "g" : "";
  const act = {
    "/": () => {
      const field = document.querySelector("[data-search]");
      field ? field.focus() : document.querySelector('.places a[data-key="j"]').click();
    },
    "?": () => document.getElementById("keys").showModal(),
    r: () => refresh(true),
    p: () => document.getElementById("pause")?.click(),
  }[event.key] ?? triage(event.key);
  if (!place && !act) return;
  event.preventDefault();
  place ? place.click() : act();
});

// Review: from finding to finding, and a decision by its number. What is asked then is asked by the same forms.

function triage(key) {
  const form = document.querySelector("[data-triage], [data-decide]");
  if (!form) return null;
  const rows = [...form.querySelectorAll("tbody tr")];
  const here = rows.find((row) => row.contains(document.activeElement));
  const box = here?.querySelector("input[type=checkbox]");
  const step = { j: 1, k: -1 }[key];
  if (step && rows.length) {
    const next = here ? rows[rows.indexOf(here) + step] : rows.at(step > 0 ? 0 : -1);
    return () => next?.querySelector("th a").focus();
  }
  if (key === "x" && box) return () => (box.checked = !box.checked);
  const button = /^[1-7]$/.test(key) && form.querySelector(`[data-digit="${key}"]`);
  if (!button) return null;
  return () => {
    if (box && !form.querySelector("td input:checked")) box.checked = true;
    if (form.matches("[data-decide]") || form.querySelector("td input:checked")) button.click();
  };
}
