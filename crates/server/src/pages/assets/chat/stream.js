// Reads a streamed answer: server-sent events, split into packets anywhere. Knows nothing of the page.

const LONGEST_LINE = 4 << 20;
const LONGEST_ANSWER = 2 << 20;
const LONGEST_STEP = 20_000;
const MOST_STEPS = 200;
const MOST_SOURCES = 50;
const MOST_WARNINGS = 8;
const SHORTEST_TIME_MS = 100;

// Why there is no whole answer. `kind` says what can be done about it: "key", "away", "refused" or "broken".
class ChatError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

// Text in, events out: `{ comment }`, or `{ name, data }`. An event ends with a blank line.
class EventLines {
  #rest = "";
  #returned = false;
  #name = "";
  #data = [];

  push(piece) {
    if (piece === "") return [];
    // A line may end with a return, a newline, or both; the two may come in different packets.
    if (this.#returned && piece.startsWith("\n")) piece = piece.slice(1);
    const lines = (this.#rest + piece).split(/\r\n|\n|\r/);
    this.#returned = piece.endsWith("\r");
    this.#rest = lines.pop();
    if (this.#rest.length > LONGEST_LINE) throw new ChatError("broken", "The answer contains a line that is too long.");
    return lines.flatMap((line) => this.#line(line) ?? []);
  }

  #line(line) {
    if (line === "") {
      const event = { name: this.#name || "message", data: this.#data.join("\n") };
      const empty = this.#data.length === 0;
      this.#name = "";
      this.#data = [];
      return empty ? null : event;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (colon === 0) return { comment: value };
    if (field === "data") this.#data.push(value);
    if (field === "event") this.#name = value;
    return null;
  }
}

// An answer that is being written. Behind `ending` stands what only this page knows of it.
const newAnswer = () =>
  ({ text: "", reasoning: "", model: "", sources: [], steps: [], usage: null, ending: "running", error: "", completion: "", why: "", warnings: [], finish: "" });

// Adds an event to the answer that is being written.
function addEvent(answer, { comment, name, data }) {
  if (comment !== undefined) return hearWarning(answer, comment);
  let chunk;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new ChatError("broken", "The answer broke off: a part of it cannot be read.");
  }
  if (name === "error" || chunk?.error) {
    throw new ChatError("broken", String(chunk?.error?.message ?? "The answer broke off."));
  }
  if (typeof chunk?.id === "string") answer.completion = chunk.id;
  if (typeof chunk?.model === "string") answer.model = chunk.model;
  const choice = chunk?.choices?.[0];
  if (typeof choice?.delta?.content === "string") answer.text += choice.delta.content;
  if (typeof choice?.delta?.reasoning_content === "string") answer.reasoning += choice.delta.reasoning_content;
  if (typeof choice?.finish_reason === "string") answer.finish = choice.finish_reason;
  if (chunk?.step) hearStep(answer, chunk.step);
  if (Array.isArray(chunk?.sources)) answer.sources = chunk.sources.slice(0, MOST_SOURCES).map(readSource);
  if (chunk?.usage) answer.usage = readUsage(chunk.usage);
  if (answer.text.length + answer.reasoning.length > LONGEST_ANSWER) {
    throw new ChatError("broken", "The answer is too long for this page; the rest is missing.");
  }
}

const wholeNumber = (value) => (Number.isInteger(value) && value >= 0 ? value : 0);
// An engine that does not count says zero.
const readUsage = (usage) => wholeNumber(usage.completion_tokens) === 0 ? null :
  ({ prompt_tokens: wholeNumber(usage.prompt_tokens), completion_tokens: wholeNumber(usage.completion_tokens), seconds: 0 });
const readSource = (source) =>
  ({ document: String(source?.document ?? ""), passage: String(source?.passage ?? ""), score: Number(source?.score) || 0 });

// Arguments and results are text or JSON.
const stepText = (value) =>
  (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value)).slice(0, LONGEST_STEP);
const readStep = (step) => ({ tool: String(step?.tool ?? ""), arguments: stepText(step?.arguments), result: stepText(step?.result) });

// A step of an agent comes twice: when it begins, and with its result.
function hearStep(answer, step) {
  const id = String(step.id ?? "");
  if (!("success" in step)) {
    if (answer.steps.length < MOST_STEPS) answer.steps.push({ id, ...readStep(step), success: null });
    else warn(answer, ["steps-omitted"]);
    return;
  }
  const begun = answer.steps.find((one) => one.id === id && one.success === null);
  if (begun) Object.assign(begun, { result: stepText(step.result), success: step.success === true });
}

// Warnings come as comments: `hob WARNING {"warning": …}`. Other comments are ignored.
function hearWarning(answer, comment) {
  const [, data] = /^hob WARNING (.*)$/.exec(comment) ?? [];
  if (data === undefined) return;
  try {
    warn(answer, [String(JSON.parse(data)?.warning ?? "")]);
  } catch {
    // A warning that cannot be read.
  }
}

// Warnings from before the first word are in the headers, later ones in comments.
function warn(answer, names) {
  for (const name of names) {
    if (name !== "" && !answer.warnings.includes(name) && answer.warnings.length < MOST_WARNINGS) answer.warnings.push(name);
  }
}

// Reads to `[DONE]`, into `answer`. Throws if the answer is not complete.
async function readAnswer(body, answer, changed, began = Date.now()) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events = new EventLines();
  let first = null; // when the first words came
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new ChatError("broken", "The answer broke off before its end.");
      for (const event of events.push(decoder.decode(value, { stream: true }))) {
        if (event.data === "[DONE]") return noteTime(answer, first ?? began, began);
        addEvent(answer, event);
      }
      if (first === null && answer.text + answer.reasoning !== "") first = Date.now();
      changed();
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Tokens per second count from the first words. An answer in one piece has no such time, so there it is the whole time.
function noteTime(answer, first, began) {
  if (answer.usage === null) return;
  const now = Date.now();
  answer.usage.seconds = (now - first >= SHORTEST_TIME_MS ? now - first : now - began) / 1000;
}

// Asks, and reads the answer. Throws what `signal` throws, or a `ChatError`.
async function ask(request, answer, { headers, signal, changed }) {
  const began = Date.now();
  let response = null;
  try {
    response = await fetch("v1/chat/completions", {
      method: "POST",
      cache: "no-store",
      credentials: "same-origin",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
      signal,
    });
    if (!response.ok) throw await refusal(response);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      throw new ChatError("refused", "The server at this address is not Hob: it sent no stream.");
    }
    answer.why = response.headers.get("x-hob-model-reason") ?? "";
    warn(answer, (response.headers.get("x-hob-warning") ?? "").split(",").map((name) => name.trim()));
    await readAnswer(response.body, answer, changed, began);
  } catch (error) {
    if (signal.aborted || error instanceof ChatError) throw error;
    throw new ChatError("away", response ? "The connection broke before the answer ended." : "Hob does not answer.");
  }
}

async function refusal(answer) {
  const body = await answer.json().catch(() => null);
  const told = body?.error?.message ?? body?.detail;
  const wait = Number(answer.headers.get("retry-after"));
  const advice = wait > 0 ? ` Try again in ${wait} s.` : "";
  return new ChatError(answer.status === 401 ? "key" : "refused", `${told ?? `The server answered with status ${answer.status}`}${/[.!?]$/.test(told ?? "") ? "" : "."}${advice}`);
}
