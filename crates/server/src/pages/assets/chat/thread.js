// Questions and answers as the reader sees them.

// An answer is shown ten times a second at most, and showing it takes at most a tenth of the time.
const SHOW_MS = 100;
const PAUSE = 9;

// How an answer came to be, where that is worth a word.
const WARNINGS = new Map([
  ["tools-dropped", "The engine refused the tools and answered without them."],
  ["context-compacted", "The conversation was too long for the model, so tool results were removed from it."],
  ["loop-stopped", "The model repeated the same tool call, so it was stopped here."],
  ["fallback-model", "The default model was not available, so another model answered."],
  ["nothing-indexed", "No documents are indexed, so the answer uses none."],
  ["steps-omitted", "Only the first 200 steps are shown."],
  ["cloud-fallback", "No local engine could answer, so a cloud provider answered."],
]);
// Some have a value: `max-tokens=4096`.
const WARNINGS_WITH_VALUE = new Map([
  ["max-tokens", (limit) => `The answer can have at most ${limit} tokens.`],
  ["ignored", (field) => `The engine ignored the setting '${field}'.`],
]);
function warningText(name) {
  const [kind, value] = name.split("=", 2);
  return WARNINGS.get(name) ?? WARNINGS_WITH_VALUE.get(kind)?.(value) ?? name;
}
const warningsOf = ({ warnings }) => warnings.map(warningText).join(" ");

function smallButton(label, press) {
  const button = node("button", { type: "button", className: "small", textContent: label });
  button.addEventListener("click", () => press(button));
  return button;
}

// Makes these the children of `parent`. Those that are in their place stay there, and keep the focus.
function placeNodes(parent, nodes) {
  const wanted = new Set(nodes);
  for (const one of [...parent.childNodes]) if (!wanted.has(one)) one.remove();
  nodes.forEach((one, index) => {
    if (parent.childNodes[index] !== one) parent.insertBefore(one, parent.childNodes[index] ?? null);
  });
}

class QuestionView {
  // `edit` changes the question, `branches` are the buttons between branches.
  constructor(turn, { edit, branches }) {
    const { text, attachments } = turn.question;
    this.edit = smallButton("Edit", edit);
    this.branches = branches;
    const bubble = node("div", { className: "bubble", textContent: text, hidden: text === "" });
    const attached = node("ul", { className: "chips", ariaLabel: "Attached files", hidden: attachments.length === 0 }, ...attachments.map(attachmentItem));
    const copy = smallButton("Copy", (button) => copyText(text, button));
    this.root = node("article", { className: "message user" },
      node("h2", { className: "unseen", textContent: "You" }), attached, bubble, node("div", { className: "actions" }, copy, this.edit), branches.root);
  }
}

class AnswerView {
  #turn;
  #parts;
  #markdown;
  #timer = 0;
  #changed = false; // since it was shown
  #pause = 0; // milliseconds before the next time

  // `retry` and `retryWith` ask the question again, `edit` changes the answer, `choose` ends a comparison. `rating` is a `RatingView`. `shown` is
  // called when the answer is rendered.
  constructor(turn, { retry, retryWith, edit, choose, rating, shown }) {
    this.#turn = turn;
    const copy = smallButton("Copy", (button) => copyText(turn.answer?.text ?? "", button));
    this.edit = smallButton("Edit", edit);
    this.retry = smallButton("Retry", retry);
    this.retryWith = smallButton("Retry with…", retryWith);
    this.retryWith.ariaHasPopup = "dialog";
    this.choose = smallButton("Continue with this one", choose);
    this.choose.classList.add("choose");
    const actions = node("div", { className: "actions" }, this.choose, copy, rating.root, this.edit, this.retryWith, this.retry);
    const thoughts = node("p", {}, document.createTextNode(""));
    this.#parts = {
      copy,
      rating,
      actions,
      thoughts,
      model: node("span", { className: "model" }),
      steps: new StepsView(),
      folded: node("details", { className: "thoughts", hidden: true }, node("summary", { textContent: "Thoughts" }), thoughts),
      answer: node("div", { className: "answer" }),
      sources: node("ul", { className: "chips sources", ariaLabel: "Sources" }),
      outcome: node("p", { className: "outcome" }),
      figures: node("p", { className: "figures" }),
    };
    this.#markdown = new MarkdownView(this.#parts.answer);
    const { model, steps, folded, answer, sources, outcome, figures } = this.#parts;
    this.root = node("article", { className: "message" },
      node("h2", { className: "by" }, "Hob", model), steps.root, folded, answer, sources, outcome, figures, actions);
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

  // Resolves when everything is shown. The answer is busy until then.
  async update() {
    const turn = this.#turn;
    const { model, why, text, reasoning, steps, sources } = turn.answer ?? newAnswer();
    const parts = this.#parts;
    const state = stateOf(turn);
    const running = state === "running" || state === "elsewhere";
    this.root.dataset.state = state;
    this.root.ariaBusy = "true";
    parts.model.textContent = [model, why].filter(Boolean).join(" · ");
    parts.steps.update(steps, running);
    parts.folded.hidden = reasoning === "";
    growText(parts.thoughts.firstChild, reasoning);
    if (parts.sources.children.length !== sources.length) parts.sources.replaceChildren(...sources.map(sourceItem));
    parts.sources.hidden = sources.length === 0;
    parts.outcome.textContent = [outcomeOf(turn), turn.note].filter(Boolean).join(" ");
    parts.figures.textContent = turn.answer === null ? "" : figuresOf(turn.answer);
    parts.actions.hidden = running;
    parts.copy.hidden = text === "";
    parts.rating.update();
    if (await this.#markdown.show(text, { complete: !running })) this.root.ariaBusy = String(running);
  }

  // The answer as text, for those who hear it, and what there is to say of it.
  get heard() {
    return this.#parts.answer.textContent;
  }
  get remarks() {
    return this.#parts.outcome.textContent;
  }
}

// "running", "elsewhere", "missing", or how the answer ended.
function stateOf(turn) {
  if (turn.answer !== null) return turn.answer.ending;
  return isAnsweredElsewhere(chat, turn) ? "elsewhere" : "missing";
}

function outcomeOf(turn) {
  const { text, error } = turn.answer ?? newAnswer();
  switch (stateOf(turn)) {
    case "running": return turn.answer.warnings.length > 0 ? warningsOf(turn.answer) : "";
    case "elsewhere": return "Being answered in another tab.";
    case "missing": return "No answer was saved.";
    case "stopped": return text === "" ? "Stopped before the first word." : "Stopped here.";
    case "failed": return text === "" ? error : `Not complete: ${error}`;
    case "cut": return error || "Cut here: the answer reached its length limit.";
    default: return error || (text === "" ? "The answer is empty." : "");
  }
}
