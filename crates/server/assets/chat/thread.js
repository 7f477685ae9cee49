// A message as the reader sees it.

const secondsTook = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2, style: "unit", unit: "second" });

function smallButton(label, press) {
  const button = node("button", { type: "button", className: "small", textContent: label });
  button.addEventListener("click", () => press(button));
  return button;
}

class MessageView {
  #message;
  #parts;
  #markdown;
  #frame = 0;

  // `again` asks the question anew: for an answer as it was, for a question after a change.
  constructor(message, again) {
    this.#message = message;
    const copy = smallButton("Copy", (button) => copyText(message.content, button));
    this.again = smallButton(message.role === "user" ? "Edit" : "Retry", again);
    const actions = node("div", { className: "actions" }, copy, this.again);
    if (message.role === "user") {
      this.root = node("article", { className: "message user" },
        node("h2", { className: "unseen", textContent: "You" }), node("div", { className: "bubble", textContent: message.content }), actions);
      return;
    }
    const text = node("p");
    this.#parts = {
      model: node("span", { className: "model" }),
      steps: node("ul", { className: "steps" }),
      thoughts: node("details", { className: "thoughts", hidden: true }, node("summary", { textContent: "Thoughts" }), text),
      text,
      answer: node("div", { className: "answer" }),
      outcome: node("p", { className: "outcome" }),
      actions,
    };
    this.#markdown = new MarkdownView(this.#parts.answer);
    const { model, steps, thoughts, answer, outcome } = this.#parts;
    this.root = node("article", { className: "message" },
      node("h2", { className: "by" }, "Hob", model), steps, thoughts, answer, outcome, actions);
    this.update();
  }

  // Shows what has changed with the next picture; words come faster than pictures.
  updateSoon(then) {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.update();
      then();
    });
  }

  update() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const { model, why, content, thoughts, steps, state } = this.#message;
    const parts = this.#parts;
    const running = state === "running";
    this.root.dataset.state = state;
    this.root.ariaBusy = String(running);
    parts.model.textContent = [model, why].filter(Boolean).join(" · ");
    parts.steps.replaceChildren(...steps.map(stepNode));
    parts.thoughts.hidden = thoughts === "";
    if (parts.text.textContent !== thoughts) parts.text.textContent = thoughts;
    this.#markdown.show(content);
    parts.outcome.textContent = outcomeOf(this.#message);
    parts.actions.hidden = running;
  }

  // The answer as text, for those who hear it.
  get heard() {
    return this.#parts.answer.textContent;
  }
}

function stepNode({ tool, input, ended, seconds }) {
  const took = ended === null ? "…" : ended === "good" ? secondsTook.format(seconds) : "failed";
  return node("li", {},
    node("span", { className: "tool", textContent: tool }),
    node("span", { className: "input", textContent: input, title: input }),
    node("span", { className: `took ${ended ?? ""}`, textContent: took }));
}

function outcomeOf({ state, trouble, finish, content }) {
  if (state === "running") return "";
  if (state === "stopped") return content === "" ? "Stopped before the first word." : "Stopped here.";
  if (state === "broken") return content === "" ? trouble : `Not complete: ${trouble}`;
  if (finish === "length") return "Cut here: the answer reached its length limit.";
  if (finish === "content_filter") return "Cut here by the engine's filter.";
  return content === "" ? "The answer is empty." : "";
}
