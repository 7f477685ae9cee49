// Conversations on the server: opened, created, and saved turn by turn. What could not be saved is saved later.

const SETTINGS = { model: null, agent: null, system: null, temperature: null, max_tokens: null, documents: null, tools: null, assistant: null };
const CHOICE = "hob-chat-choice";
const LAST_TEXT = 15_000; // characters; browsers send at most 64 KiB from a page that is closed

// Why nothing can be saved for this caller; empty if it can.
let storeRefusal = "";

// A conversation; `id` is null until the first question is saved. Requests of a conversation are sent one after the other, through `queue`.
// `changes` counts the changes of title, pin, settings and branch that the server does not have yet.
const newChat = (settings = {}) =>
  ({ id: null, title: "", pinned: false, settings: { ...SETTINGS, ...settings }, turns: [], shown: null, current: null, changes: 0, queue: Promise.resolve() });

// The model and the agent that were chosen last, for the next conversation.
function lastChoice() {
  try {
    const { model, agent } = JSON.parse(localStorage.getItem(CHOICE)) ?? {};
    return { model: textOf(model) === "default" ? null : textOf(model) || null, agent: textOf(agent) || null };
  } catch {
    return {};
  }
}

function keepChoice({ model, agent }) {
  try {
    localStorage.setItem(CHOICE, JSON.stringify({ model, agent }));
  } catch {
    // The choice then applies to this page only.
  }
}

// The body of the answer. Throws a `ChatError`, also of the kinds "denied", "missing", and "later" where the server may accept it later.
async function callStore(method, path, content) {
  const body = content === undefined ? {} : { body: JSON.stringify(content), headers: { "content-type": "application/json" } };
  const answer = await askServer(path, { method, ...body });
  if (answer === null) throw new ChatError("away", "Hob does not answer.");
  if (answer.status < 400 && answer.body !== null) return answer.body;
  const kind = { 401: "key", 403: "denied", 404: "missing" }[answer.status] ?? (answer.status >= 500 || answer.status === 429 ? "later" : "refused");
  throw new ChatError(kind, answer.body === null ? `Hob answered with status ${answer.status}.` : problem(answer));
}

const chatPath = (chat) => `v1/chats/${encodeURIComponent(chat.id)}`;

function inQueue(chat, work) {
  const done = chat.queue.then(work);
  chat.queue = done.catch(() => {});
  return done;
}

// Puts what the server knows of a conversation into `chat`. What is being changed here is newer. Returns the turns whose answer changed.
function takeChat(chat, { id, title, pinned, settings, current, data }) {
  const { turns, changed } = mergedTurns(chat.turns, listOf(data), (turn) => runs.has(turn));
  Object.assign(chat, { id: String(id), turns });
  const last = turns.find((turn) => turn.id !== null && turn.id === String(current)) ?? turns.at(-1) ?? null;
  // Another tab continued it, or chose another branch.
  const moved = chat.changes === 0 && chat.current !== String(current);
  if (chat.changes === 0) {
    Object.assign(chat, { title: textOf(title), pinned: pinned === true, settings: { ...SETTINGS, ...settings }, current: String(current) });
  }
  if (chat.shown === null || !turns.includes(chat.shown) || (moved && !runs.has(chat.shown) && chat.shown.id !== null)) chat.shown = last;
  return changed;
}

async function openChat(id) {
  const chat = newChat();
  takeChat(chat, await callStore("GET", `v1/chats/${encodeURIComponent(id)}`));
  return chat;
}

const refreshChat = (chat) => inQueue(chat, async () => takeChat(chat, await callStore("GET", chatPath(chat))));

// Saves a turn, and those before it that are not saved yet. Without a store the conversation lives as long as the page.
const saveTurn = (chat, turn) => (storeRefusal === "" ? inQueue(chat, () => putTurn(chat, turn)) : Promise.resolve());

async function putTurn(chat, turn) {
  if (turn.id !== null) return;
  if (chat.id === null) {
    const made = await callStore("POST", "v1/chats", { title: chat.title || undefined, settings: chat.settings });
    chat.id = String(made.id);
  }
  if (turn.parent !== null) await putTurn(chat, turn.parent);
  const parent = turn.parent?.id ?? null;
  const made = await callStore("POST", `${chatPath(chat)}/turns`, { parent, question: turn.question });
  turn.id = chat.current = String(made.id);
  if (turn.answer !== null && turn.answer.ending !== "running") await putAnswer(chat, turn);
}

async function putAnswer(chat, turn) {
  await callStore("PUT", `${chatPath(chat)}/turns/${encodeURIComponent(turn.id)}/answer`, fittedForm(turn.answer));
  turn.note = cutNote(turn.answer);
}

// Answers that are not saved yet, by turn.
const unsaved = new Map();
const FIRST_SAVE_PAUSE_MS = 1_000;
const LONGEST_SAVE_PAUSE_MS = 60_000;
const saving = { timer: 0, pause: FIRST_SAVE_PAUSE_MS };

// Saves an answer. If the server cannot, the turn says so, and the page tries again: after a pause, and when the server answers again.
async function saveAnswer(chat, turn) {
  if (storeRefusal !== "") return;
  try {
    await inQueue(chat, () => (turn.id === null ? putTurn(chat, turn) : putAnswer(chat, turn)));
    unsaved.delete(turn);
  } catch ({ kind, message }) {
    const isTriedAgain = kind === "away" || kind === "later";
    turn.note = `This answer is not saved: ${message}${isTriedAgain ? " The page tries again." : ""}`;
    // After a wrong key, entering the right one saves it.
    if (isTriedAgain || kind === "key") unsaved.set(turn, chat);
    else unsaved.delete(turn);
    if (isTriedAgain) saveLater();
  }
}

function saveLater() {
  clearTimeout(saving.timer);
  saving.timer = setTimeout(saveWhatIsMissing, saving.pause);
}

async function saveWhatIsMissing() {
  clearTimeout(saving.timer);
  // Once for all answers that wait.
  saving.pause = Math.min(saving.pause * 2, LONGEST_SAVE_PAUSE_MS);
  const tried = [...unsaved];
  for (const [turn, chat] of tried) await saveAnswer(chat, turn);
  if (unsaved.size === 0) saving.pause = FIRST_SAVE_PAUSE_MS;
  if (unsaved.size === 0 && tried.length > 0) showNotSaved("");
  for (const [turn] of tried) views.get(turn)?.answer.update();
}

// What the page can still send while it is being closed: the answer so far, marked as not complete.
function saveWhileLeaving(chat, turn) {
  if (turn.id === null) return;
  const answer = { ...savedForm(turn.answer), ending: "failed", error: "The page was closed before the answer ended." };
  if (JSON.stringify(answer).length > LAST_TEXT) {
    Object.assign(answer, { text: answer.text.slice(0, LAST_TEXT), reasoning: null, steps: [], sources: [] });
  }
  askServer(`${chatPath(chat)}/turns/${encodeURIComponent(turn.id)}/answer`, {
    method: "PUT", keepalive: true, headers: { "content-type": "application/json" }, body: JSON.stringify(answer),
  });
}

// A conversation that is not saved yet is created with its changes; it may be being created now.
async function patchChat(chat, changes) {
  if (storeRefusal !== "") return;
  chat.changes += 1;
  try {
    await inQueue(chat, () => (chat.id === null ? null : callStore("PATCH", chatPath(chat), changes)));
  } finally {
    chat.changes -= 1;
  }
}
