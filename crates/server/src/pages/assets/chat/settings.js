// The settings of a conversation: model, agent, tools, documents, system prompt, temperature and length. They are saved with it.

// Shows the settings of the conversation in the form.
function showSettings() {
  const { model, agent, system, temperature, max_tokens, assistant } = chat.settings;
  chooseModel(model ?? "default");
  chooseIn($("agent"), agent ?? "");
  $("documents-switch").hidden = !indexed;
  $("documents").checked = usesDocuments(chat);
  showAgentChoice();
  // Another tab may change them while the user types. A wrong number stays beside its fault.
  const isOfUser = (id) => document.activeElement === $(id) || $(id).getAttribute("aria-invalid") === "true";
  const set = (id, value) => { if (!isOfUser(id)) $(id).value = value ?? ""; };
  set("system", system);
  set("temperature", temperature);
  set("max-tokens", max_tokens);
  showAssistants(assistant);
  showTools();
  $("settings-open").classList.toggle("changed", Boolean(system) || temperature !== null || max_tokens !== null || chat.settings.tools !== null);
}

function changeSettings(changes) {
  Object.assign(chat.settings, changes);
  if ("model" in changes || "agent" in changes) keepChoice(chat.settings);
  showSettings();
  patchChat(chat, { settings: chat.settings }).catch(({ message }) => hint(message));
}

// Agents need a model that can call tools, as far as the engine says.
function showAgentChoice() {
  $("agent").hidden = supports(chat.settings.model ?? "default", "tools") === false && !chat.settings.agent;
}

// A number within its bounds; null if the field is empty, undefined if it is wrong.
function numberIn(id) {
  const { value, min, max, validity } = $(id);
  if (value.trim() === "" && !validity.badInput) return null;
  const number = Number(value);
  return value.trim() !== "" && number >= Number(min) && number <= Number(max) ? number : undefined;
}

function takeField(id, name) {
  const number = numberIn(id);
  const { min, max } = $(id);
  $(id).setAttribute("aria-invalid", String(number === undefined));
  put("settings-fault", number === undefined ? `Enter a number from ${min} to ${whole(Number(max))}, or leave the field empty.` : "");
  if (number !== undefined) changeSettings({ [name]: name === "max_tokens" && number !== null ? Math.round(number) : number });
}

$("model").addEventListener("change", () => {
  const model = $("model").value;
  changeSettings({ model: model === "default" ? null : model });
});
$("agent").addEventListener("change", () => changeSettings({ agent: $("agent").value || null }));
$("documents").addEventListener("change", () => changeSettings({ documents: $("documents").checked }));
$("system").addEventListener("change", () => changeSettings({ system: $("system").value.trim() || null }));
$("temperature").addEventListener("change", () => takeField("temperature", "temperature"));
$("max-tokens").addEventListener("change", () => takeField("max-tokens", "max_tokens"));
$("settings-open").addEventListener("click", () => {
  showSettings();
  $("settings").showModal();
});
$("settings-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("settings-fault").textContent === "") $("settings").close();
});
// What is wrong is not saved.
$("settings").addEventListener("close", () => {
  for (const id of ["temperature", "max-tokens"]) $(id).removeAttribute("aria-invalid");
  put("settings-fault", "");
  showSettings();
});
$("passage-close").addEventListener("click", () => $("passage").close());
