
// Shows and changes the configuration of v1/settings. A form is sent for one key at a time, so that an error belongs to one field.

let sections = [];
const awaitingRestart = new Set(); // keys that were changed here and need a restart

// --- values ---

const isList = (setting) => Array.isArray(setting.default);
const isNumber = (setting) => typeof setting.default === "number";

// As it stands in a field.
function textOf(value) {
  if (Array.isArray(value)) return value.join("\n");
  return value === null || typeof value === "object" ? JSON.stringify(value) : String(value);
}

// As a person reads it.
function shownValue({ secret, set, value }) {
  if (secret) return set ? "set, not shown" : "not set";
  if (Array.isArray(value)) return value.length === 0 ? "empty list" : value.map((one) => (typeof one === "object" ? JSON.stringify(one) : one)).join(", ");
  if (value !== null && typeof value === "object") return Object.keys(value).length === 0 ? "none" : JSON.stringify(value);
  return value === "" ? "empty" : String(value);
}

// What is sent. A number that can also be a word, such as "engine", is sent as it was entered.
function entered(setting, field) {
  if (typeof setting.default === "boolean") return field.value === "true";
  if (isList(setting)) return field.value.split("\n").map((line) => line.trim()).filter(Boolean);
  const text = field.value.trim();
  return isNumber(setting) && text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

function originOf({ source, variable }) {
  return { default: "default", file: "from the file", environment: `from $${variable}`, option: "from the command line" }[source];
}

// --- one setting ---

function fieldOf(setting) {
  const id = `field-${setting.key}`;
  const value = setting.value;
  let field;
  if (typeof setting.default === "boolean") {
    field = node("select", { id }, new Option("true", "true"), new Option("false", "false"));
  } else if (setting.choices.length > 0 && !isList(setting)) {
    // Where none is allowed too, the description of the values has the empty text.
    const names = setting.expected.includes('""') ? ["", ...setting.choices] : setting.choices;
    field = node("select", { id }, ...names.map((name) => new Option(name === "" ? "none" : name, name)));
  } else if (isList(setting)) {
    field = node("textarea", { id, rows: Math.max(2, value.length), spellcheck: false });
    field.placeholder = "one on each line";
  } else {
    field = node("input", { id, autocomplete: "off", spellcheck: false });
  }
  field.value = textOf(value);
  field.setAttribute("aria-label", setting.key);
  field.setAttribute("aria-describedby", `about-${setting.key} fault-${setting.key}`);
  return field;
}

function formOf(setting) {
  const field = fieldOf(setting);
  const save = node("button", { type: "submit", className: "go", textContent: "Save", hidden: true });
  const undo = node("button", { type: "button", className: "plain", textContent: "Undo", hidden: true });
  const reset = node("button", { type: "button", className: "plain", textContent: "Use the default", hidden: setting.source !== "file" });
  reset.setAttribute("aria-label", `Use the default of ${setting.key}`);
  const fault = node("p", { className: "fault", id: `fault-${setting.key}` });
  fault.setAttribute("role", "alert");
  const form = node("form", { noValidate: true }, field, save, undo, reset, fault);
  const noteChange = () => { save.hidden = undo.hidden = field.value === textOf(setting.value); };
  field.addEventListener("input", noteChange);
  undo.addEventListener("click", () => {
    field.value = textOf(setting.value);
    fault.textContent = "";
    field.removeAttribute("aria-invalid");
    noteChange();
    field.focus();
  });
  reset.addEventListener("click", () => once(reset, () => change(setting, null, field, fault)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    once(save, () => change(setting, entered(setting, field), field, fault));
  });
  return form;
}

function itemOf(setting) {
  const name = setting.key.split(".").at(-1);
  const origin = node("span", { className: "origin", textContent: originOf(setting) });
  origin.dataset.source = setting.source;
  const item = node("li", { id: `setting-${setting.key}` },
    node("div", { className: "head" }, node("h3", { textContent: name, tabIndex: -1 }), origin),
    node("p", { id: `about-${setting.key}`, textContent: setting.description }));
  if (setting.changeable) {
    item.append(formOf(setting),
      node("p", { className: "quiet", textContent: `Takes ${setting.expected}.${setting.needs_restart ? " A change takes effect after a restart." : ""}` }));
  } else {
    item.append(node("p", { className: "value", textContent: shownValue(setting) }),
      node("p", { className: "quiet", textContent: setting.variable
        ? `Set by the variable ${setting.variable}, so it cannot be changed here.`
        : setting.source === "option"
          ? "Set by an option of 'hob serve', so it cannot be changed here."
          : "To change it, edit the file on the machine that runs Hob." }));
  }
  return item;
}

// --- all settings ---

function isFound(setting, words) {
  const text = `${setting.key} ${setting.description} ${setting.secret ? "" : shownValue(setting)}`.toLowerCase();
  return words.every((word) => text.includes(word)) && (!$("only-set").checked || setting.source !== "default");
}

// Hides what is not looked for. Fields that are being edited stay as they are.
function filter() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  let total = 0;
  for (const { section, settings } of sections) {
    let inSection = 0;
    for (const setting of settings) {
      const found = isFound(setting, words);
      $(`setting-${setting.key}`).hidden = !found;
      inSection += Number(found);
    }
    $(`section-${section}`).hidden = inSection === 0;
    shown += inSection;
    total += settings.length;
  }
  const none = $("only-set").checked && words.length === 0 ? "All settings have their defaults." : "Search for other words, or clear the search.";
  put("found", shown === total ? `${total} settings.` : `${shown} of ${total} settings.${shown === 0 ? ` ${none}` : ""}`);
}

// Whether the field of a setting has a value that is not saved.
const isEdited = (item) => item?.querySelector("form .go")?.hidden === false;

// What is being entered stays as it is; it is compared with the file when it is saved.
function shownItem(setting) {
  const item = $(`setting-${setting.key}`);
  return setting.changeable && isEdited(item) ? item : itemOf(setting);
}

function showAll() {
  const focused = document.activeElement?.id;
  $("sections").replaceChildren(...sections.filter(({ settings }) => settings.length > 0).map(({ section, description, settings }) => {
    const title = node("h2", { id: `title-${section}` }, node("code", { textContent: `[${section}]` }));
    const box = node("section", { className: "card section", id: `section-${section}` },
      node("div", {}, title, node("p", { className: "quiet", textContent: description })),
      node("ul", { className: "settings" }, ...settings.map(shownItem)));
    box.setAttribute("aria-labelledby", title.id);
    return box;
  }));
  sections = sections.filter(({ settings }) => settings.length > 0);
  filter();
  // What is replaced loses the focus, so its twin gets it.
  if (focused) $(focused)?.focus();
}

function showRestart() {
  $("restart").hidden = awaitingRestart.size === 0;
  put("restart", `Restart Hob to apply: ${[...awaitingRestart].join(", ")}.`);
}

const isEditing = () => [...document.querySelectorAll(".settings > li")].some(isEdited);
const loads = inOrder();

async function load() {
  const isInOrder = loads();
  const answer = await askServer("v1/settings");
  if (!isInOrder()) return;
  if (!isAdmitted(answer, "settings")) return;
  if (answer?.status !== 200 || answer.body === null) return showNotice(problem(answer));
  showNotice("");
  $("key-form").hidden = true;
  put("file", answer.body.file);
  sections = answer.body.data;
  showAll();
  $("settings").hidden = false;
}

async function change(setting, value, field, fault) {
  const text = field.value;
  fault.textContent = "";
  field.removeAttribute("aria-invalid");
  const answer = await patch("v1/settings", { settings: { [setting.key]: value } });
  if (answer?.status !== 200 || answer.body === null) {
    fault.textContent = problem(answer);
    field.setAttribute("aria-invalid", "true");
    field.focus();
    return;
  }
  for (const key of answer.body.after_restart) awaitingRestart.add(key);
  showRestart();
  // What was entered meanwhile is not saved.
  if (field.value === text) field.form.querySelector(".go").hidden = true;
  await load();
  // The user may be at another field by now.
  if (document.activeElement === document.body) $(`field-${setting.key}`)?.focus();
  const after = answer.body.after_restart.length > 0 ? " It takes effect after a restart." : "";
  say(`${setting.key} is saved.${after}`);
}

$("find").addEventListener("input", filter);
$("only-set").addEventListener("change", filter);
whenKeyIsGiven(load);
// The focus stays where text is being entered.
live({ settings: () => { if (!isEditing()) load(); } }, load);
