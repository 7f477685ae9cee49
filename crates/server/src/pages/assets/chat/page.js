// The page around the conversation: following it, the question, the server, and what keys and buttons do.

const NEAR_END = 120;

let following = true;

const say = (text) => put("said", text);
function hint(text) {
  put("hint", text);
  $("hint").hidden = text === "";
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
  $("send").disabled = area.value.trim() === "";
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
  if (!unlocked) return;
  // Rendering needs the key too.
  showThread();
  $("question").focus();
});

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
  if (event.key !== "Escape" || event.isComposing) return;
  if (document.body.classList.contains("listing")) closeList();
  else if (runs.has(current.id)) stop();
  else stopEditing();
});
for (const choice of ["model", "agent"]) {
  $(choice).addEventListener("change", () => {
    current[choice] = $(choice).value;
    store.choose({ model: current.model, agent: current.agent });
    keep(current);
  });
}
$("new").addEventListener("click", () => {
  closeList();
  startNew();
});
$("skip").addEventListener("click", () => {
  closeList();
  $("question").focus();
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
$("undo-button").addEventListener("click", bringBack);
$("edit-cancel").addEventListener("click", stopEditing);
$("export").addEventListener("click", () => saveFile(fileNameOf(current), asMarkdown(current)));
addEventListener("hashchange", openFromAddress);
addEventListener("popstate", openFromAddress);
addEventListener("pagehide", leave);
addEventListener("storage", ({ key, newValue }) => hearElsewhere(key, newValue));

openFromAddress();
fitQuestion();
watch.look();
