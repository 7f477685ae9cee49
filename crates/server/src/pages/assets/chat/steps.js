// The steps of an agent: each tool call with what went in and what came out, folded.

const INPUT_SHOWN = 200; // characters beside the name of the tool

class StepsView {
  #views = [];
  root = node("ul", { className: "steps" });

  // Steps are only added and ended, so that those that the reader opened stay open.
  update(steps, running) {
    if (steps.length < this.#views.length) this.#views = [];
    steps.forEach((step, index) => {
      this.#views[index] ??= newStepView(step);
      const { state, output } = this.#views[index];
      const outcome = step.success === null ? (running ? "…" : "no result") : step.success ? "done" : "failed";
      if (state.textContent !== outcome) state.textContent = outcome;
      state.className = `took ${step.success === false ? "bad" : ""}`;
      if (output.textContent !== step.result) output.textContent = step.result;
      output.parentElement.hidden = step.result === "";
    });
    placeNodes(this.root, this.#views.map(({ item }) => item));
  }
}

function newStepView({ tool, arguments: input }) {
  const state = node("span", { className: "took" });
  const output = node("pre", { tabIndex: 0 });
  const summary = node("summary", {},
    node("span", { className: "tool", textContent: tool }), node("span", { className: "input", textContent: input.slice(0, INPUT_SHOWN) }), state);
  const item = node("li", {}, node("details", {}, summary,
    node("div", {}, node("p", { className: "quiet", textContent: "In" }), node("pre", { tabIndex: 0, textContent: input })),
    node("div", {}, node("p", { className: "quiet", textContent: "Out" }), output)));
  return { item, state, output };
}
