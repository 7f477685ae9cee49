// The state of the server: whether it answers, whether its engine answers, and when to list its models again.

const LOOK_AGAIN_MS = 3_000; // while something is missing
const TIMEOUT_MS = 8_000;

const STATE_TEXTS = {
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

  // Checks now, and again while something is missing. While all is well, the live stream and failed answers say when to look.
  async look() {
    clearTimeout(this.#timer);
    // Only a key helps; entering one starts the next check.
    if (document.hidden || this.#state === "locked") return;
    const turn = ++this.#turn;
    const state = await this.#check(turn);
    // A newer check has started.
    if (turn !== this.#turn) return;
    if (state !== "locked" && state !== "good") this.#timer = setTimeout(() => this.look(), LOOK_AGAIN_MS);
    if (state === this.#state) return;
    this.#state = state;
    this.#changed(state);
  }

  async #check(turn) {
    try {
      const health = await fetch("health", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (health.status !== 200) return health.status === 503 ? "engine" : "away";
      // After an error it may be another engine.
      return this.#state === "good" && this.#listed ? "good" : await this.#models(turn);
    } catch {
      return "away";
    }
  }

  async #models(turn) {
    const answer = await fetch("v1/models", {
      cache: "no-store", credentials: "same-origin", headers: keyHeaders(), signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (answer.status === 401) return "locked";
    if (!answer.ok) return "engine";
    const list = (await answer.json())?.data;
    // A newer check loads a newer list.
    if (turn !== this.#turn) return "good";
    this.#listed = true;
    // Strangers do not get features that they may not use.
    document.body.dataset.role = answer.headers.get("x-hob-role") ?? "owner";
    takeModels(listOf(list));
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
  const [dot, short, long] = STATE_TEXTS[state];
  showConnection(dot, short);
  put("notice", long);
  $("notice").hidden = long === "";
}
