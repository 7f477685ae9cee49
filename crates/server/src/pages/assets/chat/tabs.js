// The same conversations in other tabs: their changes are shown here, and only one tab writes an answer.

let lookAgain = 0;

// Another tab wrote an item of the storage, or emptied it all.
function hearElsewhere(key, value) {
  if (key !== null && !key.startsWith(SHELF)) return;
  const id = key?.slice(SHELF.length);
  if (value === null && runs.has(id)) return removeConversation(id);
  if (key === null) store.refresh();
  else store.refreshOne(id);
  lookElsewhere();
  showList();
}

// Shows the stored conversation, unless this tab is writing it.
function lookElsewhere() {
  const found = runs.has(current.id) ? null : store.open(current.id);
  if (found === null) {
    if (isElsewhere(current)) startNew();
    return;
  }
  const [last, now] = [current.messages.at(-1), found.messages.at(-1)];
  if (isElsewhere(current) && current.messages.length === found.messages.length) {
    Object.assign(last, now);
    current.updated = found.updated;
    views.at(-1).update().then(follow);
    if (!isElsewhere(current)) hint("");
    showAround();
  } else if (found.updated > current.updated) {
    show(found);
  }
  watchElsewhere();
}

// A closed tab is detected because it stops updating.
function watchElsewhere() {
  clearTimeout(lookAgain);
  if (isElsewhere(current)) lookAgain = setTimeout(lookElsewhere, FRESH_MS);
}

// This tab stops writing its answers.
function leave() {
  for (const { conversation } of runs.values()) {
    conversation.messages.at(-1).alive = 0;
    keep(conversation);
  }
}
