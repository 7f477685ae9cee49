// The models of the server: those that can answer, and the choice among them.

// By id: `{ engine, isDefault, capabilities }`.
const listedModels = new Map();

function takeModels(list) {
  listedModels.clear();
  // Models that only make vectors cannot answer.
  for (const model of list) {
    const id = textOf(model?.id);
    if (id === "" || model.kind === "embedding") continue;
    listedModels.set(id, { engine: textOf(model.owned_by), isDefault: model.default === true, capabilities: model.capabilities ?? {} });
  }
  showModels();
}

// Names that stand for a choice of Hob are not models; agents have their own list.
const answeringModels = () => [...listedModels.keys()].filter((id) => !["default", "auto", "hob/agent"].includes(id));

// Whether a model can do something, such as "vision": true, false, or undefined where the engine does not say.
function supports(model, ability) {
  const found = model === "default" ? [...listedModels.values()].find(({ isDefault }) => isDefault) : listedModels.get(model);
  return found?.capabilities[ability];
}

// The chosen model stays in the list even if the server no longer has it: the answer is then an error, not another model's.
function showModels() {
  const chosen = $("model").value;
  const named = answeringModels();
  // Rebuilt only if it changed: the user may be choosing.
  if ($("model").dataset.named === JSON.stringify(named)) return;
  $("model").dataset.named = JSON.stringify(named);
  // With one model there is no choice.
  const own = [["default", "Default model"], ...(named.length > 1 ? [["auto", "Automatic"]] : [])];
  $("model").replaceChildren(...[...own, ...named.map((id) => [id, id])].map(([value, label]) => new Option(label, value)));
  chooseModel(chosen || "default");
  const second = $("second").value;
  $("second").replaceChildren(new Option("Compare with…", ""), ...named.map((id) => new Option(id, id)));
  $("second").value = named.includes(second) ? second : "";
  $("second").hidden = named.length < 2;
}

function chooseModel(model) {
  chooseIn($("model"), model);
}

// A value that is not in the list is added to it: what was chosen is never replaced silently.
function chooseIn(select, value) {
  if (![...select.options].some((option) => option.value === value)) {
    select.append(new Option(value === "default" ? "Default model" : value, value));
  }
  select.value = value;
}
