import assert from "node:assert/strict";
import test from "node:test";
import { partsIn, plain } from "./parts.mjs";

const { newTurn, newAnswer, pathTo, branchesOf, latestBelow, mergedTurns, readSavedAnswer, savedForm, fittedForm, cutNote, detailBytes, MOST_SAVED_TEXT, MOST_SAVED_DETAIL, titleOf, contentOf, messagesFor, asMarkdown, fileNameOf, oldConversations } = partsIn();

const asked = (text, attachments = []) => ({ text, attachments });
const answered = (text, ending = "complete") => ({ ...newAnswer(), text, ending });
function turn(parent, text, answer = answered(`${text}!`)) {
  return { ...newTurn(parent, asked(text)), answer };
}
const texts = (turns) => Array.from(turns, ({ question }) => question.text);
const pictures = { pictures: true };

// a → b → c, and beside b: b2 → d
function family() {
  const a = turn(null, "a");
  const b = turn(a, "b");
  const c = turn(b, "c");
  const b2 = turn(a, "b2");
  const d = turn(b2, "d");
  return { a, b, c, b2, d, turns: [a, b, c, b2, d] };
}

test("a path leads from the first turn to the last", () => {
  const { c, d } = family();
  assert.deepEqual(texts(pathTo(c)), ["a", "b", "c"]);
  assert.deepEqual(texts(pathTo(d)), ["a", "b2", "d"]);
  assert.deepEqual(plain(pathTo(null)), []);
});

test("branches have the same parent, and end with their newest turn", () => {
  const { a, b, b2, c, d, turns } = family();
  assert.deepEqual(texts(branchesOf(turns, b2)), ["b", "b2"]);
  assert.deepEqual(texts(branchesOf(turns, a)), ["a"]);
  assert.equal(latestBelow(turns, b), c);
  assert.equal(latestBelow(turns, b2), d);
  assert.equal(latestBelow(turns, a), d);
  assert.equal(latestBelow(turns, c), c);
});

test("what the server lists is merged into what the page has", () => {
  const listed = (id, parent, text, answer = null) => ({ id, parent, question: asked(text), answer });
  const first = mergedTurns([], [listed("1", null, "a", savedForm(answered("A"))), listed("2", "1", "b")], () => false);
  assert.deepEqual(texts(first.turns), ["a", "b"]);
  const [a, b] = first.turns;
  assert.equal(b.parent, a);
  assert.equal(b.answer, null);

  // Nothing changed: the same objects, and nothing to show again.
  const again = mergedTurns(first.turns, [listed("1", null, "a", savedForm(answered("A"))), listed("2", "1", "b")], () => false);
  assert.deepEqual([again.turns[0] === a, again.turns[1] === b, again.changed.length], [true, true, 0]);

  // Another tab answered, and this one has a turn that is not saved yet.
  const own = turn(b, "own");
  const later = mergedTurns([...again.turns, own], [listed("1", null, "a", savedForm(answered("A"))), listed("2", "1", "b", savedForm(answered("B")))], () => false);
  assert.deepEqual(texts(later.turns), ["a", "b", "own"]);
  assert.deepEqual([later.changed.length, later.changed[0] === b, b.answer.text], [1, true, "B"]);

  // An answer that is being written here is not touched.
  b.answer = { ...newAnswer(), text: "hal" };
  mergedTurns(later.turns, [listed("1", null, "a"), listed("2", "1", "b")], (one) => one === b);
  assert.equal(b.answer.text, "hal");
  // Neither is one that is not saved yet.
  assert.equal(a.answer.text, "A");
});

test("an answer is saved and read without a loss", () => {
  const answer = {
    ...answered("It is 391."), reasoning: "Hm.", model: "m", sources: [{ document: "/a.md", passage: "p", score: 0.5 }],
    steps: [{ id: "", tool: "calculator", arguments: "{}", result: "391", success: true }], usage: { prompt_tokens: 3, completion_tokens: 2, seconds: 0.5 },
  };
  assert.deepEqual(plain(readSavedAnswer(savedForm(answer))), plain(answer));
  // What came from elsewhere does no harm.
  const strange = readSavedAnswer({ text: 7, sources: [null], steps: [{ arguments: { a: 1 } }], ending: "soon" });
  assert.deepEqual([strange.text, strange.ending, strange.steps[0].arguments, strange.sources[0].document], ["", "failed", '{"a":1}', ""]);
});

test("the model hears whole turns", () => {
  const one = turn(null, "one", answered("", "failed"));
  const two = turn(one, "two", answered("hal", "stopped"));
  const lost = turn(two, "lost", null);
  const three = turn(lost, "three", newAnswer());
  const heard = [{ role: "user", content: "two" }, { role: "assistant", content: "hal" }, { role: "user", content: "three" }];
  assert.deepEqual(plain(messagesFor(pathTo(three), null, pictures)), heard);
  assert.deepEqual(plain(messagesFor(pathTo(one), "Be brief.", pictures)), [{ role: "system", content: "Be brief." }, { role: "user", content: "one" }]);
});

test("files are part of the question, and pictures only for a model that sees", () => {
  const url = "data:image/png;base64,AAAA";
  const file = { name: "a.txt", kind: "text", content: "42" };
  const image = { name: "a.png", kind: "image", content: url };
  const text = "File a.txt:\n\n42\n\nEnd of file a.txt.\n\nWhat is it?";
  const part = { type: "image_url", image_url: { url } };
  assert.equal(contentOf(asked("What is it?", [file]), pictures), text);
  assert.deepEqual(plain(contentOf(asked("What is it?", [file, image]), pictures)), [{ type: "text", text }, part]);
  assert.deepEqual(plain(contentOf(asked("", [image]), pictures)), [part]);
  assert.equal(contentOf(asked("What?", [image]), { pictures: false }), "File a.png:\n\n(a picture, which this model cannot see)\n\nEnd of file a.png.\n\nWhat?");
});

test("a conversation has the name of its first question, and is exported as Markdown", () => {
  assert.equal(titleOf("  Why is\tthe sky blue?\nAnd why"), "Why is the sky blue?");
  assert.equal(titleOf("👋".repeat(100)), `${"👋".repeat(60)}…`);
  const first = { ...newTurn(null, asked("Why is the sky blue?", [{ name: "sky.png", kind: "image", content: "" }])), answer: { ...answered("Because *air*…", "stopped"), model: "qwen3:8b" } };
  const second = turn(first, "Go on", answered("…scatters."));
  assert.equal(asMarkdown("Why is the sky blue?", pathTo(turn(second, "More", null))), `# Why is the sky blue?

## You

*With sky.png.*

Why is the sky blue?

## Hob (qwen3:8b)

Because *air*…

*Stopped here.*

## You

Go on

## Hob

…scatters.

## You

More
`);
  assert.equal(fileNameOf("Why is the sky blue?"), "why-is-the-sky-blue.md");
  assert.equal(fileNameOf("../../etc/passwd"), "etc-passwd.md");
  assert.equal(fileNameOf(""), "conversation.md");
});

test("conversations of earlier versions are read, oldest first, and what is not one is left alone", () => {
  const items = new Map();
  const storage = { get length() { return items.size; }, key: (index) => [...items.keys()][index] ?? null, getItem: (key) => items.get(key) ?? null };
  const keep = (key, updated, messages) => items.set(key, JSON.stringify({ title: key, updated, model: "default", agent: "react", messages }));
  keep("hob-chat:young", 2, [{ role: "user", content: "q" }]);
  keep("hob-chat:old", 1, [
    { role: "user", content: "q1" }, { role: "assistant", content: "a1", state: "complete", finish: "length", model: "m", steps: [{ tool: "t", input: "{}", ended: "good" }] },
    { role: "user", content: "q2" }, { role: "assistant", content: "ha", state: "running" },
  ]);
  const strange = ["", "null", "7", "{", "[]", '{"messages":7}', '{"messages":[]}', '{"messages":[null]}', '{"messages":[{"role":"robot"}]}'];
  strange.forEach((text, index) => items.set(`hob-chat:${index}`, text));
  items.set("hob-chat-choice", "{}");
  const found = oldConversations(storage);
  assert.deepEqual(Array.from(found, ([key]) => key), ["hob-chat:old", "hob-chat:young"]);
  const [, { title, settings, turns }] = found[0];
  assert.deepEqual(plain([title, settings]), ["hob-chat:old", { model: null, agent: "react" }]);
  assert.deepEqual(Array.from(turns, ({ question, answer }) => [question.text, answer.text, answer.ending, answer.error]), [
    ["q1", "a1", "cut", ""], ["q2", "ha", "failed", "The page was closed before the answer ended."],
  ]);
  assert.equal(turns[1].parent, turns[0]);
  assert.deepEqual(plain(turns[0].answer.steps), [{ id: "", tool: "t", arguments: "{}", result: "", success: true }]);
});

test("an answer that is too long to save is cut between characters, and says so", () => {
  const long = { ...answered("漢".repeat(MOST_SAVED_TEXT)), error: "Cut here." };
  const saved = fittedForm(long);
  const bytes = new TextEncoder().encode(saved.text).length;
  assert.ok(bytes <= MOST_SAVED_TEXT && bytes > MOST_SAVED_TEXT - 4 && /^漢+$/.test(saved.text));
  assert.equal(saved.ending, "cut");
  assert.equal(saved.error, "Cut here. Only the beginning of this answer is saved, because it is too long.");
  assert.equal(cutNote(long), "Only the beginning of this answer is saved, because it is too long.");
  assert.equal(cutNote(answered("short")), "");
  assert.equal(long.text.length, MOST_SAVED_TEXT);
  // What comes back is not cut again.
  const back = readSavedAnswer(plain(saved));
  assert.deepEqual(plain(fittedForm(back)), plain(saved));
});

test("the steps and thoughts of a long run fit, whatever they contain", () => {
  const text = "\u0001".repeat(20_000);
  const step = { id: "", tool: "t".repeat(60), arguments: text, result: text, success: true };
  const run = { ...answered("done"), reasoning: "r".repeat(2 << 20), steps: Array(200).fill(step) };
  const saved = fittedForm(run);
  assert.ok(detailBytes(saved) <= MOST_SAVED_DETAIL, String(detailBytes(saved)));
  assert.equal(saved.steps.length, 200);
  assert.match(saved.error, /^Its steps and thoughts are saved in part/);
  assert.equal(saved.ending, "complete");
});

test("the page keeps a whole answer of which the server has a part", () => {
  const turn = { ...newTurn(null, asked("a")), id: "1", answer: answered("x".repeat(MOST_SAVED_TEXT + 1)) };
  const listed = [{ id: "1", parent: null, question: { text: "a" }, answer: plain(fittedForm(turn.answer)) }];
  const { turns, changed } = mergedTurns([turn], listed, () => false);
  assert.equal(changed.length, 0);
  assert.equal(turns[0].answer.text.length, MOST_SAVED_TEXT + 1);
});
