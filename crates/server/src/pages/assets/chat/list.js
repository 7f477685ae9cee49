// The list of conversations: search, open, rename, pin, delete with undo. It is loaded by pages while the reader scrolls, and has nodes only for what
// is visible.

const PAGE = 50;
const SEARCH_MS = 200;
const REFRESH_MS = 150;
const UNDO_MS = 10_000;
const MOST_REFRESHED = 200; // conversations; those behind stay as they were loaded
const ROW = 52; // pixels of a row, as in the style
const BEYOND = 10; // rows above and below what is visible

const listed = { items: [], next: null, query: "", shown: "", turn: 0, loading: false }; // `shown` is the query of the items
let refreshTimer = 0;
let removed = null; // { id, title, timer }: deleted here, and soon on the server

// --- loading ---

async function loadPage(query, after, limit) {
  const parts = new URLSearchParams({ limit: String(limit) });
  if (query !== "") parts.set("query", query);
  if (after !== null) parts.set("after", after);
  const { data, next } = await callStore("GET", `v1/chats?${parts}`);
  return { items: listOf(data).map((one) => ({ ...one, id: String(one.id) })), next: next ?? null };
}

// Loads what is visible again. Several changes at once are one request.
function refreshList() {
  clearTimeout(refreshTimer);
  refreshTimer = setTimeout(loadList, REFRESH_MS);
}

async function loadList() {
  clearTimeout(refreshTimer);
  const turn = ++listed.turn;
  const { query } = listed;
  const seen = Math.min(Math.ceil(($("list-scroll").scrollTop + $("list-scroll").clientHeight) / ROW), MOST_REFRESHED);
  try {
    let found = { items: [], next: null };
    do {
      const page = await loadPage(query, found.next, PAGE);
      found = { items: [...found.items, ...page.items], next: page.next };
    } while (found.next !== null && found.items.length < seen);
    if (turn !== listed.turn) return;
    takeListed(found, query);
    storeRefusal = "";
    showList();
    loadMore();
  } catch ({ kind, message }) {
    if (turn !== listed.turn) return;
    listed.loading = false;
    if (kind === "denied" || kind === "missing") storeRefusal = message;
    if (kind !== "key" && kind !== "away") showNotSaved(message);
    showList();
  }
}

// What is behind the loaded rows stays if the reader has scrolled there.
function takeListed(found, query) {
  const known = new Set(found.items.map(({ id }) => id));
  const isDeep = $("list-scroll").scrollTop + $("list-scroll").clientHeight > found.items.length * ROW;
  const behind = isDeep && found.next !== null && query === listed.shown ? listed.items.slice(found.items.length).filter(({ id }) => !known.has(id)) : [];
  const next = behind.length > 0 ? listed.next : found.next;
  Object.assign(listed, { items: [...found.items, ...behind], next, shown: query, loading: false });
}

// The next page, when the reader is near the end of the list.
async function loadMore() {
  const list = $("list-scroll");
  const isNear = list.scrollTop + list.clientHeight > list.scrollHeight - 2 * list.clientHeight;
  if (listed.next === null || listed.loading || !isNear || !list.checkVisibility()) return;
  listed.loading = true;
  const { turn } = listed;
  const page = await loadPage(listed.query, listed.next, PAGE).catch(() => null);
  if (turn !== listed.turn) return;
  listed.loading = false;
  if (page === null) return;
  const known = new Set(listed.items.map(({ id }) => id));
  listed.items.push(...page.items.filter(({ id }) => !known.has(id)));
  listed.next = page.next;
  showList();
  loadMore();
}

// --- showing ---

const rows = new Map(); // id → { state, item }

function showList() {
  const items = listed.items.filter(({ id }) => id !== removed?.id);
  const running = new Set([...runs.values()].map((run) => run.chat.id));
  const list = $("list");
  const { scrollTop, clientHeight } = $("list-scroll");
  const first = Math.max(0, Math.min(Math.floor(scrollTop / ROW), items.length) - BEYOND);
  const end = Math.min(items.length, first + Math.ceil(clientHeight / ROW) + 2 * BEYOND);
  const visible = items.slice(first, end);
  const kept = new Set(visible.map(({ id }) => id));
  for (const id of rows.keys()) if (!kept.has(id)) rows.delete(id);
  placeNodes(list, visible.map((one, index) => {
    const item = rowOf(one, running.has(one.id));
    item.ariaSetSize = String(listed.next === null ? items.length : -1);
    item.ariaPosInSet = String(first + index + 1);
    return item;
  }));
  list.style.paddingTop = `${first * ROW}px`;
  list.style.paddingBottom = `${(items.length - end) * ROW}px`;
  const none = listed.query === "" ? "Conversations appear here." : `No conversation contains "${listed.query}".`;
  put("list-note", storeRefusal !== "" ? "Conversations are not saved." : items.length === 0 && !listed.loading ? none : "");
  $("search-field").hidden = storeRefusal !== "" || (items.length === 0 && listed.query === "");
}

// Rebuilt only if it changed: the user may be at it.
function rowOf(one, running) {
  const isCurrent = one.id === chat.id;
  const state = JSON.stringify([one.title, one.pinned, one.updated_at, running, isCurrent]);
  const known = rows.get(one.id);
  if (known?.state === state) return known.item;
  const focused = known?.item.contains(document.activeElement) ? document.activeElement.tagName : "";
  const title = textOf(one.title) || "Conversation";
  const name = node("span", { className: running ? "running" : "", textContent: title });
  const link = node("a", { href: `#${encodeURIComponent(one.id)}`, title }, name,
    node("small", { textContent: [one.pinned ? "Pinned" : "", dayOf(one.updated_at)].filter(Boolean).join(" · ") }));
  if (isCurrent) link.setAttribute("aria-current", "page");
  const more = node("button", { type: "button", textContent: "⋯", title: "More", ariaLabel: `More: ${title}`, ariaHasPopup: "dialog" });
  more.addEventListener("click", () => openChoices(more, [
    [one.pinned ? "Unpin" : "Pin", () => changeListed(one, { pinned: !one.pinned })],
    ["Rename", () => rename(one)],
    ["Delete", () => removeChat(one)],
  ]));
  const item = node("li", {}, link, more);
  known?.item.replaceWith(item);
  if (focused !== "") item.querySelector(focused)?.focus();
  rows.set(one.id, { state, item });
  return item;
}

function dayOf(moment) {
  const date = new Date(typeof moment === "number" ? moment * 1000 : moment);
  if (Number.isNaN(date.getTime())) return "";
  const today = date.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(undefined, today ? { timeStyle: "short" } : { day: "numeric", month: "short", year: "numeric" }).format(date);
}

// --- changing ---

async function changeListed(one, changes) {
  try {
    const open = one.id === chat.id ? chat : { id: one.id, changes: 0, queue: Promise.resolve() };
    await patchChat(open, changes);
    if (open === chat) {
      Object.assign(chat, changes);
      showAround();
    }
    say("Changed.");
  } catch ({ message }) {
    hint(message);
  }
  loadList();
}

async function rename(one) {
  const title = await askedText({ title: "Rename conversation", text: "", yes: "Rename", label: "Name", value: textOf(one.title), check: checkName });
  if (title !== null) changeListed(one, { title });
}

// Deletes after a while, so that it can be undone.
function removeChat({ id, title }) {
  removeNow();
  for (const { chat: answered, controller } of runs.values()) if (answered.id === id) controller.abort();
  removed = { id, title, timer: setTimeout(removeNow, UNDO_MS) };
  closeList();
  put("undo-text", `Deleted: ${textOf(title)}`);
  $("undo").hidden = false;
  if (chat.id === id) startNew();
  showList();
  $("undo-button").focus();
}

// Deletes on the server, also while the page is being closed.
function removeNow() {
  if (removed === null) return;
  const { id, timer } = removed;
  clearTimeout(timer);
  listed.items = listed.items.filter((one) => one.id !== id);
  removed = null;
  $("undo").hidden = true;
  askServer(`v1/chats/${encodeURIComponent(id)}`, { method: "DELETE", keepalive: true }).then((answer) => {
    if (answer === null || (answer.status >= 400 && answer.status !== 404)) hint(`Not deleted: ${problem(answer)}`);
    refreshList();
  });
}

function bringBack() {
  if (removed === null) return;
  clearTimeout(removed.timer);
  const { id } = removed;
  removed = null;
  $("undo").hidden = true;
  location.hash = encodeURIComponent(id);
  showList();
}

let searchTimer = 0;
$("search").addEventListener("input", () => {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(() => {
    listed.query = $("search").value.trim();
    $("list-scroll").scrollTop = 0;
    loadList();
  }, SEARCH_MS);
});
$("list-scroll").addEventListener("scroll", () => {
  showList();
  loadMore();
}, { passive: true });
$("undo-button").addEventListener("click", bringBack);

// --- on a narrow screen the list can be hidden ---

function openList() {
  document.body.classList.add("listing");
  $("menu").ariaExpanded = "true";
  $("content").inert = true;
  $("new").focus();
  loadMore();
}
function closeList() {
  if (!document.body.classList.contains("listing")) return;
  document.body.classList.remove("listing");
  $("menu").ariaExpanded = "false";
  $("content").inert = false;
  $("menu").focus();
}
