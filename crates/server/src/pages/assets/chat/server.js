// How the server is: whether it answers, whether its engine does, what models there are.

const LOOK_MS = 15_000; // while all is well
const LOOK_AGAIN_MS = 3_000; // while something is missing
const PATIENCE_MS = 8_000;

const TOLD = {
  good: ["good", "ready", ""],
  engine: ["bad", "no engine", "No engine answers. Start one, or run 'hob doctor' on the server's machine. This page reconnects automatically."],
  away: ["bad", "no connection", "Hob does not answer. This page reconnects automatically."],
  locked: ["unknown", "locked", ""],
};

class ServerWatch {
  #timer = 0;
  #turn = 0;
  #state = "unknown";
  #listed = false; // whether the models are those of now
  #changed;

  // `changed(state)` hears "good", "engine", "away" or "locked".
  constructor(changed) {
    this.#changed = changed;
    document.addEventListener("visibilitychange", () => this.lookAnew());
    // Whoever is about to choose a model may have fetched one a moment ago.
    $("model").addEventListener("focus", () => this.lookAnew());
  }

  // Looks now, and from time to time as long as somebody sees the page.
  async look() {
    clearTimeout(this.#timer);
    // Nothing but a key helps, and whoever gives one says so.
    if (document.hidden || this.#state === "locked") return;
    const turn = ++this.#turn;
    const state = await this.#feel();
    // Somebody looked again meanwhile, and knows better.
    if (turn !== this.#turn) return;
    if (state !== "locked") this.#timer = setTimeout(() => this.look(), state === "good" ? LOOK_MS : LOOK_AGAIN_MS);
    if (state === this.#state) return;
    this.#state = state;
    this.#changed(state);
  }

  async #feel() {
    try {
      const health = await fetch("health", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
      if (health.status !== 200) return health.status === 503 ? "engine" : "away";
      // After trouble it may be another engine.
      return this.#state === "good" && this.#listed ? "good" : await this.#models();
    } catch {
      return "away";
    }
  }

  async #models() {
    const answer = await fetch("v1/models", {
      cache: "no-store", credentials: "same-origin", headers: keyHeaders(), signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (answer.status === 401) return "locked";
    if (!answer.ok) return "engine";
    const list = (await answer.json())?.data;
    this.#listed = true;
    // What a stranger may not do is not offered.
    document.body.dataset.role = answer.headers.get("x-hob-role") ?? "owner";
    // Models that only make vectors cannot answer.
    const answering = Array.isArray(list) ? list.filter((model) => model?.kind !== "embedding") : [];
    showModels(answering.map((model) => String(model?.id ?? "")).filter(Boolean));
    return "good";
  }

  // Looks at the models too.
  lookAnew() {
    this.#listed = false;
    return this.look();
  }

  // The key turned out wrong, or was just given: what was known no longer holds.
  forget() {
    this.#state = "unknown";
    return this.look();
  }
}

function showState(state) {
  const [dot, short, long] = TOLD[state];
  $("pulse").dataset.state = dot;
  put("pulse-text", short);
  put("notice", long);
  $("notice").hidden = long === "";
}

// A model that is chosen stays in the list, also when the server has it no longer: it will say so, and no other answers.
function showModels(ids) {
  const chosen = $("model").value;
  // The agent is chosen beside the model.
  const named = ids.filter((id) => !["default", "auto", "hob/agent"].includes(id));
  // Made anew only when it changed: somebody may be choosing.
  if ($("model").dataset.named === JSON.stringify(named)) return;
  $("model").dataset.named = JSON.stringify(named);
  // Where there is one model, there is nothing to choose.
  const own = [["default", "Default model"], ...(named.length > 1 ? [["auto", "Automatic"]] : [])];
  $("model").replaceChildren(...[...own, ...named.map((id) => [id, id])].map(([value, label]) => new Option(label, value)));
  chooseModel(chosen || "default");
}

function chooseModel(model) {
  const select = $("model");
  if (![...select.options].some((option) => option.value === model)) {
    select.append(new Option(model === "default" ? "Default model" : model, model));
  }
  select.value = model;
}
