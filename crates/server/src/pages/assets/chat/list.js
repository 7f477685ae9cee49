// The list of conversations: open, delete, undo.

let listed = "";
let removed = null; // the last one that was deleted

function showList() {
  const list = store.list();
  // Rebuilt only if it changed: the user may be navigating in it.
  const state = JSON.stringify([list, [...runs.keys()], current?.id]);
  if (listed === state) return;
  listed = state;
  const focused = document.activeElement?.dataset?.focus;
  $("list").replaceChildren(...list.map(listItem));
  if (focused) document.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  put("list-note", list.length === 0 ? "" : `Saved only in this browser; the latest ${MOST_CONVERSATIONS}.`);
}

function listItem({ id, title, updated }) {
  const name = node("span", { className: runs.has(id) ? "running" : "", textContent: title || "Conversation" });
  const link = node("a", { href: `#${id}`, title }, name, node("small", { textContent: dayOf(updated) }));
  if (id === current?.id) link.setAttribute("aria-current", "page");
  const remove = node("button", { type: "button", textContent: "×", title: "Delete" });
  remove.setAttribute("aria-label", `Delete: ${title}`);
  remove.addEventListener("click", () => removeConversation(id));
  link.dataset.focus = `open ${id}`;
  remove.dataset.focus = `delete ${id}`;
  return node("li", {}, link, remove);
}

function dayOf(moment) {
  const date = new Date(moment);
  const today = date.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(undefined, today ? { timeStyle: "short" } : { day: "numeric", month: "short", year: "numeric" }).format(date);
}

function keep(conversation) {
  if (conversation === removed || conversation.messages.length === 0 || isElsewhere(conversation)) return;
  $("full").hidden = store.keep(conversation);
  showList();
}

function removeConversation(id) {
  removed = runs.get(id)?.conversation ?? (current.id === id ? current : store.open(id));
  runs.get(id)?.controller.abort();
  if (removed && isElsewhere(removed)) removed.messages.at(-1).state = "stopped";
  store.remove(id);
  closeList();
  put("undo-text", `Deleted: ${removed?.title ?? ""}`);
  $("undo").hidden = false;
  if (current.id === id) startNew();
  showList();
  $("undo-button").focus();
}

function bringBack() {
  const conversation = removed;
  forgetRemoved();
  if (!conversation) return;
  keep(conversation);
  show(conversation);
}

function forgetRemoved() {
  removed = null;
  $("undo").hidden = true;
}

// --- on a narrow screen the list can be hidden ---

function openList() {
  document.body.classList.add("listing");
  $("menu").ariaExpanded = "true";
  $("room").inert = true;
  $("new").focus();
}
function closeList() {
  if (!document.body.classList.contains("listing")) return;
  document.body.classList.remove("listing");
  $("menu").ariaExpanded = "false";
  $("room").inert = false;
  $("menu").focus();
}
