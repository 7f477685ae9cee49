// The state of the server: whether it answers, whether its engine answers, and its models.

const LOOK_MS = 15_000; // while all is well
const LOOK_AGAIN_MS = 3_000; // while something is missing
const TIMEOUT_MS = 8_000;

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

  // `changed(state)` gets "good", "engine", "away" or "locked".
  constructor(changed) {
    this.#changed = changed;
    document.addEventListener("visibilitychange", () => this.lookAnew());
    // The user may have downloaded a model just before opening the list.
    $("model").addEventListener("focus", () => this.lookAnew());
  }

  // Checks now, and regularly while the page is visible.
  async look() {
    clearTimeout(this.#timer);
    // Only a key helps; entering one starts the next check.
    if (document.hidden || this.#state === "locked") return;
    const turn = ++this.#turn;
    const state = await this.#feel();
    // A newer check has started.
    if (turn !== this.#turn) return;
    if (state !== "locked") this.#timer = setTimeout(() => this.look(), state === "good" ? LOOK_MS : LOOK_AGAIN_MS);
    if (state === this.#state) return;
    this.#state = state;
    this.#changed(state);
  }

  async #feel() {
    try {
      const health = await fetch("health", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (health.status !== 200) return health.status === 503 ? "engine" : "away";
      // After an error it may be another engine.
      return this.#state === "good" && this.#listed ? "good" : await this.#models();
    } catch {
      return "away";
    }
  }

  async #models() {
    const answer = await fetch("v1/models", {
      cache: "no-store", credentials: "same-origin", headers: keyHeaders(), signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (answer.status === 401) return "locked";
    if (!answer.ok) return "engine";
    const list = (await answer.json())?.data;
    this.#listed = true;
    // Strangers do not get features that they may not use.
    document.body.dataset.role = answer.headers.get("x-hob-role") ?? "owner";
    // Models that only make vectors cannot answer.
    const answering = Array.isArray(list) ? list.filter((model) => model?.kind !== "embedding") : [];
    showModels(answering.map((model) => String(model?.id ?? "")).filter(Boolean));
    return "good";
  }

  // Checks the models too.
  lookAnew() {
    this.#listed = false;
    return this.look();
  }

  // The key was wrong, or was just entered: the known state is outdated.
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

// The chosen model stays in the list even if the server no longer has it: the answer is then an error, not another model's.
function showModels(ids) {
  const chosen = $("model").value;
  // Agents have their own list.
  const named = ids.filter((id) => !["default", "auto", "hob/agent"].includes(id));
  // Rebuilt only if it changed: the user may be choosing.
  if ($("model").dataset.named === JSON.stringify(named)) return;
  $("model").dataset.named = JSON.stringify(named);
  // With one model there is no choice.
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
