// The turns of a conversation are a tree: a turn is a question with its answer, and turns with the same parent are branches. Knows nothing of
// the page and the server.

const LONGEST_TITLE = 60;

// From the first turn to this one.
function pathTo(turn) {
  const path = [];
  for (let at = turn; at !== null; at = at.parent) path.push(at);
  return path.reverse();
}

// The turn and those beside it, oldest first.
const branchesOf = (turns, turn) => turns.filter((one) => one.parent === turn.parent);

// The end of the branch that a turn begins, along the newest turns.
function latestBelow(turns, turn) {
  let at = turn;
  for (;;) {
    const next = turns.findLast((one) => one.parent === at);
    if (next === undefined) return at;
    at = next;
  }
}

// What the server listed, as the page's turns. Turns that the page has already stay the same objects; those that are not saved yet, or are being
// answered here, keep what the page knows. Returns the turns, and those whose answer changed.
function mergedTurns(turns, listed, isRunning) {
  const known = new Map(turns.filter(({ id }) => id !== null).map((turn) => [turn.id, turn]));
  const found = new Map();
  const changed = [];
  for (const entry of listed) {
    const id = String(entry.id);
    const turn = known.get(id) ?? newTurn(null, readQuestion(entry.question));
    turn.id = id;
    found.set(id, turn);
    if (isRunning(turn)) continue;
    const answer = entry.answer === null || entry.answer === undefined ? null : readSavedAnswer(entry.answer);
    // Where only a part was saved, the page keeps the whole.
    if (known.has(id) && JSON.stringify(fittedForm(turn.answer)) === JSON.stringify(savedForm(answer))) continue;
    // What the page knows, but could not save yet, is newer.
    if (known.has(id) && answer === null && turn.answer !== null) continue;
    turn.answer = answer;
    changed.push(turn);
  }
  for (const { id, parent } of listed) found.get(String(id)).parent = found.get(String(parent)) ?? null;
  return { turns: [...found.values(), ...turns.filter(({ id }) => id === null)], changed };
}

const newTurn = (parent, question) => ({ id: null, parent, question, answer: null, note: "" });

const textOf = (value) => (typeof value === "string" ? value : "");
const listOf = (value) => (Array.isArray(value) ? value : []);

function readQuestion(question) {
  const attachments = listOf(question?.attachments).map(({ name, kind, content }) => ({ name: textOf(name), kind: kind === "image" ? "image" : "text", content: textOf(content) }));
  return { text: textOf(question?.text), attachments };
}

// An answer of the server, with the fields that only a running answer has.
function readSavedAnswer(answer) {
  return {
    ...newAnswer(),
    text: textOf(answer.text),
    reasoning: textOf(answer.reasoning),
    model: textOf(answer.model),
    sources: listOf(answer.sources).map(readSource),
    steps: listOf(answer.steps).map((step) => ({ id: "", ...readStep(step), success: step?.success === true })),
    usage: answer.usage ?? null,
    ending: ["complete", "stopped", "cut", "failed"].includes(answer.ending) ? answer.ending : "failed",
    error: textOf(answer.error),
  };
}

// The same answer as it is saved.
function savedForm(answer) {
  if (answer === null) return null;
  const { text, reasoning, model, sources, steps, usage, ending, error } = answer;
  return {
    text,
    reasoning: reasoning === "" ? null : reasoning,
    model,
    sources: sources.map(({ document, passage, score }) => ({ document, passage, score })),
    steps: steps.map(({ tool, arguments: input, result, success }) => ({ tool, arguments: input, result, success: success === true })),
    usage: usage && { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens, seconds: usage.seconds },
    ending,
    error: error === "" ? null : error,
  };
}

function titleOf(question) {
  const line = question.trim().split("\n", 1)[0].replace(/\s+/g, " ");
  const letters = Array.from(line);
  return letters.length > LONGEST_TITLE ? `${letters.slice(0, LONGEST_TITLE).join("").trimEnd()}…` : line;
}

// The question with its files, as the model reads it. The server knows a file by these marks (`file_text` in crates/core/src/message.rs): what it says restricts an agent. Pictures become parts only where the model can see them.
function contentOf({ text, attachments }, { pictures }) {
  const marked = (name, content) => `File ${name}:\n\n${content}\n\nEnd of file ${name}.`;
  const files = attachments.map(({ name, kind, content }) => {
    // A line break would end the marks.
    const shown = name.replace(/\p{Cc}/gu, " ");
    if (kind === "text") return marked(shown, content);
    return pictures ? "" : marked(shown, "(a picture, which this model cannot see)");
  });
  const whole = [...files, text].filter((part) => part !== "").join("\n\n");
  const images = pictures ? attachments.filter(({ kind }) => kind === "image") : [];
  if (images.length === 0) return whole;
  const parts = images.map(({ content }) => ({ type: "image_url", image_url: { url: content } }));
  return whole === "" ? parts : [{ type: "text", text: whole }, ...parts];
}

// The messages for the model. A question without an answer is skipped, except for the last: many chat templates require alternating turns.
function messagesFor(path, system, { pictures }) {
  const messages = system ? [{ role: "system", content: system }] : [];
  path.forEach((turn, index) => {
    const isLast = index === path.length - 1;
    if (!isLast && (turn.answer === null || turn.answer.text === "")) return;
    messages.push({ role: "user", content: contentOf(turn.question, { pictures }) });
    if (!isLast) messages.push({ role: "assistant", content: turn.answer.text });
  });
  return messages;
}
