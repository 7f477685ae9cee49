// Conversations, stored only in this browser. The stored data may come from another version or another program, so it is
// validated.

const SHELF = "hob-chat:";
const CHOICE = "hob-chat-choice";
const MOST_CONVERSATIONS = 100;
const LONGEST_TITLE = 60;
const FRESH_MS = 90_000; // browsers run timers of background tabs once a minute

function newConversation(now) {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(9)), (byte) => byte.toString(36).padStart(2, "0")).join("");
  return { id, title: "", updated: now, model: "default", agent: "", messages: [] };
}

const newQuestion = (content) => ({ role: "user", content });
const newAnswer = () =>
  ({ role: "assistant", id: "", content: "", thoughts: "", steps: [], model: "", why: "", warnings: [], finish: "", state: "running", trouble: "", rating: "", alive: 0 });

// Whether another tab is writing the last answer. Only that tab saves the conversation meanwhile.
const isElsewhere = ({ messages }) => messages.at(-1)?.state === "elsewhere";

function titleOf(question) {
  const line = question.trim().split("\n", 1)[0].replace(/\s+/g, " ");
  const letters = Array.from(line);
  return letters.length > LONGEST_TITLE ? `${letters.slice(0, LONGEST_TITLE).join("").trimEnd()}…` : line;
}

// The messages for the model. A question without an answer is skipped: many chat templates require alternating
// turns.
function turnsOf(messages) {
  const turns = [];
  messages.forEach((message, index) => {
    const unanswered = messages[index + 1]?.role === "assistant" && messages[index + 1].content === "" && index + 2 < messages.length;
    if (message.content !== "" && !(message.role === "user" && unanswered)) {
      turns.push({ role: message.role, content: message.content });
    }
  });
  return turns;
}

function asMarkdown({ title, messages }) {
  const underWay = "*Still being answered.*";
  const told = { stopped: "*Stopped here.*", broken: "*Broke off here.*", running: underWay, elsewhere: underWay };
  const parts = messages.map(({ role, content, model, state }) => {
    const by = role === "user" ? "You" : model ? `Hob (${model})` : "Hob";
    return [`## ${by}`, content, told[state]].filter(Boolean).join("\n\n");
  });
  return `${[`# ${title || "Conversation"}`, ...parts].join("\n\n")}\n`;
}

function fileNameOf({ title }) {
  const name = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase();
  return `${name || "conversation"}.md`;
}

// --- reading stored conversations ---

const textOf = (value) => (typeof value === "string" ? value : "");

// An answer in progress counts as long as its tab updates it.
function stateOf({ state, alive }, now) {
  if (["complete", "stopped", "broken"].includes(state)) return state;
  return state === "running" && Math.abs(now - alive) < FRESH_MS ? "elsewhere" : "broken";
}

function readMessage(value, now) {
  if (value?.role === "user") return newQuestion(textOf(value.content));
  if (value?.role !== "assistant") return null;
  const steps = Array.isArray(value.steps) ? value.steps : [];
  const warnings = Array.isArray(value.warnings) ? value.warnings : [];
  const state = stateOf(value, now);
  return {
    role: "assistant",
    id: textOf(value.id),
    content: textOf(value.content),
    thoughts: textOf(value.thoughts),
    steps: steps.slice(0, MOST_STEPS).map((step) => ({
      tool: textOf(step?.tool), input: textOf(step?.input), ended: ["good", "bad"].includes(step?.ended) ? step.ended : "bad", seconds: Number(step?.seconds) || 0,
    })),
    model: textOf(value.model),
    why: textOf(value.why),
    warnings: warnings.slice(0, MOST_WARNINGS).map(textOf),
    finish: textOf(value.finish),
    state,
    trouble: textOf(value.trouble) || (state === "broken" ? "The page was closed before the answer ended." : ""),
    rating: textOf(value.rating),
    alive: state === "elsewhere" ? value.alive : 0,
  };
}

function readConversation(id, text, now) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(value?.messages)) return null;
  const messages = value.messages.map((message) => readMessage(message, now));
  if (messages.includes(null)) return null;
  const updated = Number.isFinite(value.updated) ? value.updated : 0;
  return { id, title: textOf(value.title), updated, model: textOf(value.model) || "default", agent: textOf(value.agent), messages };
}

// Replaces the storage if the browser forbids it: data lives as long as the page.
class PageStorage {
  #items = new Map();
  get length() { return this.#items.size; }
  key(index) { return [...this.#items.keys()][index] ?? null; }
  getItem(key) { return this.#items.get(key) ?? null; }
  setItem(key, value) { this.#items.set(key, value); }
  removeItem(key) { this.#items.delete(key); }
}

// The conversations, each as one item of the storage, so that two tabs do not overwrite each other.
class ConversationStore {
  #storage;
  #titles = new Map();

  constructor(storage) {
    this.#storage = storage;
    this.refresh();
  }

  // Reads the storage again; another tab may have changed it.
  refresh() {
    this.#titles.clear();
    const keys = Array.from({ length: this.#storage.length }, (_, index) => this.#storage.key(index));
    for (const key of keys) {
      if (key?.startsWith(SHELF)) this.refreshOne(key.slice(SHELF.length));
    }
  }

  refreshOne(id) {
    this.#titles.delete(id);
    const found = this.open(id);
    if (found) this.#note(found);
  }

  // Newest first.
  list() {
    return [...this.#titles.values()].sort((one, other) => other.updated - one.updated);
  }

  open(id) {
    const text = this.#storage.getItem(SHELF + id);
    return text === null ? null : readConversation(id, text, Date.now());
  }

  // Returns whether it was saved. Conversations beyond the limit are deleted, oldest first.
  keep(conversation) {
    try {
      this.#storage.setItem(SHELF + conversation.id, JSON.stringify(conversation));
    } catch {
      return false;
    }
    this.#note(conversation);
    for (const { id } of this.list().slice(MOST_CONVERSATIONS)) this.remove(id);
    return true;
  }

  remove(id) {
    this.#storage.removeItem(SHELF + id);
    this.#titles.delete(id);
  }

  // The model and the agent that were chosen last.
  choice() {
    try {
      const { model, agent } = JSON.parse(this.#storage.getItem(CHOICE)) ?? {};
      return { model: textOf(model) || "default", agent: textOf(agent) };
    } catch {
      return { model: "default", agent: "" };
    }
  }

  choose(choice) {
    try {
      this.#storage.setItem(CHOICE, JSON.stringify(choice));
    } catch {
      // The choice then applies to this page only.
    }
  }

  #note({ id, title, updated }) {
    this.#titles.set(id, { id, title, updated });
  }
}

function openStore() {
  try {
    const probe = `${SHELF}?`;
    localStorage.setItem(probe, "");
    localStorage.removeItem(probe);
    return new ConversationStore(localStorage);
  } catch (error) {
    // A full storage can still be read, and items deleted.
    return error?.name === "QuotaExceededError" ? new ConversationStore(localStorage) : new ConversationStore(new PageStorage());
  }
}
