// The first steps on a new machine: an engine, a model, a question, a document. Each is done when the server says so.

const FIRST_RUN_DISMISSED = "hob-first-run-dismissed";
const FIRST_MODEL = "qwen3:0.6b"; // small enough for any machine

const BUILT_IN_ENGINE = "embedded";

const firstRun = { pulling: false, note: "", steps: null, engine: null, engineNote: "" };

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

// What is true on the server; null when it cannot be known, such as for callers that are not the owner.
async function firstSteps() {
  const [models, savings] = await Promise.all([askServer("v1/models"), askServer("v1/savings")]);
  if (savings?.status !== 200) return null;
  // A server that records no calls does not know whether a question was asked.
  if (savings.body?.recent === undefined || savings.body.message) return null;
  const hasAsked = savings.body.total_calls > 0 || savings.body.recent.length > 0;
  // No engine answers. On a machine that was used before, the notice above says enough.
  if (models !== null && models.status >= 500) return hasAsked ? null : { engine: false, model: false, question: false, document: false };
  if (models?.status !== 200) return null;
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
  pull.hidden = firstRun.pulling;
  const progress = node("progress", { id: "first-progress", max: 1, hidden: !firstRun.pulling });
  progress.setAttribute("aria-label", `Download of ${FIRST_MODEL}`);
  const ask = node("button", { type: "button", className: "plain", textContent: "Write a question" });
  ask.addEventListener("click", () => $("question").focus());
  const close = node("button", { type: "button", className: "plain", id: "first-dismiss", textContent: "Hide these steps" });
  close.addEventListener("click", dismissFirstRun);
  const focused = document.activeElement?.closest("#first-run") ? document.activeElement.id : "";
  $("first-run").replaceChildren(
    node("h2", { id: "first-title", textContent: "First steps" }),
    node("ol", { className: "first-steps" },
      ...(steps.engine ? [] : [engineStep()]),
      firstStep(steps.model, "Get a model", ...(steps.engine ? [] : [node("p", { className: "quiet", textContent: "With an engine, this page offers a model." })]), node("p", { hidden: !steps.engine }, "A small model to start with. Others are on the page ", node("a", { href: "models", textContent: "Models" }), "."),
        node("div", { className: "row", hidden: !steps.engine }, pull, progress, node("span", { className: "quiet", id: "first-note", textContent: firstRun.note }))),
      firstStep(steps.question, "Ask the first question", node("div", { className: "row" }, ask)),
      firstStep(steps.document, "Add the first document", node("p", {}, "Hob answers from your documents when you add some on the page ",
        node("a", { href: "documents", textContent: "Documents" }), "."))),
    close);
  $("first-run").setAttribute("aria-labelledby", "first-title");
  $("first-run").hidden = false;
  // What is replaced loses the focus, so its twin gets it.
  if (focused) $(focused)?.focus();
}

// How to get an engine. The one that is built in needs no other program, so it is offered where it can be chosen here.
function engineStep() {
  const { engine, engineNote } = firstRun;
  const use = node("button", { type: "button", className: "go", id: "first-engine", textContent: "Use the built-in engine" });
  use.addEventListener("click", () => once(use, useBuiltInEngine));
  use.hidden = engine === null || !engine.changeable || !engine.choices.includes(BUILT_IN_ENGINE) || engine.value === BUILT_IN_ENGINE;
  const chosen = engine?.value === BUILT_IN_ENGINE ? "The built-in engine is chosen. Restart Hob to use it: it then downloads a small model." : "";
  return firstStep(false, "Get an engine",
    node("p", { textContent: "An engine runs the models, and none answers. Start one, such as Ollama with 'ollama serve'; this page continues by itself. Hob also has an engine of its own." }),
    node("div", { className: "row" }, use, node("span", { className: "quiet", id: "first-engine-note", textContent: engineNote || chosen })));
}

// The setting that names the engine; null where it cannot be seen.
async function engineSetting() {
  const answer = await askServer("v1/settings");
  const settings = listOf(answer?.body?.data).flatMap((section) => listOf(section.settings));
  return settings.find(({ key }) => key === "engine.default") ?? null;
}

async function useBuiltInEngine() {
  const answer = await patch("v1/settings", { settings: { "engine.default": BUILT_IN_ENGINE } });
  firstRun.engineNote = answer?.status === 200 ? "" : problem(answer);
  firstRun.engine = await engineSetting();
  showFirstRun();
  say($("first-engine-note").textContent);
}

async function lookAtFirstRun() {
  if (isFirstRunDismissed()) return;
  firstRun.steps = await firstSteps();
  if (firstRun.steps?.engine === false) firstRun.engine = await engineSetting();
  showFirstRun();
  $("first-run").dataset.known = String(firstRun.steps !== null);
}

// Downloads the model. The server answers with one line of JSON for each piece of progress.
async function pullFirstModel() {
  Object.assign(firstRun, { pulling: true, note: "" });
  showFirstRun();
  try {
    const answer = await fetch("api/pull", {
      method: "POST", credentials: "same-origin", headers: { ...keyHeaders(), "content-type": "application/json" },
      body: JSON.stringify({ model: FIRST_MODEL }),
    });
    if (!answer.ok) throw new Error((await answer.json().catch(() => null))?.error ?? `Hob answered with status ${answer.status}.`);
    await readPullProgress(answer.body);
    firstRun.note = "";
    say(`${FIRST_MODEL} is downloaded.`);
  } catch (error) {
    firstRun.note = `The download failed: ${error.message}`;
    say(firstRun.note);
  }
  firstRun.pulling = false;
  await lookAtFirstRun();
}

async function readPullProgress(body) {
  let ended = "";
  await readLines(body, (line) => {
    if (line === "") return;
    const step = JSON.parse(line);
    if (step.error) throw new Error(step.error);
    ended = step.status;
    if (step.total > 0) {
      $("first-progress").value = (step.completed ?? 0) / step.total;
      put("first-note", `${Math.round((100 * (step.completed ?? 0)) / step.total)} %`);
    }
  });
  if (ended !== "success") throw new Error("the connection was lost.");
}

// Begins when the server answers: before that there is nothing to know, and a server that needs a key refuses everything.
function beginFirstRun() {
  if (isFirstRunDismissed()) return;
  const look = new MutationObserver(async () => {
    // Without an engine the page says how to get one, and looks again when one answers.
    if (connection.text === STATE_TEXTS.engine[1]) return lookAtFirstRun();
    if ($("connection").dataset.state !== "good") return;
    look.disconnect();
    await lookAtFirstRun();
    // The answer to the first question, and a document that was added elsewhere, change what is true.
    if (!$("first-run").hidden) live({ activity: lookAtFirstRun, documents: lookAtFirstRun, models: lookAtFirstRun });
  });
  look.observe($("connection"), { attributes: true, attributeFilter: ["data-state"] });
}
beginFirstRun();
