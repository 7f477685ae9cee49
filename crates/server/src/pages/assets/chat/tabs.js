// The same conversations in other tabs: what happens there is seen here, and an answer is written by one tab only.

let lookAgain = 0;

// Another tab wrote an item of the storage, or emptied it all.
function hearElsewhere(key, value) {
  if (key !== null && !key.startsWith(SHELF)) return;
  const id = key?.slice(SHELF.length);
  if (value === null && runs.has(id)) return removeConversation(id);
  if (key === null) shelf.refresh();
  else shelf.refreshOne(id);
  lookElsewhere();
  showList();
}

// Shows how the conversation stands now, where it is not this tab that knows best.
function lookElsewhere() {
  const found = runs.has(current.id) ? null : shelf.open(current.id);
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

// A tab that ended without a word is noticed by its silence.
function watchElsewhere() {
  clearTimeout(lookAgain);
  if (isElsewhere(current)) lookAgain = setTimeout(lookElsewhere, FRESH_MS);
}

// What this tab was writing, it writes no longer.
function leave() {
  for (const { conversation } of runs.values()) {
    conversation.messages.at(-1).alive = 0;
    keep(conversation);
  }
}
