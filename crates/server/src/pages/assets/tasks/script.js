
// Shows, creates and changes the tasks of v1/tasks. Prompts and answers come from outside, so they are only used as text.

const PREVIEW_PAUSE_MS = 250;
const SHOWN_LOGS = 20;
// The full hour before this moment is at least an hour ahead. A nearer one could be over before it is sent.
const FAR_AHEAD_MS = 7_200_000;

const form = $("create-form");
const field = (name) => form.elements.namedItem(name);
let turn = 0;
const opened = new Set(); // ids of tasks whose log is shown

// In the time zone of the task, which the browser may not know.
function inZone(moment, timeZone) {
  const options = { weekday: "short", day: "numeric", month: "short", year: "numeric", ...clock };
  try {
    return `${when(moment, { ...options, timeZone })} ${timeZone}`;
  } catch {
    return when(moment, options);
  }
}

// The name that its creator gave it, if any.
const nameOf = ({ metadata }) => (typeof metadata.name === "string" && metadata.name !== "" ? metadata.name : null);
const titleOf = (task) => nameOf(task) ?? task.prompt;

function action(label, task, act, style = "plain") {
  const button = node("button", { type: "button", className: style, textContent: label });
  button.setAttribute("aria-label", `${label}: ${titleOf(task).slice(0, 60)}`);
  button.dataset.action = `${label.toLowerCase()} ${task.id}`;
  button.addEventListener("click", () => once(button, () => act(task, button)));
  return button;
}

function stateMark(state) {
  const mark = node("span", { className: "state", textContent: state });
  mark.dataset.state = state;
  return mark;
}

// --- the list ---

function every(value) {
  const amount = Number(value);
  if (!Number.isFinite(amount)) return `every ${value}`;
  const [unit, name] = [[86400, "day"], [3600, "hour"], [60, "minute"]].find(([length]) => amount % length === 0) ?? [1, "second"];
  return `every ${plural(amount / unit, name, `${name}s`)}`;
}

function scheduleOf(task) {
  if (task.schedule_type === "interval") return every(task.schedule_value);
  if (task.schedule_type === "once") return `once, ${task.schedule_value}`;
  const hasWords = !task.schedule.endsWith(task.schedule_value);
  return `${hasWords ? `${task.schedule} · ` : ""}${task.schedule_value}, ${task.timezone}`;
}

function card(task) {
  const isOver = task.status === "completed" || task.status === "cancelled";
  const log = action("Log", task, toggleLog);
  log.ariaExpanded = String(opened.has(task.id));
  const actions = [log];
  if (!isOver) {
    actions.unshift(action("Run now", task, runNow));
    actions.push(task.status === "paused" ? action("Resume", task, resume) : action("Pause", task, pause));
  }
  actions.push(action("Delete", task, deleteTask, "plain danger"));
  const title = node("h3", { textContent: titleOf(task), tabIndex: -1 });
  title.dataset.action = `title ${task.id}`;
  const made = node("li", { className: "card", id: `task-${task.id}` },
    node("div", { className: "head" }, title, stateMark(task.status)),
    facts([
      ["Prompt", nameOf(task) === null ? null : task.prompt],
      ["Schedule", scheduleOf(task)],
      ["Next run", task.next_run === null ? null : inZone(task.next_run, task.timezone)],
      ["Last run", task.last_run === null ? null : inZone(task.last_run, task.timezone)],
      ["Agent", task.agent],
      ["Reads first", task.first_calls.length === 0 ? null : task.first_calls.map(({ tool }) => tool).join(", ")],
      ["Model", task.model],
      ["Sends to", task.channel === null ? null : [task.channel, task.conversation_id].filter(Boolean).join(" ")],
      ["Key", task.key],
    ]),
    node("div", { className: "row" }, ...actions));
  if (opened.has(task.id)) {
    const log = node("div", { className: "log", id: `log-${task.id}` });
    // What was shown stays until the new log is there.
    log.append(...($(`log-${task.id}`)?.childNodes ?? []));
    made.append(log);
  }
  return made;
}

function showTasks(tasks) {
  const focused = document.activeElement?.dataset?.action;
  $("list").replaceChildren(...tasks.map(card));
  // Before the focus: what is hidden cannot get it.
  $("list-section").hidden = tasks.length === 0;
  $("empty").hidden = tasks.length > 0;
  if (nextFocus !== null && focusOn(nextFocus)) nextFocus = null;
  else if (focused) focusOn(focused);
  for (const id of opened) {
    if ($(`log-${id}`)) showLog(id);
    else opened.delete(id);
  }
  const active = tasks.filter(({ status }) => status === "active").length;
  put("count", tasks.length === 0 ? "" : plural(active, "active task", "active tasks"));
}

// What gets the focus when it is shown: a change and its event can load the list at the same time.
let nextFocus = null;

// --- the log ---

async function toggleLog(task) {
  if (opened.has(task.id)) opened.delete(task.id);
  else opened.add(task.id);
  await load();
  focusOn(`log ${task.id}`);
}

function runEntry(run, task) {
  const took = run.finished_at === null ? null : (new Date(run.finished_at) - new Date(run.started_at)) / 1000;
  const words = [recently(run.started_at)];
  if (took !== null) words.push(`took ${seconds(took)}`);
  if (run.attempt > 1) words.push(`attempt ${whole(run.attempt)}`);
  if (run.delivered_to !== null) words.push(`delivered to ${run.delivered_to}`);
  const made = node("li", {}, stateMark(run.outcome), node("small", { textContent: words.join(" · ") }));
  if (run.error !== null) {
    // A run that worked and sent nothing had no news. That is usual for a task that watches pages.
    const isQuiet = run.outcome === "succeeded" && run.delivered_to === null && task.channel !== null;
    made.append(node("p", { className: isQuiet ? "quiet" : "fault", textContent: run.error }));
  }
  if (run.result !== null) {
    const answer = node("pre", { textContent: run.result, tabIndex: 0 });
    answer.setAttribute("aria-label", "Answer");
    answer.setAttribute("role", "group");
    made.append(answer);
  }
  return made;
}

async function showLog(id) {
  const path = `v1/tasks/${encodeURIComponent(id)}`;
  const box = $(`log-${id}`);
  const [task, logs] = await Promise.all([askServer(path), askServer(`${path}/logs?limit=${SHOWN_LOGS}`)]);
  // It was closed meanwhile, or a newer list asks for it again.
  if (!box.isConnected) return;
  const failed = [task, logs].find((one) => one?.status !== 200 || one.body === null);
  if (failed !== undefined) return box.replaceChildren(node("p", { className: "fault", textContent: problem(failed) }));
  const parts = [];
  if (task.body.upcoming.length > 0) {
    parts.push(node("h4", { textContent: "Next runs" }), node("ul", { className: "chips" },
      ...task.body.upcoming.map((at) => node("li", { textContent: inZone(at, task.body.timezone) }))));
  }
  parts.push(node("h4", { textContent: "Runs" }));
  parts.push(logs.body.logs.length === 0
    ? node("p", { className: "quiet", textContent: "It has not run yet. Run it now to see its answer." })
    : node("ul", { className: "runs" }, ...logs.body.logs.map((run) => runEntry(run, task.body))));
  box.replaceChildren(...parts);
}

// --- changes ---

async function changed(sent, done, focus = null) {
  const answer = await sent;
  const worked = answer !== null && answer.status < 400;
  showNotice(worked ? "" : problem(answer));
  if (worked) nextFocus = focus;
  await load();
  if (worked) say(done);
  return worked;
}

const pathOf = (task, word) => `v1/tasks/${encodeURIComponent(task.id)}/${word}`;
const pause = (task) => changed(post(pathOf(task, "pause")), "The task is paused.", `resume ${task.id}`);
const resume = (task) => changed(post(pathOf(task, "resume")), "The task is active.", `pause ${task.id}`);

async function runNow(task) {
  opened.add(task.id);
  await changed(post(pathOf(task, "run")), "The task is running.", `run now ${task.id}`);
}

async function deleteTask(task) {
  const agreed = await confirmed({ title: "Delete the task?", text: `Its log is deleted too: ${titleOf(task).slice(0, 200)}`, yes: "Delete" });
  if (agreed && await changed(remove(`v1/tasks/${encodeURIComponent(task.id)}`), "The task is deleted.")) $("create").querySelector("summary").focus();
}

// --- the form ---

const kind = () => field("schedule_type").value;

function scheduleValue() {
  if (kind() === "cron") return field("cron").value.trim();
  if (kind() === "every") return field("words").value.trim();
  if (kind() === "interval") return String(Number(field("every").value) * Number(field("unit").value));
  return field("once").value;
}

const schedule = () => ({
  schedule_type: kind(),
  schedule_value: scheduleValue(),
  ...(field("timezone").value.trim() === "" ? {} : { timezone: field("timezone").value.trim() }),
});

// The fields of the form for the fields of the API.
const INPUTS = { schedule_value: { cron: "cron", interval: "every", once: "once", every: "words" } };
const inputOf = (param) => field(INPUTS[param]?.[kind()] ?? param ?? "");

function markWrong(answer, fault) {
  const input = inputOf(answer?.body?.error?.param?.split(/[.[]/)[0]);
  if (!input) return;
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-errormessage", fault);
  return input;
}

function unmark() {
  for (const input of form.elements) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-errormessage");
  }
}

let previewTurn = 0;
async function preview() {
  const own = ++previewTurn;
  if (scheduleValue() === "") {
    put("preview-fault", "");
    return $("preview").replaceChildren();
  }
  const answer = await post("v1/tasks/preview", schedule());
  if (own !== previewTurn) return;
  unmark();
  if (answer?.status !== 200 || answer.body === null) {
    $("preview").replaceChildren();
    put("preview-fault", problem(answer));
    markWrong(answer, "preview-fault");
    return;
  }
  put("preview-fault", "");
  $("preview").replaceChildren(...answer.body.runs.map((at) => node("li", { textContent: inZone(at, answer.body.timezone) })));
}

let previewTimer = 0;
function previewSoon() {
  clearTimeout(previewTimer);
  previewTimer = setTimeout(preview, PREVIEW_PAUSE_MS);
}

function showKind() {
  for (const one of form.querySelectorAll("[data-kind]")) one.hidden = one.dataset.kind !== kind();
  suggestOnce();
}

let suggested = ""; // the time that the page has filled in

// Fills in a time in the zone of the task, until the user enters another time.
function suggestOnce() {
  if (kind() !== "once" || field("once").value !== suggested) return;
  const zone = field("timezone").value.trim() || field("timezone").placeholder;
  suggested = wallTime(new Date(Date.now() + FAR_AHEAD_MS), zone);
  field("once").value = suggested;
}

// The full hour of a moment as the clocks of a zone show it, in the form of the input. A zone that the browser does not know is that of the browser.
function wallTime(moment, zone) {
  const parts = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", hourCycle: "h23" };
  let shown;
  try {
    shown = new Intl.DateTimeFormat("en-GB", { ...parts, timeZone: zone || undefined });
  } catch {
    shown = new Intl.DateTimeFormat("en-GB", parts);
  }
  const { year, month, day, hour } = Object.fromEntries(shown.formatToParts(moment).map(({ type, value }) => [type, value]));
  return `${year}-${month}-${day}T${hour}:00`;
}

field("schedule_type").addEventListener("change", () => {
  showKind();
  preview();
});
field("timezone").addEventListener("input", suggestOnce);
for (const name of ["cron", "words", "every", "unit", "once", "timezone"]) field(name).addEventListener("input", previewSoon);

// The choices are loaded when the form is opened for the first time.
let hasChoices = false;
async function loadChoices() {
  if (hasChoices) return;
  const [models, channels] = await Promise.all([askServer("v1/models"), askServer("v1/channels")]);
  // What was chosen stays: the form may have been opened twice.
  const offer = (choice, first, names) => choice.replaceChildren(node("option", { value: "", textContent: first }),
    ...names.map((name) => node("option", { value: name, textContent: name, selected: name === choice.value })));
  offer(field("model"), "the default model", (models?.body?.data ?? []).map(({ id }) => id));
  const names = mayDeliver && channels?.status === 200 ? channels.body?.channels ?? [] : [];
  offer(field("channel"), "nowhere (only the log)", names);
  for (const one of form.querySelectorAll("[data-delivery]")) one.hidden = names.length === 0;
  $("zones").replaceChildren(...(Intl.supportedValuesOf?.("timeZone") ?? []).map((name) => node("option", { value: name })));
  hasChoices = models?.status === 200;
}

$("create").addEventListener("toggle", () => {
  if (!$("create").open) return;
  loadChoices();
  preview();
});

function entered() {
  const task = { prompt: field("prompt").value.trim(), ...schedule(), agent: field("agent").value, missed: field("missed").value };
  for (const name of ["model", "channel", "conversation_id"]) if (field(name).value.trim() !== "") task[name] = field(name).value.trim();
  if (task.channel === undefined) delete task.conversation_id;
  for (const name of ["timeout", "retries"]) if (field(name).value !== "") task[name] = Number(field(name).value);
  return task;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  once(form.querySelector("[type=submit]"), async () => {
    unmark();
    put("create-fault", "");
    const answer = await post("v1/tasks", entered());
    if (answer?.status !== 201) {
      put("create-fault", problem(answer));
      return markWrong(answer, "create-fault")?.focus();
    }
    field("prompt").value = "";
    $("create").open = false;
    nextFocus = `title ${answer.body.id}`;
    await load();
    say("The task is created.");
  });
});

// --- loading ---

let mayDeliver = false;

async function load() {
  const own = ++turn;
  const answer = await askServer("v1/tasks");
  if (own !== turn) return;
  if ($("ask").open) return loadAfterDialogs(load);
  if (!isAdmitted(answer, "tasks")) return;
  const isGood = answer?.status === 200 && answer.body !== null;
  noteLoad(isGood ? "" : problem(answer));
  if (!isGood) return;
  $("key-form").hidden = true;
  const { tasks, agents, timezone, may_deliver } = answer.body;
  mayDeliver = may_deliver;
  field("timezone").placeholder = timezone;
  if (field("agent").options.length === 0) {
    field("agent").replaceChildren(...agents.map((name) => node("option", { value: name, textContent: name, selected: name === "simple" })));
  }
  showTasks(tasks);
  $("tasks").hidden = false;
}

whenKeyIsGiven(load);
showKind();
live({ tasks: () => loadAfterDialogs(load) }, load);
