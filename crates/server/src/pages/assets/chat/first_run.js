// The first steps on a new machine: an engine, a model, a question, a document. Each is done when the server says so.

const FIRST_RUN_DISMISSED = "hob-first-run-dismissed";
const FIRST_MODEL = "qwen3:0.6b"; // small enough for any machine

const EMBEDDED_ENGINE = "v1/engines/embedded";

// `share` is how much of a file is there, or null; `engine` is the embedded one, or null where it cannot be chosen; `model` is the chosen one
// for it; `elsewhere` is what another page downloads. Changes matter (`isLive`) during a look, and once the steps were shown (`wasShown`). A
// change during a look makes it stale: it is repeated at its end, so that many changes do not keep it from ending.
const firstRun = {
  busy: false, note: "", share: null, steps: null, engine: null, model: "", elsewhere: "", isLive: false, isLooking: false, isStale: false, wasShown: false, turn: 0, timer: 0,
};

function isFirstRunDismissed() {
  try {
    return localStorage.getItem(FIRST_RUN_DISMISSED) !== null;
  } catch {
    return false;
  }
}

function dismissFirstRun() {
  try {
    localStorage.setItem(FIRST_RUN_DISMISSED, "yes");
  } catch {
    // It is then shown again by the next page.
  }
  $("first-run").hidden = true;
  $("question").focus();
}

// What is true on the server; null when it cannot be known, such as for callers that are not the owner; undefined without an answer.
async function firstSteps() {
  const [models, savings] = await Promise.all([askServer("v1/models"), askServer("v1/savings")]);
  if (models === null || savings === null) return undefined;
  if (savings.status !== 200) return null;
  // A server that records no calls does not know whether a question was asked.
  if (savings.body?.recent === undefined || savings.body.message) return null;
  const hasAsked = savings.body.total_calls > 0 || savings.body.recent.length > 0;
  // No engine answers. On a machine that was used before, the notice above says enough.
  if (models.status >= 500) return hasAsked ? null : { engine: false, model: false, question: false, document: false };
  if (models.status !== 200) return null;
  const memory = await askServer("v1/memory/stats");
  const answering = (models.body?.data ?? []).filter((model) => !["default", "auto", "hob/agent"].includes(model.id) && model.kind !== "embedding");
  return {
    engine: true,
    model: answering.length > 0,
    question: hasAsked,
    document: memory?.status === 200 && (memory.body?.sources ?? 0) > 0,
  };
}

function firstStep(done, title, ...content) {
  const state = node("span", { className: "first-mark", textContent: done ? "✓" : "" });
  state.setAttribute("aria-hidden", "true");
  return node("li", { className: done ? "done" : "" }, state,
    node("div", {}, node("h3", {}, title, ...(done ? [node("span", { className: "unseen", textContent: ", done" })] : [])),
      ...(done ? [] : content)));
}

function showFirstRun() {
  const steps = firstRun.steps;
  if (steps === null || isFirstRunDismissed() || (steps.model && steps.question && steps.document)) {
    $("first-run").hidden = true;
    return;
  }
  const pull = node("button", { type: "button", className: "go", id: "first-pull", textContent: `Download ${FIRST_MODEL}` });
  pull.addEventListener("click", pullFirstModel);
  pull.hidden = firstRun.busy;
  const ask = node("button", { type: "button", className: "plain", textContent: "Write a question" });
  ask.addEventListener("click", () => $("question").focus());
  const close = node("button", { type: "button", className: "plain", id: "first-dismiss", textContent: "Hide these steps" });
  close.addEventListener("click", dismissFirstRun);
  const focused = document.activeElement?.closest("#first-run") ? document.activeElement.id : "";
  $("first-run").replaceChildren(
    node("h2", { id: "first-title", textContent: "First steps" }),
    node("ol", { className: "first-steps" },
      ...(steps.engine ? [] : [engineStep()]),
      firstStep(steps.model, "Get a model", ...(steps.engine
        ? [node("p", {}, "A small model to start with. Others are on the page ", node("a", { href: "models", textContent: "Models" }), "."), node("div", { className: "row" }, pull, ...progressOf())]
        : [node("p", { className: "quiet", textContent: "With an engine, this page offers a model." })])),
      firstStep(steps.question, "Ask the first question", node("div", { className: "row" }, ask)),
      firstStep(steps.document, "Add the first document", node("p", {}, "Hob answers from your documents when you add some on the page ",
        node("a", { href: "documents", textContent: "Documents" }), "."))),
    close);
  $("first-run").setAttribute("aria-labelledby", "first-title");
  $("first-run").hidden = false;
  // What is replaced loses the focus, so its twin gets it.
  if (focused) $(focused)?.focus();
}

// The progress of what this page does, or a note about the last attempt.
function progressOf() {
  const progress = node("progress", { id: "first-progress", max: 1, hidden: !firstRun.busy });
  if (firstRun.share !== null) progress.value = firstRun.share;
  progress.setAttribute("aria-label", "Progress");
  const elsewhere = firstRun.elsewhere === "" ? "" : `Another page gets ${firstRun.elsewhere}. This page continues by itself.`;
  return [progress, node("span", { className: "quiet", id: "first-note", textContent: firstRun.note || (firstRun.busy ? "" : elsewhere) })];
}

// How to get an engine. The embedded one needs no other program, so it is offered where it can be chosen here.
function engineStep() {
  const about = node("p", { textContent: "An engine runs the models, and none answers. Start one, such as Ollama with 'ollama serve'; this page continues by itself." });
  const { engine } = firstRun;
  if (engine === null) return firstStep(false, "Get an engine", about);
  if (engine.problem) return firstStep(false, "Get an engine", about, node("p", { id: "first-problem", textContent: `The embedded engine cannot be used: ${engine.problem}.` }));
  const here = listOf(engine.models).map(({ id }) => [id, `${id}, on this machine`]);
  // Its file has a name without a colon.
  const isHere = here.some(([id]) => id === FIRST_MODEL.replace(":", "-"));
  const choices = [...here, ...(isHere ? [] : [[FIRST_MODEL, `${FIRST_MODEL}, to download`]])];
  const models = node("select", { id: "first-model" }, ...choices.map(([id, label]) => new Option(label, id)));
  models.setAttribute("aria-label", "Model");
  if (choices.some(([id]) => id === firstRun.model)) models.value = firstRun.model;
  models.addEventListener("change", () => { firstRun.model = models.value; });
  const use = node("button", { type: "button", className: "go", id: "first-engine", textContent: "Use the embedded engine" });
  use.addEventListener("click", () => useEmbeddedEngine(models.value));
  models.hidden = use.hidden = firstRun.busy;
  return firstStep(false, "Get an engine", about,
    node("p", { textContent: "Or use Hob's embedded engine (llama.cpp inside Hob). It needs no other program, and answers as soon as its model is loaded." }),
    node("div", { className: "row" }, models, use, ...progressOf()));
}

async function useEmbeddedEngine(model) {
  firstRun.model = model;
  if (!await followSteps(EMBEDDED_ENGINE, model, "Nothing has changed")) return lookAtFirstRun();
  say(`The embedded engine answers with ${model}.`);
  await watch.lookAnew();
  await lookAtFirstRun();
}

// What other pages download or load now.
async function lookElsewhere() {
  const answer = await askServer("v1/model-files/downloads");
  firstRun.elsewhere = listOf(answer?.body?.data).map(({ model }) => model).join(", ");
  showFirstRun();
}

async function lookAtFirstRun() {
  if (isFirstRunDismissed()) return;
  clearTimeout(firstRun.timer);
  const turn = ++firstRun.turn;
  Object.assign(firstRun, { isLive: true, isLooking: true, isStale: false });
  const steps = await firstSteps();
  const embedded = steps?.engine === false ? await askServer(EMBEDDED_ENGINE) : null;
  // A newer look has started, and knows what is true now.
  if (turn !== firstRun.turn) return;
  firstRun.isLooking = false;
  // No event will say that this has changed.
  if (steps === undefined || (steps?.engine === false && $("connection").dataset.state === "good")) firstRun.timer = setTimeout(lookAtFirstRun, LOOK_AGAIN_MS);
  if (steps === undefined) return;
  firstRun.steps = steps;
  firstRun.engine = embedded?.status === 200 ? embedded.body : null;
  showFirstRun();
  $("first-run").dataset.known = String(firstRun.steps !== null);
  firstRun.wasShown ||= !$("first-run").hidden;
  firstRun.isLive = firstRun.wasShown;
  if (firstRun.isStale && firstRun.isLive) await lookAtFirstRun();
}

async function pullFirstModel() {
  if (await followSteps("api/pull", FIRST_MODEL, "The download failed")) say(`${FIRST_MODEL} is downloaded.`);
  await lookAtFirstRun();
}

// Asks for a model, and shows the steps. The server answers with one line of JSON for each. Returns whether all of them were done.
async function followSteps(path, model, failed) {
  Object.assign(firstRun, { busy: true, note: "", share: null });
  showFirstRun();
  try {
    const answer = await fetch(path, {
      method: "POST", credentials: "same-origin", headers: { ...keyHeaders(), "content-type": "application/json" },
      body: JSON.stringify({ model }),
    });
    if (!answer.ok) {
      const body = await answer.json().catch(() => null);
      throw new Error(body?.detail ?? body?.error ?? `Hob answered with status ${answer.status}.`);
    }
    await readProgress(answer.body);
    firstRun.note = "";
    return true;
  } catch (error) {
    firstRun.note = `${failed}: ${error.message}`;
    say(firstRun.note);
    return false;
  } finally {
    Object.assign(firstRun, { busy: false, share: null });
  }
}

async function readProgress(body) {
  let ended = "";
  await readLines(body, (line) => {
    if (line === "") return;
    const step = JSON.parse(line);
    if (step.error) throw new Error(step.error);
    ended = step.status;
    firstRun.share = step.total > 0 ? (step.completed ?? 0) / step.total : null;
    firstRun.note = firstRun.share !== null ? `${Math.round(100 * firstRun.share)} %` : step.status.startsWith("loading ") ? "Loading the model…" : "";
    // The step may be done by now, by another page.
    if (!$("first-progress")) return;
    put("first-note", firstRun.note);
    if (firstRun.share === null) $("first-progress").removeAttribute("value");
    else $("first-progress").value = firstRun.share;
  });
  if (ended !== "success") throw new Error("the connection was lost.");
}

// Begins when the server answers this caller: before that there is nothing to know, and a server that needs a key refuses everything.
function beginFirstRun() {
  if (isFirstRunDismissed()) return;
  const whileLive = (look) => () => { if (firstRun.isLive) look(); };
  const again = whileLive(() => {
    if (firstRun.isLooking) firstRun.isStale = true;
    else lookAtFirstRun();
  });
  // The answer to the first question, and what other pages do, change what is true.
  live({ activity: again, documents: again, models: again, downloads: whileLive(lookElsewhere) });
  const look = new MutationObserver(async () => {
    // Without an engine the page says how to get one, and looks again when one answers.
    if (connection.text === STATE_TEXTS.engine[1]) return lookAtFirstRun();
    if (connection.lost || connection.text !== STATE_TEXTS.good[1]) return;
    look.disconnect();
    await lookAtFirstRun();
  });
  look.observe($("connection"), { attributes: true, attributeFilter: ["data-state"] });
}
beginFirstRun();
