
// Shows and changes the keys of v1/keys, with v1/usage and v1/audit. Names come from outside, so they are only used as text.

const MOST_CHANGES = 20;
const HOUR_S = 3600;

// --- asking the server ---

const post = (path, content) =>
  askServer(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(content) });

const problem = (answer) =>
  answer === null ? "Hob does not answer. Try again." : answer.body?.detail ?? `Hob answered with status ${answer.status}.`;

// For screen readers.
const say = (text) => put("said", text);

// --- the keys ---

const listed = (names, all) => (names === null ? all : names.join(", "));
const isExpired = (key) => key.expires_at !== null && new Date(key.expires_at) <= new Date();
const hasOldSecret = (key) => key.previous_secret_until !== null && new Date(key.previous_secret_until) > new Date();
const stateOf = (key) => (key.status === "active" && isExpired(key) ? "expired" : key.status);
const dateAndTime = (moment) => when(moment, { dateStyle: "medium", timeStyle: "short" });

// Days are those of UTC. Without records it is not known.
function lastUsed(used, isRecorded) {
  const last = used?.last_day;
  if (!last) return isRecorded ? "never" : "not recorded";
  if (last === new Date().toISOString().slice(0, 10)) return "today";
  return when(`${last}T00:00:00Z`, { dateStyle: "medium", timeZone: "UTC" });
}

function limits(key) {
  const lines = key.usage.map((one) => {
    const used = one.used_usd === undefined ? whole(one.used) : money(one.used_usd);
    return `${used} of ${one.limit}, until ${recently(one.resets_at)}`;
  });
  if (key.parallel !== null) lines.push(`${whole(key.parallel)} at once`);
  return lines.length ? lines : ["none"];
}

function calls(used) {
  if (!used || used.calls === 0) return "nothing";
  const parts = [plural(used.calls, "call", "calls"), plural(used.prompt_tokens + used.completion_tokens, "token", "tokens")];
  if (used.cost > 0) parts.push(money(used.cost));
  if (used.failures > 0) parts.push(`${whole(used.failures)} failed`);
  return parts.join(", ");
}

function mayUse(key) {
  const parts = [`models: ${listed(key.models, "all")}`, `engines: ${listed(key.engines, "all")}`];
  parts.push(key.cloud ? "with the cloud" : "without the cloud");
  parts.push(`tools: ${listed(key.tools, "all")}, reach ${key.reach}`, `documents: ${listed(key.memory, key.role === "owner" ? "all" : "none")}`);
  return parts;
}

function facts(rows) {
  return node("dl", { className: "facts" }, ...rows.filter(([, lines]) => lines).flatMap(([name, lines]) => [
    node("dt", { textContent: name }),
    node("dd", {}, ...[lines].flat().map((line) => node("div", { textContent: line }))),
  ]));
}

function action(label, key, act, style = "plain") {
  const button = node("button", { type: "button", className: style, textContent: label });
  button.setAttribute("aria-label", `${label} ${key.name}`);
  button.dataset.action = `${label.toLowerCase()} ${key.name}`;
  button.addEventListener("click", () => act(key, button));
  return button;
}

function card(key, used, isRecorded) {
  const state = stateOf(key);
  const actions = [];
  if (key.status !== "revoked") {
    actions.push(key.status === "disabled" ? action("Enable", key, enable) : action("Disable", key, disable));
    actions.push(action("Rotate", key, rotate), action("Revoke", key, revoke, "plain danger"));
  }
  const shown = node("span", { className: "state", textContent: state });
  shown.dataset.state = state;
  return node("li", { className: "card", id: `card-${key.name}` },
    node("div", { className: "head" }, node("h3", { textContent: key.name, tabIndex: -1 }), shown),
    facts([
      ["Role", key.role],
      ["Limits", limits(key)],
      ["Used", calls(used)],
      ["Last used", lastUsed(used, isRecorded)],
      ["Expires", key.expires_at === null ? "never" : dateAndTime(key.expires_at)],
      ["Old secret", hasOldSecret(key) && `valid until ${dateAndTime(key.previous_secret_until)}`],
      ["May use", mayUse(key)],
    ]),
    ...(actions.length ? [node("div", { className: "row" }, ...actions)] : []));
}

function showKeys(keys, usage) {
  const figures = usage?.data ?? [];
  const isRecorded = figures.length > 0 || (usage !== null && !usage.message);
  const used = new Map(figures.map((one) => [one.key, one]));
  const rank = (key) => (key.status === "revoked" ? 1 : 0);
  const sorted = [...keys].sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name));
  // What is replaced loses the focus, so its twin gets it.
  const focused = document.activeElement?.dataset?.action;
  $("keys").replaceChildren(...sorted.map((key) => card(key, used.get(key.name), isRecorded)));
  if (focused) focusOn(focused);
  $("no-keys").hidden = keys.length > 0;
  const active = keys.filter((key) => stateOf(key) === "active").length;
  put("count", plural(active, "active key", "active keys"));
}

// --- the audit log ---

function showChanges(page) {
  const { verification, data } = page;
  $("chain").className = verification.unbroken ? "quiet" : "fault";
  put("chain", verification.unbroken
    ? `The log is unbroken: ${plural(verification.entries, "change", "changes")}.`
    : `The log is broken: ${verification.fault}. Compare it with an earlier export.`);
  $("changes").replaceChildren(...[...data].reverse().map((entry) => node("li", {},
    node("span", { textContent: `${entry.action} ${entry.subject}` }),
    node("small", { textContent: `${entry.actor} · ${entry.origin} · ${dateAndTime(entry.at)} · number ${entry.number}` }))));
}

// --- loading ---

function hideTeam() {
  $("team").hidden = true;
  put("count", "");
  showNotice("");
}

async function load() {
  const answer = await askServer("v1/keys");
  $("denied").hidden = answer?.status !== 403;
  if (answer?.status === 401) {
    hideTeam();
    return askForKey();
  }
  if (answer?.status === 403) {
    hideTeam();
    // The key of a member stays: the chat page uses it.
    $("key-form").hidden = false;
    return;
  }
  if (answer?.status !== 200 || answer.body === null) return showNotice(problem(answer));
  $("key-form").hidden = true;
  const [usage, changes] = await Promise.all([
    askServer("v1/usage"), askServer(`v1/audit?limit=${MOST_CHANGES}&verify=true`),
  ]);
  const failed = [usage, changes].find((one) => one?.status !== 200 || one.body === null);
  showNotice(failed === undefined ? "" : problem(failed));
  showKeys(answer.body.data, usage?.status === 200 ? usage.body : null);
  if (changes?.status === 200 && changes.body !== null) showChanges(changes.body);
  $("team").hidden = false;
}

// --- changes ---

// Waits for the answer to a change, and shows the keys as they are then. Returns the answer, or null after an error that was shown.
async function change(sent, done) {
  const answer = await sent;
  if (answer === null || answer.status >= 400) {
    await load();
    showNotice(problem(answer));
    return null;
  }
  await load();
  say(done);
  return answer.body;
}

const pathOf = (key) => `v1/keys/${encodeURIComponent(key.name)}`;

// A second click has no effect until the first one was answered.
async function once(button, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

const disable = (key, button) => once(button, async () => {
  await change(post(`${pathOf(key)}/disable`, {}), `${key.name} is disabled.`);
  focusOn(`enable ${key.name}`);
});
const enable = (key, button) => once(button, async () => {
  await change(post(`${pathOf(key)}/enable`, {}), `${key.name} is enabled.`);
  focusOn(`disable ${key.name}`);
});

function focusOn(name) {
  [...document.querySelectorAll("[data-action]")].find((one) => one.dataset.action === name)?.focus();
}

function revoke(key) {
  confirmed({
    title: `Revoke ${key.name}?`,
    text: "The key is invalid for good, and its name stays taken. Its tasks stop. To pause it instead, disable it.",
    yes: "Revoke",
    act: async () => {
      await change(askServer(pathOf(key), { method: "DELETE" }), `${key.name} is revoked.`);
      $(`card-${key.name}`)?.querySelector("h3").focus();
      return true;
    },
  });
}

function rotate(key) {
  confirmed({
    title: `Rotate ${key.name}?`,
    text: "The key gets a new secret.",
    yes: "Rotate",
    asksHours: true,
    act: async () => {
      const hours = Number($("ask-hours").value.trim().replace(",", "."));
      if (!(hours >= 0) || $("ask-hours").value.trim() === "") {
        put("ask-fault", "Enter a number of hours, 0 or more.");
        return false;
      }
      const rotated = await change(post(`${pathOf(key)}/rotate`, { overlap: Math.round(hours * HOUR_S) }), "");
      if (rotated !== null) showSecret(rotated);
      return true;
    },
  });
}

// --- the question ---

let asked = null;

function confirmed(question) {
  asked = question;
  put("ask-title", question.title);
  put("ask-text", question.text);
  put("ask-yes", question.yes);
  put("ask-fault", "");
  $("ask-hours").value = "24";
  $("ask-field").hidden = !question.asksHours;
  $("ask").showModal();
  $("ask-no").focus();
}

$("ask-no").addEventListener("click", () => $("ask").close());
$("ask-yes").addEventListener("click", () => once($("ask-yes"), async () => {
  // Closed first if nothing can be wrong with it, so that the page behind it can take the focus.
  if (!asked.asksHours) $("ask").close();
  if (await asked.act()) $("ask").close();
}));

// --- the secret ---

function showSecret(created) {
  $("ask").close();
  put("secret-title", `The secret of ${created.name}`);
  $("secret").value = created.secret;
  put("secret-note", hasOldSecret(created) ? `The old secret is valid until ${dateAndTime(created.previous_secret_until)}.` : "");
  $("secret-card").hidden = false;
  $("secret-copy").focus();
  say(`${created.name} has a new secret. It is shown once.`);
}

$("secret-copy").addEventListener("click", () => copyText($("secret").value, $("secret-copy")));
$("secret-done").addEventListener("click", () => {
  $("secret").value = "";
  $("secret-card").hidden = true;
  $("create").querySelector("summary").focus();
});

// --- the form ---

const LISTS = ["models", "engines", "tools", "memory", "budgets"];
const NUMBERS = ["requests_per_minute", "tokens_per_minute", "parallel"];

// Only what was entered: the rest is what the role says.
function entered(form) {
  const key = {};
  for (const input of form.elements) {
    const text = input.value?.trim();
    if (!input.name || text === "") continue;
    if (input.type === "checkbox") { if (input.checked) key[input.name] = true; }
    else if (LISTS.includes(input.name)) key[input.name] = text.split(",").map((part) => part.trim()).filter(Boolean);
    else if (NUMBERS.includes(input.name)) key[input.name] = /^\d+$/.test(text) ? Number(text) : text;
    else key[input.name] = text;
  }
  return key;
}

// As if the server had refused it.
const wrongInput = (param, detail) => ({ body: { detail, error: { param } } });

function showFault(form, answer) {
  put("create-fault", problem(answer));
  const wrong = answer?.body?.error?.param?.split(/[.[]/)[0];
  const input = wrong && form.elements.namedItem(wrong);
  if (!input) return;
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-describedby", "create-fault");
  input.focus();
}

$("create-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  once(form.querySelector("[type=submit]"), async () => {
    for (const input of form.elements) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    put("create-fault", "");
    const key = entered(form);
    if (key.name === undefined) return showFault(form, wrongInput("name", "Enter a name."));
    const odd = NUMBERS.find((name) => typeof key[name] === "string");
    if (odd) return showFault(form, wrongInput(odd, "Enter a whole number, or nothing for no limit."));
    const answer = await post("v1/keys", key);
    if (answer === null || answer.status !== 201) return showFault(form, answer);
    form.reset();
    $("create").open = false;
    await load();
    showSecret(answer.body);
  });
});

whenKeyIsGiven(load);
document.addEventListener("visibilitychange", () => { if (!document.hidden && !$("ask").open) load(); });
load();
