// The agents of the server, and the tools that they may use. An agent without a label of its own has its name.

const AGENT_LABELS = new Map([["simple", "Simple"], ["orchestrator", "With tools"], ["react", "Step by step"], ["codeact", "With code"]]);

let agentTools = []; // { name, description }: those that this caller's agent may use

async function lookForAgents() {
  const answer = await askServer("v1/agents");
  if (answer?.status !== 200) return;
  agentTools = listOf(answer.body?.tools).map(({ name, description }) => ({ name: textOf(name), description: textOf(description) }));
  const options = [["", "No agent"], ...listOf(answer.body?.data).map(({ name }) => [textOf(name), AGENT_LABELS.get(name) ?? textOf(name)])];
  // Rebuilt only if it changed: the user may be choosing.
  if ($("agent").dataset.shown !== JSON.stringify(options)) {
    $("agent").dataset.shown = JSON.stringify(options);
    $("agent").replaceChildren(...options.map(([value, label]) => new Option(label, value)));
  }
  showSettings();
}

// The tools that a conversation names, as far as they exist; null for all.
const chosenTools = ({ tools }) => (Array.isArray(tools) ? tools.filter((name) => agentTools.some((tool) => tool.name === name)) : null);

function showTools() {
  const chosen = chosenTools(chat.settings);
  $("tools-field").hidden = agentTools.length === 0 || !chat.settings.agent;
  $("all-tools").checked = chosen === null;
  $("tools-list").hidden = chosen === null;
  // Rebuilt only if it changed: the user may be at it.
  const shown = JSON.stringify(agentTools);
  if ($("tools-list").dataset.shown !== shown) {
    $("tools-list").dataset.shown = shown;
    $("tools-list").replaceChildren(...agentTools.map(toolItem));
  }
  for (const box of $("tools-list").querySelectorAll("input")) box.checked = chosen?.includes(box.value) ?? true;
}

function toolItem({ name, description }) {
  const box = node("input", { type: "checkbox", value: name });
  box.addEventListener("change", () => {
    const boxes = [...$("tools-list").querySelectorAll("input")];
    changeSettings({ tools: boxes.filter(({ checked }) => checked).map(({ value }) => value) });
  });
  return node("li", {}, node("label", { className: "tool-choice", title: description }, box, ` ${name}`));
}

$("all-tools").addEventListener("change", () => changeSettings({ tools: $("all-tools").checked ? null : agentTools.map(({ name }) => name) }));
