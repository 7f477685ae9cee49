import assert from "node:assert/strict";
import test from "node:test";
import { partsIn, plain } from "./parts.mjs";

const { ConversationStore, newConversation, newQuestion, newAnswer, titleOf, turnsOf, asMarkdown, fileNameOf, readConversation, isElsewhere, MOST_CONVERSATIONS } = partsIn();

// A browser's storage with room for so many characters.
class Storage {
  constructor(room = Infinity) {
    this.room = room;
    this.items = new Map();
  }
  get length() { return this.items.size; }
  key(index) { return [...this.items.keys()][index] ?? null; }
  getItem(key) { return this.items.get(key) ?? null; }
  removeItem(key) { this.items.delete(key); }
  setItem(key, value) {
    const used = [...this.items].reduce((sum, [name, text]) => sum + (name === key ? 0 : name.length + text.length), 0);
    if (used + key.length + value.length > this.room) throw new DOMException("full", "QuotaExceededError");
    this.items.set(key, value);
  }
}

function conversation(title, updated, messages = [newQuestion(title)]) {
  return { ...newConversation(updated), title, messages };
}
const answered = (content, state = "complete") => ({ ...newAnswer(), content, state });

test("what is kept is found again, newest first, by another tab too", () => {
  const storage = new Storage();
  const store = new ConversationStore(storage);
  const [old, young] = [conversation("old", 1), conversation("young", 2, [newQuestion("a"), answered("b")])];
  assert.ok(store.keep(old) && store.keep(young));
  const other = new ConversationStore(storage);
  assert.deepEqual(plain(other.list().map(({ title }) => title)), ["young", "old"]);
  assert.deepEqual(plain(other.open(young.id)), plain(young));
  other.remove(young.id);
  store.refresh();
  assert.deepEqual(plain(store.list().map(({ title }) => title)), ["old"]);
  assert.equal(store.open(young.id), null);
});

test("the oldest beyond the bound makes place", () => {
  const store = new ConversationStore(new Storage());
  for (let count = 0; count < MOST_CONVERSATIONS + 3; count += 1) store.keep(conversation(`c${count}`, count));
  const titles = store.list().map(({ title }) => title);
  assert.equal(titles.length, MOST_CONVERSATIONS);
  assert.equal(titles.at(-1), "c3");
});

test("a full storage is reported, and nothing is lost", () => {
  const storage = new Storage(2000);
  const store = new ConversationStore(storage);
  assert.ok(store.keep(conversation("small", 1)));
  const large = conversation("large", 2, [newQuestion("x".repeat(3000))]);
  assert.equal(store.keep(large), false);
  assert.deepEqual(plain(store.list().map(({ title }) => title)), ["small"]);
  store.choose({ model: "m".repeat(3000), agent: "" });
  assert.deepEqual(plain(store.choice()), { model: "default", agent: "" });
});

test("what other programs left in the storage does no harm", () => {
  const storage = new Storage();
  const good = conversation("good", 1);
  new ConversationStore(storage).keep(good);
  const strange = ["", "null", "7", "{", "[]", '{"messages":7}', '{"messages":[null]}', '{"messages":[{"role":"robot"}]}'];
  strange.forEach((text, index) => storage.setItem(`hob-chat:${index}`, text));
  storage.setItem("somebody-else", "x");
  storage.setItem("hob-chat-choice", "{");
  const store = new ConversationStore(storage);
  assert.deepEqual(plain(store.list().map(({ title }) => title)), ["good"]);
  assert.deepEqual(plain(store.choice()), { model: "default", agent: "" });
  assert.deepEqual(plain(readConversation("x", '{"messages":[{"role":"user","content":{}}],"title":7,"updated":"soon"}')),
    { id: "x", title: "", updated: 0, model: "default", agent: "", messages: [{ role: "user", content: "" }] });
});

test("an answer that was under way when the page was closed is no whole answer", () => {
  const storage = new Storage();
  const store = new ConversationStore(storage);
  const kept = conversation("a", 1, [newQuestion("a"), { ...newAnswer(), content: "half" }]);
  store.keep(kept);
  const { state, trouble, content } = store.open(kept.id).messages[1];
  assert.deepEqual([state, trouble, content], ["broken", "The page was closed before the answer ended.", "half"]);
});

test("the rating of an answer is saved with it", () => {
  const store = new ConversationStore(new Storage());
  const kept = conversation("a", 1, [newQuestion("a"), { ...answered("b"), id: "chatcmpl-1", rating: "good" }]);
  store.keep(kept);
  assert.deepEqual(plain(store.open(kept.id)), plain(kept));
});

test("an answer that another tab is writing is neither broken nor this tab's", () => {
  const now = 1_000_000_000;
  const read = (alive) => {
    const kept = conversation("a", 1, [newQuestion("a"), { ...newAnswer(), content: "half", alive }]);
    return readConversation("x", JSON.stringify(kept), now);
  };
  for (const alive of [now, now - 60_000, now + 1000]) {
    const fresh = read(alive);
    assert.deepEqual([fresh.messages[1].state, fresh.messages[1].trouble, isElsewhere(fresh)], ["elsewhere", "", true]);
  }
  for (const alive of [0, now - 91_000, "soon", undefined]) {
    const stale = read(alive);
    assert.deepEqual([stale.messages[1].state, isElsewhere(stale)], ["broken", false], String(alive));
  }
  assert.match(asMarkdown(read(now)), /half\n\n\*Still being answered\.\*/);
});

test("the model hears whole turns", () => {
  const messages = [
    newQuestion("one"), answered("", "broken"), newQuestion("two"), answered("hal", "stopped"), newQuestion("three"), newAnswer(),
  ];
  const heard = [{ role: "user", content: "two" }, { role: "assistant", content: "hal" }, { role: "user", content: "three" }];
  assert.deepEqual(plain(turnsOf(messages)), heard);
  assert.deepEqual(plain(turnsOf(messages.slice(0, -1))), heard);
  assert.deepEqual(plain(turnsOf([newQuestion("only")])), [{ role: "user", content: "only" }]);
});

test("a conversation has the name of its first question, and is exported as Markdown", () => {
  assert.equal(titleOf("  Why is\tthe sky blue?\nAnd why"), "Why is the sky blue?");
  assert.equal(titleOf("👋".repeat(100)), `${"👋".repeat(60)}…`);
  const kept = conversation("Why is the sky blue?", 1, [
    newQuestion("Why is the sky blue?"), { ...answered("Because *air*…", "stopped"), model: "qwen3:8b" }, newQuestion("Go on"), answered("…scatters."),
  ]);
  assert.equal(asMarkdown(kept), `# Why is the sky blue?

## You

Why is the sky blue?

## Hob (qwen3:8b)

Because *air*…

*Stopped here.*

## You

Go on

## Hob

…scatters.
`);
  assert.equal(fileNameOf(kept), "why-is-the-sky-blue.md");
  assert.equal(fileNameOf(conversation("../../etc/passwd", 1)), "etc-passwd.md");
  assert.equal(fileNameOf(conversation("", 1)), "conversation.md");
});
