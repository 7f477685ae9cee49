
// Shows v1/model-files and v1/model-files/search, and downloads with api/pull. Names come from outside, so they are only used as text.

const speed = (rate) => `${format(rate, { maximumSignificantDigits: 2 })} tokens a second`;

const chip = (text, className = "") => node("li", { textContent: text, className });

function action(label, name, act, style = "plain") {
  const button = node("button", { type: "button", className: style, textContent: label });
  button.setAttribute("aria-label", `${label}: ${name}`);
  button.dataset.action = `${label} ${name}`;
  button.addEventListener("click", () => act(button));
  return button;
}

// --- what there is ---

function engineCard(engine) {
  const [state, className] = engine.healthy === null ? ["not checked yet", ""] : engine.healthy ? ["answers", "good"] : ["does not answer", "bad"];
  return node("li", { className: "card" },
    node("h3", { textContent: engine.key }),
    node("ul", { className: "chips" }, chip(state, className)),
    facts([["Address", engine.hosts.length ? engine.hosts : engine.address || "in this program"]]));
}

function deviceCard(device) {
  return node("li", { className: "card" },
    node("h3", { textContent: device.description }),
    facts([["Device", `${device.name}, ${device.backend}`], ["Memory", `${size(device.memory_free)} of ${size(device.memory_total)} free`]]));
}

function loadedLine(loaded) {
  const parts = [loaded.host ?? "this program"];
  if (loaded.memory !== null) parts.push(size(loaded.memory));
  if (loaded.memory_on_cards) parts.push(`${size(loaded.memory_on_cards)} of it on graphics cards`);
  for (const share of loaded.devices) parts.push(`${plural(share.layers, "layer", "layers")} on ${share.device}`);
  if (loaded.expires_at !== null) parts.push(`until ${recently(loaded.expires_at)}`);
  return parts.join(" · ");
}

function modelCard(model) {
  const chips = [];
  if (model.default) chips.push(chip("default", "mark-default"));
  if (model.loaded.length) chips.push(chip("in memory", "good"));
  if (model.kind === "embedding") chips.push(chip("embeddings"));
  const actions = [];
  if (!model.default && model.kind === "text") actions.push(action("Use as default", model.id, (button) => useAsDefault(model, button)));
  if (model.can_delete) actions.push(action("Delete", model.id, () => deleteModel(model), "plain danger"));
  return node("li", { className: model.default ? "card default" : "card" },
    node("h3", { textContent: model.id, tabIndex: -1 }),
    ...(chips.length ? [node("ul", { className: "chips" }, ...chips)] : []),
    facts([
      ["Engine", model.engine],
      ["Size", model.size !== null && size(model.size)],
      ["Parameters", model.parameters !== null && format(model.parameters, { notation: "compact", maximumSignificantDigits: 3 })],
      ["Quantisation", model.quantization],
      ["Context", model.context !== null && plural(model.context, "token", "tokens")],
      ["Speed", model.tokens_per_second !== null && `${speed(model.tokens_per_second)}, measured`],
      ["In memory", model.loaded.map(loadedLine)],
    ]),
    ...(actions.length ? [node("div", { className: "row" }, ...actions)] : []));
}

function showModels(list) {
  fill("engines", [...list.engines.map(engineCard), ...list.devices.map(deviceCard)]);
  const rank = (model) => (model.default ? 0 : model.loaded.length ? 1 : 2);
  fill("models", [...list.data].sort((one, other) => rank(one) - rank(other) || one.id.localeCompare(other.id)).map(modelCard));
  $("empty").hidden = list.data.length > 0;
  $("models-section").hidden = list.data.length === 0;
  // Without an engine, nothing can be downloaded for it.
  put("empty-text", list.message
    ? "No engine answers. Start one, such as Ollama with 'ollama serve'; this page shows its models by itself."
    : "Choose a model below and download it. A model that fits this machine is marked.");
  put("empty-reason", list.message ?? "");
  const loaded = list.data.filter((model) => model.loaded.length).length;
  put("count", `${plural(list.data.length, "model", "models")}, ${whole(loaded)} in memory`);
}

const ENGINE_MS = 3000;
let engineTimer = 0;
const loads = inOrder();

async function load() {
  const isInOrder = loads();
  const answer = await askServer("v1/model-files");
  if (!isInOrder()) return;
  if ($("ask").open) return loadAfterDialogs(load);
  if (!isAdmitted(answer, "content")) return;
  const isGood = answer?.status === 200 && answer.body !== null;
  noteLoad(isGood ? "" : problem(answer));
  if (!isGood) return;
  $("key-form").hidden = true;
  showModels(answer.body);
  // An engine that starts says nothing; a page that becomes visible loads anyway.
  clearTimeout(engineTimer);
  if (answer.body.message && !document.hidden) engineTimer = setTimeout(load, ENGINE_MS);
  const isFirst = $("content").hidden;
  $("content").hidden = false;
  if (!isFirst) return;
  search();
  loadDownloads();
}

// --- changes ---

async function useAsDefault(model, button) {
  await once(button, async () => {
    const answer = await patch("v1/settings", { settings: { "intelligence.default_model": model.id } });
    if (answer?.status !== 200) return showFailure(problem(answer));
    await load();
    const { changed = [], after_restart: later = [] } = answer.body ?? {};
    // Nothing changed although another model is the default: another setting decides.
    if (changed.length === 0) return showFailure(`${model.id} is chosen in the settings, but [server] model overrides it. Remove that line from config.toml.`);
    showDone(`${model.id} is the default model.${later.length > 0 ? " Restart Hob to use it." : ""}`);
  });
}

async function deleteModel(model) {
  const agreed = await confirmed({
    title: `Delete ${model.id}?`,
    text: "Its files are removed from the disk. To use it again, download it again.",
    yes: "Delete",
  });
  if (!agreed) return;
  showNotice("");
  const answer = await askServer("api/delete", {
    method: "DELETE", headers: { "content-type": "application/json" }, body: JSON.stringify({ model: model.id }),
  });
  await load();
  if (answer?.status !== 200) return showFailure(answer?.body?.error ?? problem(answer));
  say(`${model.id} is deleted.`);
  $("models-title").tabIndex = -1;
  $("models-title").focus();
}

// --- search ---

let searched = 0; // the number of the last search
let isAsked = false; // whether the user waits for a result

function fitLine(found) {
  if (found.fits === null) return "";
  const needs = `about ${size(found.memory)} of memory`;
  return found.fits ? `yes, ${needs}` : `no, needs ${needs}`;
}

function foundCard(found) {
  const chips = [];
  if (found.fits !== null) chips.push(found.fits ? chip("fits this machine", "good") : chip("does not fit", "bad"));
  chips.push(...found.capabilities.map((name) => chip(name)), chip(found.built_in ? "built-in list" : "model hub"));
  return node("li", { className: "card" },
    node("h3", { textContent: found.name }),
    ...(found.about ? [node("p", { textContent: found.about })] : []),
    node("ul", { className: "chips" }, ...chips),
    facts([
      ["Size", found.size !== null && `about ${size(found.size)}`],
      ["Fits", fitLine(found)],
      ["Speed", found.tokens_per_second !== null && `about ${speed(found.tokens_per_second)} on the processor`],
      ["Context", found.context !== null && plural(found.context, "token", "tokens")],
      ["Licence", found.license],
      ["Downloads", found.downloads !== null && `${count(found.downloads)} in the last month`],
    ]),
    node("div", { className: "row" }, found.downloaded
      ? node("span", { className: "quiet", textContent: "downloaded" })
      : action("Download", found.name, () => pull(found.name))));
}

async function search() {
  const number = searched += 1;
  const query = $("query").value.trim();
  const answer = await askServer(`v1/model-files/search?query=${encodeURIComponent(query)}`);
  // A later search is under way.
  if (number !== searched) return;
  // The search after a download must not replace what was said meanwhile.
  const isAnnounced = isAsked && query !== "";
  isAsked = false;
  if (answer?.status !== 200 || answer.body === null) return put("search-fault", problem(answer));
  const { data, machine, message } = answer.body;
  put("search-fault", message ? `The model hub has no results: ${message}` : "");
  put("machine", machine === null ? "" : `This machine has ${size(machine.memory)} of memory for models` +
    `${machine.disk_free === null ? "" : ` and ${size(machine.disk_free)} of free disk`}. Memory and speed are estimates.`);
  fill("found", data.map(foundCard));
  $("found-none").hidden = data.length > 0;
  if (isAnnounced) say(plural(data.length, "model", "models"));
}

$("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  isAsked = true;
  search();
});

// --- downloads ---

let download = null; // the one of this page: { name, controller }

const PROGRESS_MS = 1500;
let progressTimer = 0;
const looks = inOrder();

// Those that other pages and other programs have begun. The stream of changes says when one begins and ends; the progress is asked for.
async function loadDownloads() {
  clearTimeout(progressTimer);
  const isInOrder = looks();
  const answer = await askServer("v1/model-files/downloads");
  if (!isInOrder() || answer?.status !== 200) return;
  const others = listedDownloads(answer.body?.data ?? []);
  $("downloads-section").hidden = others.length === 0;
  fill("downloads", others.map(downloadCard));
  clearTimeout(progressTimer);
  if (others.length > 0 && !document.hidden) progressTimer = setTimeout(loadDownloads, PROGRESS_MS);
}

// One download of this page has its own card.
function listedDownloads(all) {
  const own = all.findIndex(({ model }) => model === download?.name);
  return all.filter((_, index) => index !== own);
}

function downloadCard({ model, status, total, completed }) {
  const bar = node("progress", { max: 1, ariaLabel: `Download of ${model}` });
  if (total) bar.value = (completed ?? 0) / total;
  return node("li", { className: "card" },
    node("h3", { textContent: model }),
    bar,
    node("p", { className: "quiet", textContent: stepText({ status, total, completed }) }));
}

const stepText = (step) =>
  [step.status, step.total ? `${size(step.completed ?? 0)} of ${size(step.total)}` : ""].filter(Boolean).join(" · ");

function showStep(step) {
  put("pull-text", stepText(step));
  if (step.total) $("pull-bar").value = (step.completed ?? 0) / step.total;
  else $("pull-bar").removeAttribute("value");
}

function endPull(title, fault = "") {
  download = null;
  showNotice("");
  put("pull-title", title);
  put("pull-text", "");
  put("pull-fault", fault);
  $("pull-bar").hidden = true;
  $("pull-cancel").hidden = true;
  $("pull-close").hidden = false;
  say(title);
}

async function pull(name) {
  if (download !== null) return showFailure("Another download is in progress on this page. Wait for its end, or cancel it.");
  const own = new AbortController();
  download = { name, controller: own };
  put("pull-title", `Downloading ${name}`);
  put("pull-fault", "");
  showStep({ status: "Keep this page open. Closing it stops the download; the next download continues where it stopped" });
  $("pull-card").hidden = $("pull-bar").hidden = $("pull-cancel").hidden = false;
  $("pull-close").hidden = true;
  $("pull-title").focus();
  try {
    const answer = await fetch("api/pull", {
      method: "POST", credentials: "same-origin", signal: own.signal,
      headers: { "content-type": "application/json", ...keyHeaders() }, body: JSON.stringify({ model: name }),
    });
    if (!answer.ok) {
      const body = await answer.json().catch(() => null);
      return endPull(`${name} is not downloaded`, body?.error?.message ?? body?.error ?? `Hob answered with status ${answer.status}.`);
    }
    const last = await readSteps(answer.body);
    if (last?.error) return endPull(`${name} is not downloaded`, last.error.message ?? last.error);
    if (last?.status !== "success") return endPull(`${name} is not downloaded`, "The connection broke. Try again: it continues where it stopped.");
    endPull(`${name} is downloaded`);
    await load();
    await search();
  } catch {
    if (own.signal.aborted) endPull(`The download of ${name} is cancelled`);
    else endPull(`${name} is not downloaded`, "Hob does not answer. Try again: the download continues where it stopped.");
  }
}

// Shows each step, and returns the last.
async function readSteps(body) {
  let last = null;
  await readLines(body, (line) => {
    if (line.trim() === "") return;
    last = JSON.parse(line);
    if (last.status) showStep(last);
  });
  return last;
}

$("pull-cancel").addEventListener("click", () => download?.controller.abort());
$("pull-close").addEventListener("click", () => {
  $("pull-card").hidden = true;
  $("query").focus();
});
addEventListener("beforeunload", (event) => { if (download !== null) event.preventDefault(); });

whenKeyIsGiven(load);
live({ models: () => loadAfterDialogs(load), downloads: loadDownloads }, load);
