import assert from "node:assert/strict";
import test from "node:test";
import { partsIn, plain } from "./parts.mjs";

const { EventLines, newAnswer, addEvent, readAnswer, ChatError, LONGEST_LINE, LONGEST_ANSWER } = partsIn();

const chunk = (delta, finish = null) =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const event = (content) => `data: ${JSON.stringify(content)}\n\n`;
const WHOLE = [
  chunk({ role: "assistant" }), chunk({ reasoning_content: "Hm. " }),
  event({ choices: [{ index: 0, delta: {}, finish_reason: null }], step: { id: "c1", tool: "calculator", arguments: '{"expression":"17 * 23"}' } }),
  event({ choices: [{ index: 0, delta: {}, finish_reason: null }], step: { id: "c1", tool: "calculator", result: "391", success: true } }),
  chunk({ content: "Grüße, " }), chunk({ content: "世界 👋" }), chunk({}, "stop"),
  event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 }, sources: [{ document: "/a.md", passage: "p", score: 0.5 }] }),
  "data: [DONE]\n\n",
].join("");

function bodyOf(pieces) {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
}

async function read(bytes, size = bytes.length) {
  const message = newAnswer();
  const pieces = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
  await readAnswer(bodyOf(pieces), message, () => {});
  // How long it took depends on the machine.
  if (message.usage) message.usage.seconds = 0;
  return plain(message);
}
const bytesOf = (text) => new TextEncoder().encode(text);
const isChatError = (words) => (error) => error instanceof ChatError && error.kind === "broken" && words.test(error.message);

test("a whole answer has its words, its thoughts, its steps, its sources and its tokens", async () => {
  assert.deepEqual(await read(bytesOf(WHOLE)), {
    text: "Grüße, 世界 👋",
    reasoning: "Hm. ",
    model: "m",
    sources: [{ document: "/a.md", passage: "p", score: 0.5 }],
    steps: [{ id: "c1", tool: "calculator", arguments: '{"expression":"17 * 23"}', result: "391", success: true }],
    usage: { prompt_tokens: 3, completion_tokens: 2, seconds: 0 },
    ending: "running",
    error: "",
    completion: "chatcmpl-1",
    why: "",
    warnings: [],
    finish: "stop",
  });
});

test("two steps with one id end in their order, and a step without an end has no result", async () => {
  const step = (content) => event({ choices: [], step: { id: "c", tool: "t", ...content } });
  const { steps } = await read(bytesOf(step({ arguments: { a: 1 } }) + step({ arguments: "b" }) + step({ result: "1", success: false }) + WHOLE));
  assert.deepEqual(steps.slice(0, 2).map(({ arguments: input, result, success }) => [input, result, success]), [['{"a":1}', "1", false], ["b", "", null]]);
});

test("however packets split it, the answer is the same", async () => {
  for (const ends of ["\n", "\r\n", "\r"]) {
    const bytes = bytesOf(WHOLE.replaceAll("\n", ends));
    const expected = await read(bytesOf(WHOLE));
    for (const size of [1, 2, 3, 7, 64]) assert.deepEqual(await read(bytes, size), expected, `${JSON.stringify(ends)} ${size}`);
  }
});

test("a stream that ends without [DONE] is broken, wherever it is cut", async () => {
  const bytes = bytesOf(WHOLE);
  // The last two bytes end the line and the event.
  for (let end = 0; end < bytes.length - 1; end += 1) {
    await assert.rejects(read(bytes.slice(0, end)), isChatError(/broke off/), String(end));
  }
});

test("an error in the stream is shown in its own words, and nothing behind it counts", async () => {
  const error = 'data: {"error":{"message":"vllm ended its answer"}}\n\n';
  await assert.rejects(read(bytesOf(chunk({ content: "Hi" }) + error + "data: [DONE]\n\n")), isChatError(/^vllm ended its answer$/));
  await assert.rejects(read(bytesOf('event: error\ndata: {"message":"x"}\n\n')), isChatError(/broke off/));
});

test("what cannot be read is broken, and what is not ours is passed over", async () => {
  await assert.rejects(read(bytesOf('data: {"choices":\n\ndata: [DONE]\n\n')), isChatError(/cannot be read/));
  const odd = ': ping\n\n: hob WARNING {nonsense\n\nid: 7\nretry: 10\n\ndata: null\n\ndata: {"choices":[]}\n\n';
  assert.equal((await read(bytesOf(odd + WHOLE))).text, "Grüße, 世界 👋");
});

test("what there is to know of an answer comes in its head or on the way", async () => {
  const late = ': hob WARNING {"warning":"loop-stopped"}\n\n: hob WARNING {"warning":"tools-dropped"}\n\n: hob WARNING {}\n\n';
  const headers = { "content-type": "text/event-stream", "x-hob-warning": "tools-dropped, fallback-model" };
  const fetch = async () => new Response(late + WHOLE, { headers });
  const { ask, newAnswer: fresh } = partsIn({ fetch });
  const message = fresh();
  await ask({ model: "m" }, message, { headers: {}, signal: new AbortController().signal, changed: () => {} });
  assert.deepEqual(plain(message.warnings), ["tools-dropped", "fallback-model", "loop-stopped"]);
});

test("several data lines are one event", () => {
  assert.deepEqual(plain(new EventLines().push("data: a\ndata:b\n\n:c\n")), [{ name: "message", data: "a\nb" }, { comment: "c" }]);
});

test("a line or an answer without end is not kept in memory", async () => {
  const long = bytesOf(`data: ${"x".repeat(LONGEST_LINE)}`);
  await assert.rejects(read(long, 1 << 20), isChatError(/line that is too long/));
  const message = newAnswer();
  const piece = "x".repeat(1 << 16);
  const talk = () => {
    for (let count = 0; count <= LONGEST_ANSWER / piece.length; count += 1) {
      addEvent(message, { name: "message", data: JSON.stringify({ choices: [{ delta: { content: piece } }] }) });
    }
  };
  assert.throws(talk, isChatError(/too long/));
});

test("what the server refuses is said in its words, and a server that is gone is missed", async () => {
  const answer = (status, body, headers = {}) => async () => new Response(body, { status, headers });
  const asked = async (fetch, signal = new AbortController().signal) => {
    const { ask, newAnswer: fresh } = partsIn({ fetch });
    return ask({ model: "m" }, fresh(), { headers: {}, signal, changed: () => {} }).then(() => "answered", (error) => [error.kind, error.message]);
  };
  const refused = JSON.stringify({ detail: "x", error: { message: "there is no model 'm'" } });
  assert.deepEqual(await asked(answer(404, refused)), ["refused", "there is no model 'm'."]);
  assert.deepEqual(await asked(answer(401, refused)), ["key", "there is no model 'm'."]);
  assert.deepEqual(await asked(answer(503, refused, { "retry-after": "5" })), ["refused", "there is no model 'm'. Try again in 5 s."]);
  assert.deepEqual(await asked(answer(502, "<html>")), ["refused", "The server answered with status 502."]);
  assert.deepEqual(await asked(answer(200, "<html>", { "content-type": "text/html" })),
    ["refused", "The server at this address is not Hob: it sent no stream."]);
  assert.deepEqual(await asked(async () => { throw new TypeError("Failed to fetch"); }), ["away", "Hob does not answer."]);
  assert.equal(await asked(answer(200, WHOLE, { "content-type": "text/event-stream" })), "answered");
});
