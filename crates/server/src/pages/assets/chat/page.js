// The page around the conversation: following it, the question, the server, and what keys and buttons do.

const NEAR_END = 120;

let following = true;

function hint(text) {
  put("hint", text);
  $("hint").hidden = text === "";
}

function showNotSaved(reason) {
  put("not-saved", reason === "" ? "" : `This conversation is not saved: ${reason}`);
  $("not-saved").hidden = reason === "";
}

// --- following an answer to its end ---

const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR_END;
function follow() {
  if (following) scrollTo(0, document.documentElement.scrollHeight);
  else $("latest").hidden = atEnd();
}
function toTheEnd() {
  following = true;
  $("latest").hidden = true;
  follow();
}
addEventListener("scroll", () => {
  following = atEnd();
  if (following) $("latest").hidden = true;
}, { passive: true });

// --- the question ---

function setQuestion(text) {
  $("question").value = text;
  fitQuestion();
}
function fitQuestion() {
  const area = $("question");
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
  $("send").disabled = area.value.trim() === "" && tray.items.length === 0;
}

// --- the server ---

function lock() {
  askForKey();
  $("composer").hidden = true;
  showState("locked");
  showAround();
}

const watch = new ServerWatch((state) => {
  if (state === "locked") return lock();
  showState(state);
  if (state === "away") return;
  const unlocked = !$("key-form").hidden;
  $("key-form").hidden = true;
  $("composer").hidden = false;
  showAround();
  loadAll();
  if (!unlocked) return;
  openFromAddress();
  $("question").focus();
});

// What belongs to the caller: it changes with the key.
async function loadAll() {
  lookForDocuments();
  lookForAssistants();
  lookForAgents();
  lookForPrices();
  await loadList();
  await saveWhatIsMissing();
  for (const { answer } of views.values()) answer.update();
  offerToMove();
}

// --- what is pressed ---

whenKeyIsGiven(() => watch.forget());
$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
$("question").addEventListener("input", fitQuestion);
$("question").addEventListener("keydown", (event) => {
  // While a word is being composed, as in Japanese, Enter ends the word.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open]")) return;
  if (document.body.classList.contains("listing")) closeList();
  else if (isRunning(chat)) stop();
  else stopEditing();
});
$("new").addEventListener("click", () => {
  closeList();
  startNew();
});
$("stop").addEventListener("click", stop);
$("menu").addEventListener("click", openList);
$("shade").addEventListener("click", closeList);
matchMedia("(max-width: 48rem)").addEventListener("change", closeList);
$("latest").addEventListener("click", toTheEnd);
$("thread").addEventListener("click", ({ target }) => {
  const button = target.closest(".code button");
  if (button) copyText(button.closest(".code").querySelector("code").textContent, button);
});
$("edit-cancel").addEventListener("click", stopEditing);
$("export").addEventListener("click", () => saveFile(fileNameOf(chat.title), asMarkdown(chat.title, pathTo(chat.shown))));
addEventListener("hashchange", openFromAddress);
addEventListener("popstate", openFromAddress);
addEventListener("pagehide", leave);

show(newChat(lastChoice()));
live({
  chats: () => {
    refreshList();
    refreshShown();
  },
  assistants: lookForAssistants,
  documents: lookForDocuments,
  models: () => watch.lookAnew(),
}, () => {
  openFromAddress();
  watch.look();
});
