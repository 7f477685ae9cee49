
// The table of calls, of v1/calls. The owner sees all, a member its own.

// The cursors of the pages up to the shown one, and of the next one.
const calls = { begins: [null], next: null, asked: 0, started: false };

const RESULTS = { complete: "complete", cancelled: "cancelled by the caller", failed: "failed" };
const cell = (text, small = "", className = "") =>
  node("td", { className }, text, ...(small ? [node("small", { textContent: small })] : []));
const known = (value, shown) => (value === null ? "–" : shown(value));

function callRow(call) {
  const ended = call.outcome === "complete";
  const result = ended ? call.finish_reason ?? RESULTS.complete : RESULTS[call.outcome];
  return node("tr", {},
    node("td", {}, when(call.started, { dateStyle: "short", timeStyle: "medium" })),
    cell(result, call.error ?? "", ended ? "" : call.outcome),
    cell(call.model, [call.engine, call.host].filter(Boolean).join(" · ")),
    cell(call.key ?? "–", call.end_user ?? ""),
    cell(call.route ?? call.source, call.agent === null ? "" : `agent ${call.agent}`),
    cell(call.request_id ?? "–", call.run),
    cell(count(call.prompt_tokens), call.cached_tokens ? `${count(call.cached_tokens)} cached` : "", "number"),
    cell(count(call.completion_tokens), call.tokens_per_second === null ? "" : `${format(call.tokens_per_second, { maximumSignificantDigits: 3 })}/s`, "number"),
    cell(known(call.first_token_seconds, seconds), "", "number"),
    cell(seconds(call.latency_seconds), "", "number"),
    cell(known(call.queue_seconds, seconds), "", "number"),
    cell(known(call.energy_joules, energy), "", "number"),
    cell(known(call.cost, money), "", "number"));
}

function showCalls(page) {
  calls.next = page.next;
  $("call-rows").replaceChildren(...page.data.map(callRow));
  $("call-table").hidden = page.data.length === 0;
  $("call-newer").hidden = calls.begins.length === 1;
  $("call-older").hidden = page.next === null;
  const isFiltered = [...new FormData($("call-form")).values()].some((value) => value !== "");
  // The page itself says what to do while nothing is recorded at all.
  $("call-card").hidden = page.data.length === 0 && page.next === null && !isFiltered && !$("empty").hidden;
  put("call-note", page.message ? `Calls are missing: ${page.message}.`
    : page.data.length > 0 ? `Page ${whole(calls.begins.length)}. Waited is the time until the server had a free slot. The time to the first token includes the engine's own queue.`
      : page.next !== null ? "No call on this page matches. Older calls are not searched yet."
        : isFiltered ? "No call matches." : "No call is recorded yet. Ask a question in the chat, and it appears here.");
}

async function loadCalls() {
  const number = calls.asked += 1;
  const query = new URLSearchParams();
  for (const [name, value] of new FormData($("call-form"))) if (value.trim() !== "") query.set(name, value.trim());
  const after = calls.begins.at(-1);
  if (after !== null) query.set("after", after);
  const answer = await askServer(`v1/calls?${query}`);
  // A later question is under way.
  if (number !== calls.asked) return;
  if (answer?.status !== 200 || !Array.isArray(answer.body?.data)) return put("call-note", problem(answer));
  showCalls(answer.body);
}

function turnTo(begins) {
  calls.begins = begins;
  return loadCalls();
}

// With other filters there is another next page.
function turnToFirst() {
  calls.next = null;
  return turnTo([null]);
}

$("call-form").addEventListener("submit", (event) => {
  event.preventDefault();
  turnToFirst();
});
$("call-form").addEventListener("change", turnToFirst);
// A second click can come before the first one is answered.
$("call-newer").addEventListener("click", () => turnTo(calls.begins.length > 1 ? calls.begins.slice(0, -1) : calls.begins));
$("call-older").addEventListener("click", () => turnTo(calls.begins.at(-1) === calls.next ? calls.begins : [...calls.begins, calls.next]));

// Called after each answer to someone who may see calls.
function startCalls() {
  if (calls.started) {
    if ($("call-card").hidden) loadCalls();
    return;
  }
  calls.started = true;
  // An older page stays as it is while someone reads it.
  live({ activity: () => { if (calls.begins.length === 1) loadCalls(); } }, loadCalls);
}
