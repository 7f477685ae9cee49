
// Shows and changes the keys of v1/keys, with v1/usage and v1/audit. Names come from outside, so they are only used as text.

const MOST_CHANGES = 20;
const HOUR_S = 3600;

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
    actions.push(action("Change", key, openChange));
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

// What gets the focus when it is shown: a change and its event can load the keys at the same time.
let nextFocus = null;

function showKeys(keys, usage) {
  const figures = usage?.data ?? [];
  const isRecorded = figures.length > 0 || (usage !== null && !usage.message);
  const used = new Map(figures.map((one) => [one.key, one]));
  const rank = (key) => (key.status === "revoked" ? 1 : 0);
  const sorted = [...keys].sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name));
  // What is replaced loses the focus, so its twin gets it.
  const focused = document.activeElement?.dataset?.action;
  const heading = document.activeElement?.matches("#keys h3") ? document.activeElement.closest("li").id : "";
  $("keys").replaceChildren(...sorted.map((key) => card(key, used.get(key.name), isRecorded)));
  if (nextFocus !== null && focusOn(nextFocus)) nextFocus = null;
  else if (focused) focusOn(focused);
  else if (heading) $(heading)?.querySelector("h3").focus();
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

const loads = inOrder();

async function load() {
  const isInOrder = loads();
  const answer = await askServer("v1/keys");
  if (!isInOrder()) return;
  if (!isAdmitted(answer, "team")) return;
  if (answer?.status !== 200 || answer.body === null) return noteLoad(problem(answer));
  $("key-form").hidden = true;
  const [usage, changes] = await Promise.all([
    askServer("v1/usage"), askServer(`v1/audit?limit=${MOST_CHANGES}&verify=true`),
  ]);
  if (!isInOrder()) return;
  if ($("ask").open) return loadAfterDialogs(load);
  const failed = [usage, changes].find((one) => one?.status !== 200 || one.body === null);
  noteLoad(failed === undefined ? "" : problem(failed));
  showKeys(answer.body.data, usage?.status === 200 ? usage.body : null);
  if (changes?.status === 200 && changes.body !== null) showChanges(changes.body);
  $("team").hidden = false;
}

// --- changes ---

// Waits for the answer to a change, and shows the keys as they are then, with the focus on this action. Returns the answer, or null after an
// error that was shown.
async function change(sent, done, focus = null) {
  const answer = await sent;
  const worked = answer !== null && answer.status < 400;
  showNotice(worked ? "" : problem(answer));
  if (worked) nextFocus = focus;
  await load();
  if (!worked) return null;
  say(done);
  return answer.body;
}

const pathOf = (key) => `v1/keys/${encodeURIComponent(key.name)}`;

const disable = (key, button) => once(button, () =>
  change(post(`${pathOf(key)}/disable`, {}), `${key.name} is disabled.`, `enable ${key.name}`));
const enable = (key, button) => once(button, () =>
  change(post(`${pathOf(key)}/enable`, {}), `${key.name} is enabled.`, `disable ${key.name}`));

async function revoke(key) {
  const agreed = await confirmed({
    title: `Revoke ${key.name}?`,
    text: "The key stays invalid, and its name cannot be used again. Its tasks stop. To pause the key instead, disable it.",
    yes: "Revoke",
  });
  if (!agreed) return;
  await change(remove(pathOf(key)), `${key.name} is revoked.`);
  $(`card-${key.name}`)?.querySelector("h3").focus();
}

async function rotate(key) {
  const hours = await askedText({
    title: `Rotate ${key.name}?`,
    text: "The key gets a new secret.",
    yes: "Rotate",
    label: "Hours for which the old secret stays valid",
    value: "24",
    check: (text) => (text !== "" && hoursOf(text) >= 0 ? "" : "Enter a number of hours, 0 or more."),
  });
  if (hours === null) return;
  const own = apiKey();
  const sent = post(`${pathOf(key)}/rotate`, { overlap: Math.round(hoursOf(hours) * HOUR_S) });
  keyReplacement = sent.then((answer) => continueWithOwn(own, answer));
  const rotated = await change(keyReplacement, "");
  if (rotated !== null) showSecret(rotated);
}

// The old secret of the key of this page may be invalid now, so the page continues with the new one, and can show it.
function continueWithOwn(own, answer) {
  const secret = answer?.body?.secret;
  if (own !== null && secret && idOf(own) === idOf(secret)) keepKey(secret);
  return answer;
}
// A secret is 'hob_<id>_<random>'.
const idOf = (secret) => secret.split("_").slice(0, 2).join("_");
const hoursOf = (text) => Number(text.replace(",", "."));

// --- the secret ---

function showSecret(created) {
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

// --- the forms to create and to change a key ---

const LISTS = ["models", "engines", "tools", "memory", "budgets"];
const NUMBERS = ["requests_per_minute", "tokens_per_minute", "parallel"];

// Both forms have the same fields for limits and rights.
for (const form of [$("create-form"), $("change-form")])
  form.querySelector(".fault").before($("rules").content.cloneNode(true));
// A key that exists has a reach of its own.
$("change-form").elements.namedItem("reach").options[0].remove();

// As the API has it: null is no limit.
function valueOf(input) {
  const text = input.value.trim();
  if (input.type === "checkbox") return input.checked;
  if (LISTS.includes(input.name)) {
    const parts = text.split(",").map((part) => part.trim()).filter(Boolean);
    return parts.length > 0 || input.name === "budgets" ? parts : null;
  }
  if (text === "") return null;
  return NUMBERS.includes(input.name) && /^\d+$/.test(text) ? Number(text) : text;
}

const entered = (form) =>
  Object.fromEntries([...form.elements].filter((input) => input.name).map((input) => [input.name, valueOf(input)]));

function enterRules(form, key) {
  const value = (name) => (name === "expires" ? key.expires_at : key[name]);
  for (const input of form.elements) {
    if (!input.name) continue;
    if (input.type === "checkbox") input.checked = value(input.name);
    else input.value = [value(input.name) ?? ""].flat().join(", ");
  }
}

// As if the server had refused it.
const wrongInput = (param, detail) => ({ body: { detail, error: { param } } });

function showFault(form, answer) {
  const fault = form.querySelector(".fault");
  fault.textContent = problem(answer);
  const wrong = answer?.body?.error?.param?.split(/[.[]/)[0];
  const input = wrong && form.elements.namedItem(wrong);
  if (!input) return;
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-describedby", fault.id);
  input.focus();
}

function clearFault(form) {
  form.querySelector(".fault").textContent = "";
  for (const input of form.elements) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
}

// Sends what was entered, unless a field is wrong, which is shown.
function whenSubmitted(form, submit) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    once(form.querySelector("[type=submit]"), async () => {
      clearFault(form);
      showNotice("");
      const values = entered(form);
      const odd = NUMBERS.find((name) => typeof values[name] === "string");
      if (values.name === null) showFault(form, wrongInput("name", "Enter a name."));
      else if (odd) showFault(form, wrongInput(odd, "Enter a whole number, or nothing for no limit."));
      else await submit(values);
    });
  });
}

whenSubmitted($("create-form"), async (values) => {
  const form = $("create-form");
  // Only what was entered: the rest is what the role says.
  const isEntered = ([, value]) => value !== null && value !== false && value.length !== 0;
  const answer = await post("v1/keys", Object.fromEntries(Object.entries(values).filter(isEntered)));
  if (answer === null || answer.status !== 201) return showFault(form, answer);
  form.reset();
  $("create").open = false;
  await load();
  showSecret(answer.body);
});

// The key that is being changed, and the form as it was opened.
let changing = null;

function openChange(key) {
  const form = $("change-form");
  clearFault(form);
  enterRules(form, key);
  changing = { key, before: entered(form) };
  put("change-title", `Change ${key.name}`);
  $("change").showModal();
}

whenSubmitted($("change-form"), async (values) => {
  const { key, before } = changing;
  // Only what was changed: another owner may have changed the rest.
  const isChanged = ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]);
  const changed = Object.fromEntries(Object.entries(values).filter(isChanged));
  if (Object.keys(changed).length > 0) {
    const answer = await patch(pathOf(key), changed);
    if (answer === null || answer.status !== 200) return showFault($("change-form"), answer);
    await load();
    say(`${key.name} is changed.`);
  }
  $("change").close();
  focusOn(`change ${key.name}`);
});

$("change-cancel").addEventListener("click", () => $("change").close());

whenKeyIsGiven(load);
live({ keys: () => loadAfterDialogs(load, [$("ask"), $("change")]) }, load);
