// Conversations, kept in this browser and nowhere else. What lies there may be of another version or another program, so it is
// read with care.

const SHELF = "hob-chat:";
const CHOICE = "hob-chat-choice";
const MOST_CONVERSATIONS = 100;
const LONGEST_TITLE = 60;
const FRESH_MS = 90_000; // browsers let a tab in the background speak once a minute

function newConversation(now) {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(9)), (byte) => byte.toString(36).padStart(2, "0")).join("");
  return { id, title: "", updated: now, model: "default", agent: "", messages: [] };
}

const newQuestion = (content) => ({ role: "user", content });
const newAnswer = () =>
  ({ role: "assistant", id: "", content: "", thoughts: "", steps: [], model: "", why: "", warnings: [], finish: "", state: "running", trouble: "", rating: "", alive: 0 });

// Whether another tab is writing the last answer. Only that tab keeps the conversation meanwhile.
const isElsewhere = ({ messages }) => messages.at(-1)?.state === "elsewhere";

function titleOf(question) {
  const line = question.trim().split("\n", 1)[0].replace(/\s+/g, " ");
  const letters = Array.from(line);
  return letters.length > LONGEST_TITLE ? `${letters.slice(0, LONGEST_TITLE).join("").trimEnd()}…` : line;
}

// What the model is told of the conversation. A question that got no answer is left out with it: templates of many models
// insist on turns.
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

// --- reading what lies on the shelf ---

const textOf = (value) => (typeof value === "string" ? value : "");

// An answer under way is alive as long as the tab that writes it says so.
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

// Stands in where the browser forbids storage: things are kept as long as the page.
class Passing {
  #items = new Map();
  get length() { return this.#items.size; }
  key(index) { return [...this.#items.keys()][index] ?? null; }
  getItem(key) { return this.#items.get(key) ?? null; }
  setItem(key, value) { this.#items.set(key, value); }
  removeItem(key) { this.#items.delete(key); }
}

// The conversations, one item of the storage each, so that two tabs do not write over each other's.
class Shelf {
  #storage;
  #titles = new Map();

  constructor(storage) {
    this.#storage = storage;
    this.refresh();
  }

  // Looks at the storage again; another tab may have been there.
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

  // Whether there was room. The oldest beyond the bound makes place.
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
      // The choice then holds for this page.
    }
  }

  #note({ id, title, updated }) {
    this.#titles.set(id, { id, title, updated });
  }
}

function openShelf() {
  try {
    const probe = `${SHELF}?`;
    localStorage.setItem(probe, "");
    localStorage.removeItem(probe);
    return new Shelf(localStorage);
  } catch (error) {
    // Full is not forbidden: what lies there can still be read, and deleted.
    return error?.name === "QuotaExceededError" ? new Shelf(localStorage) : new Shelf(new Passing());
  }
}
