// How much of an answer is saved. One that is too long is saved in part, and says so. Knows nothing of the page and the server.

// Bytes that the server saves of the text of an answer, and of its thoughts, sources and steps.
const MOST_SAVED_TEXT = 1 << 20;
const MOST_SAVED_DETAIL = 4 << 20;
// Bytes of each where all of them do not fit. Two hundred steps of this length always do.
const SAVED_STEP = 1500;
const SAVED_THOUGHTS = 256 << 10;

const bytesOf = (text) => new TextEncoder().encode(text).length;
// No character has more than three bytes for each unit of its length, so most texts need not be counted.
const isLonger = (text, most) => text.length * 3 > most && bytesOf(text) > most;

// As many whole characters as fit.
function firstBytes(text, most) {
  if (!isLonger(text, most)) return text;
  const start = new TextEncoder().encode(text).subarray(0, most);
  return new TextDecoder().decode(start).replace(/\ufffd+$/, "");
}

// Bytes of the thoughts, the sources and the steps, as the server counts them.
function detailBytes({ reasoning, error, sources, steps }) {
  const texts = [reasoning ?? "", error ?? "", ...sources.flatMap(({ document, passage }) => [document, passage])];
  const quoted = steps.flatMap(({ tool, arguments: input, result }) => [tool, JSON.stringify(input), JSON.stringify(result)]);
  return [...texts, ...quoted].reduce((sum, text) => sum + bytesOf(text), 0);
}

// The answer as it is saved, cut where it is longer than what the server saves. What is cut says so.
function fittedForm(answer) {
  const form = savedForm(answer);
  if (form === null) return null;
  const notes = [];
  if (isLonger(form.text, MOST_SAVED_TEXT)) {
    notes.push("Only the beginning of this answer is saved, because it is too long.");
    form.text = firstBytes(form.text, MOST_SAVED_TEXT);
    if (form.ending === "complete") form.ending = "cut";
  }
  if (detailBytes(form) > MOST_SAVED_DETAIL) {
    notes.push("Its steps and thoughts are saved in part, because they are too long.");
    form.steps = form.steps.map((step) => ({ ...step, arguments: firstBytes(step.arguments, SAVED_STEP), result: firstBytes(step.result, SAVED_STEP) }));
    form.reasoning = form.reasoning === null ? null : firstBytes(form.reasoning, SAVED_THOUGHTS);
  }
  if (notes.length > 0) form.error = [form.error, ...notes].filter(Boolean).join(" ");
  return form;
}

// What is to be said of an answer that is saved in part; empty for one that is saved as a whole.
function cutNote(answer) {
  const [whole, saved] = [savedForm(answer), fittedForm(answer)];
  return whole.error === saved.error ? "" : saved.error.slice(whole.error?.length ?? 0).trim();
}
