
// What the pages with cards, forms and tables share.

// Whether the caller may see the page. If not, `content` is hidden, and the page says what to do.
function isAdmitted(answer, content) {
  $("denied").hidden = answer?.status !== 403;
  if (answer?.status !== 401 && answer?.status !== 403) return true;
  $(content).hidden = true;
  if ($("count")) put("count", "");
  showNotice("");
  // The key of a member stays: the chat page uses it.
  if (answer.status === 401) askForKey();
  else $("key-form").hidden = false;
  return false;
}

// The notice of a failed load stays until a load works. Other notices stay until the next action.
let hasFailed = false;
function noteLoad(fault) {
  if (fault !== "" || hasFailed) showFailure(fault);
  hasFailed = fault !== "";
}

// What was done looks different from what went wrong.
function showDone(text) {
  showNotice(text);
  $("notice").classList.add("done");
}
function showFailure(text) {
  showNotice(text);
  $("notice").classList.remove("done");
}

// Names with a value each: a text, or several lines. Rows without a value are skipped.
function facts(rows) {
  return node("dl", { className: "facts" }, ...rows.filter(([, lines]) => lines?.length).flatMap(([name, lines]) => [
    node("dt", { textContent: name }),
    node("dd", {}, ...[lines].flat().map((line) => node("div", { textContent: line }))),
  ]));
}

// Focuses the element with this action. Returns whether there is one.
function focusOn(action, within = document) {
  const found = [...within.querySelectorAll("[data-action]")].find((one) => one.dataset.action === action);
  found?.focus();
  return found !== undefined;
}

// Replaces the entries of a list. The focus moves to the new element with the same action.
function fill(id, entries) {
  const focused = $(id).contains(document.activeElement) ? document.activeElement.dataset.action : undefined;
  $(id).replaceChildren(...entries);
  if (focused) focusOn(focused, $(id));
}

// Loads now, or when the dialog is closed: a reload would take the focus from the button that opened it. An answer that arrives while the dialog
// is open is loaded again too.
function loadAfterDialogs(load, dialogs = [$("ask")]) {
  const open = dialogs.find((dialog) => dialog.open);
  if (open) open.addEventListener("close", load, { once: true });
  else load();
}
