// Saved assistants: settings under a name, for any conversation.

let assistants = [];
const assistantLooks = inOrder();

async function lookForAssistants() {
  const isInOrder = assistantLooks();
  const answer = await askServer("v1/saved-assistants");
  if (!isInOrder()) return;
  assistants = answer?.status === 200 ? listOf(answer.body?.data) : [];
  // Without a place to save them, there is nothing to choose.
  $("assistant-field").hidden = answer?.status !== 200;
  showSettings();
}

function showAssistants(chosen) {
  const options = [["", "None"], ...assistants.map(({ id, name }) => [String(id), textOf(name)])];
  // Rebuilt only if it changed: the user may be choosing.
  if ($("assistant").dataset.shown !== JSON.stringify(options)) {
    $("assistant").dataset.shown = JSON.stringify(options);
    $("assistant").replaceChildren(...options.map(([value, label]) => new Option(label, value)));
  }
  const known = assistants.some(({ id }) => String(id) === String(chosen));
  $("assistant").value = known ? String(chosen) : "";
  $("assistant-rename").hidden = $("assistant-delete").hidden = $("assistant-update").hidden = !known;
}

const chosenAssistant = () => assistants.find(({ id }) => String(id) === $("assistant").value);

// The name of a conversation or an assistant.
const checkName = (text) => (text === "" ? "Enter a name." : text.length > 200 ? "A name has at most 200 characters." : "");

function applyAssistant() {
  const found = chosenAssistant();
  if (found === undefined) return changeSettings({ assistant: null });
  changeSettings({ ...SETTINGS, ...found.settings, assistant: String(found.id) });
  say(`Assistant ${found.name}.`);
}

// A change of the assistants; the list follows.
async function changeAssistants(work) {
  const answer = await work;
  const isDone = answer !== null && answer.status < 400;
  put("settings-fault", isDone ? "" : problem(answer));
  if (isDone) await lookForAssistants();
  return isDone ? answer.body : null;
}

$("assistant").addEventListener("change", applyAssistant);
$("assistant-save").addEventListener("click", async () => {
  const name = await askedText({ title: "Save as assistant", text: "The settings of this conversation, under a name.", yes: "Save", label: "Name", check: checkName });
  if (name === null) return;
  const made = await changeAssistants(post("v1/saved-assistants", { name, settings: { ...chat.settings, assistant: null } }));
  if (made !== null) changeSettings({ assistant: String(made.id) });
});
$("assistant-update").addEventListener("click", async () => {
  const { id, name } = chosenAssistant();
  const saved = await changeAssistants(patch(`v1/saved-assistants/${encodeURIComponent(id)}`, { settings: { ...chat.settings, assistant: null } }));
  if (saved !== null) say(`Saved: ${name}.`);
});
$("assistant-rename").addEventListener("click", async () => {
  const { id, name: value } = chosenAssistant();
  const name = await askedText({ title: "Rename assistant", text: "", yes: "Rename", label: "Name", value, check: checkName });
  if (name !== null) await changeAssistants(patch(`v1/saved-assistants/${encodeURIComponent(id)}`, { name }));
});
$("assistant-delete").addEventListener("click", async () => {
  const { id, name } = chosenAssistant();
  const sure = await confirmed({ title: `Delete ${name}?`, text: "Conversations that use it keep their settings.", yes: "Delete" });
  if (sure && await changeAssistants(remove(`v1/saved-assistants/${encodeURIComponent(id)}`)) !== null) changeSettings({ assistant: null });
});
