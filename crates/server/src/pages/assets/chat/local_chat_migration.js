// Conversations that earlier versions kept in this browser: they are moved to the server, once. What the storage has may come from another version
// or another program, so it is validated.

const SHELF = "hob-chat:";

function readOldMessage(value) {
  if (value?.role === "user") return { role: "user", text: textOf(value.content) };
  if (value?.role !== "assistant") return null;
  const ending = { complete: value.finish === "length" ? "cut" : "complete", stopped: "stopped" }[value.state] ?? "failed";
  const error = textOf(value.trouble) || (ending === "failed" ? "The page was closed before the answer ended." : "");
  const steps = listOf(value.steps).slice(0, MOST_STEPS).map((step) =>
    ({ id: "", tool: textOf(step?.tool), arguments: textOf(step?.input), result: "", success: step?.ended === "good" }));
  return { role: "assistant", answer: { ...newAnswer(), text: textOf(value.content), reasoning: textOf(value.thoughts), model: textOf(value.model), steps, ending, error } };
}

// The conversation as the page has it now, not saved yet; null if it cannot be read.
function readOldConversation(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(value?.messages) || value.messages.length === 0) return null;
  const messages = value.messages.map(readOldMessage);
  if (messages.includes(null)) return null;
  const model = textOf(value.model);
  const old = newChat({ model: model === "" || model === "default" ? null : model, agent: textOf(value.agent) || null });
  old.title = textOf(value.title);
  old.updated = Number.isFinite(value.updated) ? value.updated : 0;
  for (const { role, text: asked, answer } of messages) {
    const last = old.turns.at(-1);
    if (role === "user") old.turns.push(newTurn(last ?? null, { text: asked, attachments: [] }));
    else if (last?.answer === null) last.answer = answer;
  }
  return old.turns.length === 0 ? null : old;
}

// The old conversations of a storage, oldest first: `[key, conversation]`.
function oldConversations(storage) {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index)).filter((key) => key?.startsWith(SHELF));
  return keys.map((key) => [key, readOldConversation(storage.getItem(key))]).filter(([, old]) => old !== null)
    .sort(([, one], [, other]) => one.updated - other.updated);
}

function findOld() {
  try {
    return oldConversations(localStorage);
  } catch {
    return []; // The browser forbids storage.
  }
}

function offerToMove() {
  const count = storeRefusal === "" ? findOld().length : 0;
  $("move").hidden = count === 0;
  put("move-text", `Move ${plural(count, "conversation", "conversations")} of this browser to the server`);
}

// Each is removed from the browser when all of it is saved.
async function moveOld() {
  const all = findOld();
  let moved = 0;
  try {
    for (const [key, old] of all) {
      try {
        for (const turn of old.turns) await inQueue(old, () => putTurn(old, turn));
      } catch (error) {
        if (old.id !== null) await remove(chatPath(old));
        throw error;
      }
      localStorage.removeItem(key);
      moved += 1;
    }
    hint(`${plural(moved, "conversation", "conversations")} moved to the server.`);
  } catch ({ message }) {
    hint(`${moved} of ${all.length} conversations moved. ${message}`);
  }
  offerToMove();
  loadList();
}

$("move-button").addEventListener("click", () => once($("move-button"), moveOld));
$("move-later").addEventListener("click", () => { $("move").hidden = true; });
