// Reads a streamed answer: server-sent events, split into packets anywhere. Knows nothing of the page.

const LONGEST_LINE = 4 << 20;
const LONGEST_ANSWER = 2 << 20;
const MOST_STEPS = 200;
const MOST_WARNINGS = 8;

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

// Adds an event to the message that is being written.
function addEvent(message, { comment, name, data }) {
  if (comment !== undefined) return hearStep(message, comment);
  let chunk;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new ChatError("broken", "The answer broke off: a part of it cannot be read.");
  }
  if (name === "error" || chunk?.error) {
    throw new ChatError("broken", String(chunk?.error?.message ?? "The answer broke off."));
  }
  if (typeof chunk?.id === "string") message.id = chunk.id;
  if (typeof chunk?.model === "string") message.model = chunk.model;
  const choice = chunk?.choices?.[0];
  if (typeof choice?.delta?.content === "string") message.content += choice.delta.content;
  if (typeof choice?.delta?.reasoning_content === "string") message.thoughts += choice.delta.reasoning_content;
  if (typeof choice?.finish_reason === "string") message.finish = choice.finish_reason;
  if (message.content.length + message.thoughts.length > LONGEST_ANSWER) {
    throw new ChatError("broken", "The answer is too long for this page; the rest is missing.");
  }
}

// Steps of an agent come as comments: `hob TOOL_CALL_START {"tool": …}`. Other comments are ignored.
function hearStep(message, comment) {
  const [, event, data] = /^hob (TOOL_CALL_START|TOOL_CALL_END|WARNING) (.*)$/.exec(comment) ?? [];
  if (!event) return;
  let told;
  try {
    told = JSON.parse(data);
  } catch {
    return;
  }
  if (event === "WARNING") return warn(message, [String(told?.warning ?? "")]);
  const tool = String(told?.tool ?? "");
  if (event === "TOOL_CALL_START") {
    if (message.steps.length < MOST_STEPS) {
      message.steps.push({ tool, input: String(told?.arguments ?? "").slice(0, 500), ended: null, seconds: 0 });
    }
    return;
  }
  const step = message.steps.find((one) => one.tool === tool && one.ended === null);
  if (step) {
    step.ended = told?.success === true ? "good" : "bad";
    step.seconds = Number(told?.latency) || 0;
  }
}

// Warnings from before the first word are in the headers, later ones in steps.
function warn(message, names) {
  for (const name of names) {
    if (name !== "" && !message.warnings.includes(name) && message.warnings.length < MOST_WARNINGS) message.warnings.push(name);
  }
}

// Reads to `[DONE]`, into `message`. Throws if the answer is not complete.
async function readAnswer(body, message, changed) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events = new EventLines();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new ChatError("broken", "The answer broke off before its end.");
      for (const event of events.push(decoder.decode(value, { stream: true }))) {
        if (event.data === "[DONE]") return;
        addEvent(message, event);
      }
      changed();
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Asks, and reads the answer into `message`. Throws what `signal` throws, or a `ChatError`.
async function ask(question, message, { headers, signal, changed }) {
  let answer = null;
  try {
    answer = await fetch("v1/chat/completions", {
      method: "POST",
      cache: "no-store",
      credentials: "same-origin",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ ...question, stream: true }),
      signal,
    });
    if (!answer.ok) throw await refusal(answer);
    if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) {
      throw new ChatError("refused", "The server at this address is not Hob: it sent no stream.");
    }
    message.why = answer.headers.get("x-hob-model-reason") ?? "";
    warn(message, (answer.headers.get("x-hob-warning") ?? "").split(",").map((name) => name.trim()));
    await readAnswer(answer.body, message, changed);
  } catch (error) {
    if (signal.aborted || error instanceof ChatError) throw error;
    throw new ChatError("away", answer ? "The connection broke before the answer ended." : "Hob does not answer.");
  }
}

async function refusal(answer) {
  const body = await answer.json().catch(() => null);
  const told = body?.error?.message ?? body?.detail;
  const wait = Number(answer.headers.get("retry-after"));
  const advice = wait > 0 ? ` Try again in ${wait} s.` : "";
  return new ChatError(answer.status === 401 ? "key" : "refused", `${told ?? `The server answered with status ${answer.status}`}${/[.!?]$/.test(told ?? "") ? "" : "."}${advice}`);
}
