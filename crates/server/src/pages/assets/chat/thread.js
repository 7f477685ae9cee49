// A message as the reader sees it.

const secondsTook = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2, style: "unit", unit: "second" });

function smallButton(label, press) {
  const button = node("button", { type: "button", className: "small", textContent: label });
  button.addEventListener("click", () => press(button));
  return button;
}

// How an answer came to be, where that is worth a word.
const WARNINGS = new Map([
  ["tools-dropped", "The engine refused the tools and answered without them."],
  ["context-compacted", "The conversation was too long for the model, so tool results were removed from it."],
  ["loop-stopped", "The model repeated the same tool call, so it was stopped here."],
  ["fallback-model", "The default model was not available, so another model answered."],
  ["cloud-fallback", "No local engine could answer, so the cloud did."],
]);

// An answer is shown ten times a second at most, and showing it takes at most a tenth of the time.
const SHOW_MS = 100;
const PAUSE = 9;

class MessageView {
  #message;
  #parts;
  #markdown;
  #timer = 0;
  #changed = false; // since it was shown
  #pause = 0; // milliseconds before the next time

  // `again` asks the question anew: for an answer as it was, for a question after a change. `rated` and `failed` hear what came of
  // a rating, `shown` when the answer is rendered.
  constructor(message, { again, rated, failed, shown }) {
    this.#message = message;
    const copy = smallButton("Copy", (button) => copyText(message.content, button));
    this.again = smallButton(message.role === "user" ? "Edit" : "Retry", again);
    const actions = node("div", { className: "actions" }, copy, this.again);
    if (message.role === "user") {
      this.root = node("article", { className: "message user" },
        node("h2", { className: "unseen", textContent: "You" }), node("div", { className: "bubble", textContent: message.content }), actions);
      return;
    }
    const rating = new RatingView(message, { rated, failed });
    this.again.before(rating.root);
    const text = node("p", {}, document.createTextNode(""));
    this.#parts = {
      model: node("span", { className: "model" }),
      steps: node("ul", { className: "steps" }),
      thoughts: node("details", { className: "thoughts", hidden: true }, node("summary", { textContent: "Thoughts" }), text),
      text,
      answer: node("div", { className: "answer" }),
      warnings: node("p", { className: "warnings" }),
      outcome: node("p", { className: "outcome" }),
      actions,
      rating,
    };
    this.#markdown = new MarkdownView(this.#parts.answer);
    const { model, steps, thoughts, answer, warnings, outcome } = this.#parts;
    this.root = node("article", { className: "message" },
      node("h2", { className: "by" }, "Hob", model), steps, thoughts, answer, warnings, outcome, actions);
    this.update().then(shown);
  }

  // Shows what has changed, soon; words arrive faster than they can be shown.
  updateSoon(then) {
    this.#changed = true;
    if (this.#timer !== 0) return;
    this.#timer = setTimeout(async () => {
      this.#changed = false;
      const began = performance.now();
      await this.update();
      then();
      this.#pause = Math.max(SHOW_MS, (performance.now() - began) * PAUSE);
      this.#timer = 0;
      if (this.#changed) this.updateSoon(then);
    }, this.#pause);
  }

  // Resolves when everything is shown. The message is busy until then.
  async update() {
    const { model, why, content, thoughts, steps, warnings, state } = this.#message;
    const parts = this.#parts;
    const running = state === "running" || state === "elsewhere";
    this.root.dataset.state = state;
    this.root.ariaBusy = "true";
    parts.model.textContent = [model, why].filter(Boolean).join(" · ");
    parts.steps.replaceChildren(...steps.map(stepNode));
    parts.thoughts.hidden = thoughts === "";
    growText(parts.text.firstChild, thoughts);
    parts.warnings.textContent = warnings.map((name) => WARNINGS.get(name) ?? name).join(" ");
    parts.outcome.textContent = outcomeOf(this.#message);
    parts.actions.hidden = running;
    parts.rating.update();
    if (await this.#markdown.show(content, { complete: !running })) this.root.ariaBusy = String(running);
  }

  // The answer as text, for those who hear it, and what there is to say of it.
  get heard() {
    return this.#parts.answer.textContent;
  }
  get remarks() {
    return [this.#parts.warnings.textContent, this.#parts.outcome.textContent].filter(Boolean).join(" ");
  }
}

function stepNode({ tool, input, ended, seconds }) {
  const took = ended === null ? "…" : ended === "good" ? secondsTook.format(seconds) : "failed";
  return node("li", {},
    node("span", { className: "tool", textContent: tool }),
    node("span", { className: "input", textContent: input, title: input }),
    node("span", { className: `took ${ended ?? ""}`, textContent: took }));
}

function outcomeOf({ state, trouble, finish, warnings, content }) {
  if (state === "running") return "";
  if (state === "elsewhere") return "Being answered in another tab.";
  if (state === "stopped") return content === "" ? "Stopped before the first word." : "Stopped here.";
  if (state === "broken") return content === "" ? trouble : `Not complete: ${trouble}`;
  // The warning says it better.
  if (finish === "length" && warnings.includes("loop-stopped")) return "";
  if (finish === "length") return "Cut here: the answer reached its length limit.";
  if (finish === "content_filter") return "Cut here by the engine's filter.";
  return content === "" ? "The answer is empty." : "";
}
