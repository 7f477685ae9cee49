
// Shows, adds, searches and forgets the documents of v1/memory. Names and passages come from outside, so they are only used as text.

const PAGE = 50;
const MORE = 200;
const MOST_PASSAGES = 10;
const FILTER_PAUSE_MS = 250;
const BUSY_PAUSE_MS = 1000;
const RECENT_MS = 600_000;
const MOST_TRIES = 120;

// What the page shows: one collection or all, a filter, and how much of each list.
const shown = { collection: null, filter: "", documents: PAGE, skipped: PAGE };
let mayAdd = false;
let mayManage = false;
let mayAddFolders = false;
let turn = 0;

const query = (fields) => {
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== "" && value !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

function action(label, name, act, style = "plain") {
  const button = node("button", { type: "button", className: style, textContent: label });
  button.setAttribute("aria-label", `${label} ${name}`);
  button.dataset.action = `${label.toLowerCase()} ${name}`;
  button.addEventListener("click", () => once(button, act));
  return button;
}

const entry = (title, lines, ...more) =>
  node("li", {}, node("div", { className: "what" }, node("strong", { textContent: title }),
    ...lines.filter(Boolean).map((line) => node("small", { textContent: line }))), ...more);

// --- changes ---

// Waits for the answer to a change, and shows everything as it is then. Returns whether it worked.
async function changed(sent, done) {
  const answer = await sent;
  const worked = answer !== null && answer.status < 400;
  showNotice(worked ? "" : problem(answer));
  await load();
  if (worked) say(done);
  return worked;
}

async function forget(one) {
  const agreed = await confirmed({
    title: `Forget ${one.name}?`,
    text: one.uploaded
      ? "Searches no longer find the document, and Hob deletes its copy of the file."
      : "Searches no longer find the document. The file itself stays.",
    yes: "Forget",
  });
  if (agreed) await changed(post("v1/memory/forget", { path: one.path }), `${one.name} is forgotten.`);
}

async function forgetCollection(name) {
  const agreed = await confirmed({
    title: `Forget the collection ${name}?`,
    text: "Searches no longer find its documents. Hob stops watching its folders, and deletes its copies of uploaded files. Other files stay.",
    yes: "Forget all",
  });
  if (!agreed) return;
  if (await changed(remove(`v1/memory/collections/${encodeURIComponent(name)}`), `${name} is forgotten.`)) choose(null);
}

async function removeFolder(folder) {
  const agreed = await confirmed({
    title: `Remove ${folder.path}?`,
    text: `Searches in ${folder.collection} no longer find its documents. The files stay.`,
    yes: "Remove",
  });
  if (agreed) await changed(remove(`v1/memory/folders/${folder.id}`), "The folder is removed.");
}

// --- lists ---

function showCollections(collections, stats) {
  const names = collections.map(({ name }) => name);
  if (shown.collection !== null && !names.includes(shown.collection)) shown.collection = null;
  const button = (name, label, total) => {
    const made = node("button", { type: "button", className: "plain", textContent: `${label} ${whole(total)}` });
    made.setAttribute("aria-pressed", String(shown.collection === name));
    made.dataset.action = `show ${name ?? "all"}`;
    made.addEventListener("click", () => choose(name));
    return made;
  };
  // A document may be in several collections, and counts once.
  const total = stats?.sources ?? collections.reduce((sum, one) => sum + one.documents, 0);
  fill("collections", [button(null, "All", total), ...collections.map((one) => button(one.name, one.name, one.documents))]);
  $("names").replaceChildren(...names.map((name) => node("option", { value: name })));
  if ($("into").value === "") $("into").value = names.includes("default") || names.length === 0 ? "default" : names[0];
  $("forget-collection").hidden = !mayManage || shown.collection === null;
  put("forget-collection", `Forget ${shown.collection ?? ""}`);
  const skipped = collections.reduce((sum, one) => sum + one.skipped, 0);
  const chunks = stats?.chunks ?? collections.reduce((sum, one) => sum + one.chunks, 0);
  put("count", total > 0 ? `${plural(total, "document", "documents")}, ${plural(chunks, "passage", "passages")}` : "");
  return { total, skipped };
}

function showDocuments(list) {
  fill("list", list.data.map((one) => entry(one.name, [
    one.path,
    [one.collections.join(", "), plural(one.chunks, "passage", "passages"), size(one.size),
      `indexed ${recently(one.indexed_at)}`].join(" · "),
  ], ...(mayManage ? [action("Forget", one.name, () => forget(one), "plain danger")] : []))));
  $("no-match").hidden = list.data.length > 0;
  $("more").hidden = list.next === null;
}

function showSkipped(list, total) {
  $("skipped-card").hidden = list.data.length === 0;
  put("skipped-title", list.next === null ? plural(list.data.length, "skipped file", "skipped files") : `${whole(Math.max(total, list.data.length))} skipped files`);
  fill("skipped", list.data.map((file) => entry(file.path.split(/[/\\]/).pop(), [file.reason, `${file.path} · ${file.collection}`],
    ...(mayManage ? [action("Forget", file.path, () =>
      changed(post("v1/memory/forget", { path: file.path, collection: file.collection }), "The file is forgotten."))] : []))));
  $("more-skipped").hidden = list.next === null;
}

function watchSwitch(folder) {
  const box = node("input", { type: "checkbox", checked: folder.watched });
  box.dataset.action = `watch ${folder.path}`;
  box.addEventListener("change", () => once(box, () => changed(
    patch(`v1/memory/folders/${folder.id}`, { watched: box.checked }),
    box.checked ? "The folder is watched." : "The folder is not watched any more.")));
  return node("label", { className: "check" }, box, node("span", { textContent: "watch" }), node("span", { className: "unseen", textContent: folder.path }));
}

function showFolders(folders) {
  $("folders-card").hidden = folders.length === 0;
  fill("folders", folders.map((folder) => entry(folder.path, [
    [folder.collection, folder.checked_at === null ? "not indexed yet" : `indexed ${recently(folder.checked_at)}`].join(" · "),
  ], ...(folder.fault === null ? [] : [node("p", { className: "fault", textContent: folder.fault })]),
  watchSwitch(folder),
  ...(mayAddFolders ? [action("Index again", folder.path, () => changed(
    post("v1/memory/folders", { path: folder.path, collection: folder.collection, watched: folder.watched }), "The folder is indexed again."))] : []),
  action("Remove", folder.path, () => removeFolder(folder), "plain danger"))));
}

const JOB_WORDS = { waiting: "waiting", running: "indexing", done: "done", failed: "failed" };

function jobEntry(job) {
  const name = job.kind === "upload" ? job.path.split(/[/\\]/).pop() : job.path;
  const figures = [JOB_WORDS[job.state], job.collection];
  if (job.state !== "waiting") figures.push(plural(job.indexed, "file indexed", "files indexed"));
  if (job.skipped > 0) figures.push(`${whole(job.skipped)} skipped`);
  if (job.removed > 0) figures.push(`${whole(job.removed)} removed`);
  if (job.vectors_total > 0) figures.push(`${whole(job.vectors)} of ${whole(job.vectors_total)} vectors`);
  const made = entry(name, [figures.join(" · ")]);
  if (job.state === "running") {
    const bar = node("progress", job.total ? { max: job.total, value: job.files } : {});
    bar.setAttribute("aria-label", `Progress of ${name}`);
    made.append(bar);
  }
  if (job.fault !== null) made.append(node("p", { className: "fault", textContent: job.fault }));
  return made;
}

function showJobs(jobs) {
  // Jobs that wait or run, and the latest that ended.
  const isNew = (job) => job.finished_at !== null && Date.now() - new Date(job.finished_at) < RECENT_MS;
  const listed = jobs.filter((job) => job.finished_at === null).concat(jobs.filter(isNew).slice(0, 5));
  $("jobs-card").hidden = listed.length === 0;
  fill("jobs", listed.map(jobEntry));
}

// --- loading ---

// A list up to `wanted` entries, as an answer. The server sends at most MORE at once.
async function askForList(path, fields, wanted) {
  let list = { data: [], next: null };
  do {
    const limit = Math.min(wanted - list.data.length, MORE);
    const answer = await askServer(`${path}${query({ ...fields, limit, after: list.next })}`);
    if (answer?.status !== 200 || answer.body === null) return answer;
    list = { data: [...list.data, ...answer.body.data], next: answer.body.next };
  } while (list.next !== null && list.data.length < wanted);
  return { status: 200, body: list };
}

async function load() {
  const own = ++turn;
  const collections = await askServer("v1/memory/collections");
  if (own !== turn) return;
  if (!isAdmitted(collections, "documents")) return;
  if (collections?.status !== 200 || collections.body === null) return noteLoad(problem(collections));
  const stats = await askServer("v1/memory/stats");
  if (own !== turn) return;
  $("key-form").hidden = true;
  ({ may_add: mayAdd, may_manage: mayManage, may_add_folders: mayAddFolders } = collections.body);
  const { total, skipped: skippedTotal } = showCollections(collections.body.data, stats?.status === 200 ? stats.body : null);
  const place = { collection: shown.collection };
  const [documents, skipped, jobs, folders] = await Promise.all([
    askForList("v1/memory/documents", { ...place, query: shown.filter }, shown.documents),
    askForList("v1/memory/skipped", place, shown.skipped),
    askServer("v1/memory/jobs"),
    mayManage ? askServer("v1/memory/folders") : { status: 200, body: { data: [] } },
  ]);
  if (own !== turn) return;
  if ($("ask").open) return loadAfterDialogs(load);
  const failed = [documents, skipped, jobs, folders].find((one) => one?.status !== 200 || one.body === null);
  noteLoad(failed === undefined ? "" : problem(failed));
  if (failed !== undefined) return;
  showDocuments(documents.body);
  showSkipped(skipped.body, skippedTotal);
  showJobs(jobs.body.data);
  showFolders(folders.body.data);
  $("add").hidden = !mayAdd;
  $("folder-form").hidden = !mayAddFolders;
  $("folder-elsewhere").hidden = !mayManage || mayAddFolders;
  $("search-card").hidden = total === 0;
  $("list-section").hidden = total === 0;
  $("empty").hidden = total > 0 || jobs.body.data.some((job) => job.finished_at === null);
  put("empty-text", mayAdd
    ? `Drop files below${mayAddFolders ? ", or add a folder" : ""}. Then search here, or ask about them on the chat page.`
    : "Your key may read documents, and there are none yet. Ask the owner of this server to add some.");
  $("documents").hidden = false;
}

function choose(collection) {
  Object.assign(shown, { collection, documents: PAGE, skipped: PAGE });
  if (collection !== null && mayAdd) $("into").value = collection;
  load();
}

$("forget-collection").addEventListener("click", () => once($("forget-collection"), () => forgetCollection(shown.collection)));
for (const [button, name] of [["more", "documents"], ["more-skipped", "skipped"]]) {
  $(button).addEventListener("click", () => once($(button), async () => {
    const known = shown[name];
    shown[name] += MORE;
    await load();
    // The first of the new entries gets the focus, because the button may be gone.
    const first = $(name === "documents" ? "list" : "skipped").children[known];
    if (first) first.tabIndex = -1;
    first?.focus();
  }));
}

let filterTimer = 0;
$("filter").addEventListener("input", () => {
  clearTimeout(filterTimer);
  filterTimer = setTimeout(() => {
    Object.assign(shown, { filter: $("filter").value.trim(), documents: PAGE });
    load();
  }, FILTER_PAUSE_MS);
});

// --- adding ---

const collectionToFill = () => $("into").value.trim() || "default";
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// The server indexes some files at a time; the others wait here.
async function sendFile(file, collection) {
  const path = `v1/memory/documents${query({ name: file.name, collection })}`;
  for (let tries = 1; ; tries += 1) {
    const answer = await askServer(path, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file });
    if (answer?.body?.error?.code !== "too_many_jobs" || tries === MOST_TRIES) return answer;
    await wait(BUSY_PAUSE_MS);
  }
}

// More files can be added while others are being sent.
const sending = { count: 0, faults: [] };

async function sendFiles(files) {
  const collection = collectionToFill();
  if (sending.count === 0) sending.faults = [];
  sending.count += 1;
  put("add-fault", sending.faults.join(" "));
  let sent = 0;
  for (const file of files) {
    const answer = await sendFile(file, collection);
    if (answer?.status === 202) sent += 1;
    else sending.faults.push(`${file.name}: ${problem(answer)}`);
  }
  sending.count -= 1;
  put("add-fault", sending.faults.join(" "));
  if (sent > 0) say(`${plural(sent, "file is", "files are")} being indexed.`);
  await load();
}

$("files").addEventListener("change", async () => {
  const files = [...$("files").files];
  await sendFiles(files);
  $("files").value = "";
});
for (const kind of ["dragenter", "dragover"]) {
  $("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").dataset.over = "";
  });
}
$("drop").addEventListener("dragleave", () => delete $("drop").dataset.over);
$("drop").addEventListener("drop", (event) => {
  event.preventDefault();
  delete $("drop").dataset.over;
  sendFiles([...event.dataTransfer.files]);
});
// A file beside the field would replace the page.
for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());

$("folder-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  once(form.querySelector("[type=submit]"), async () => {
    const { path, watched } = form.elements;
    put("folder-fault", "");
    path.removeAttribute("aria-invalid");
    const answer = await post("v1/memory/folders", { path: path.value.trim(), collection: collectionToFill(), watched: watched.checked });
    if (answer?.status !== 202) {
      put("folder-fault", problem(answer));
      path.setAttribute("aria-invalid", "true");
      return path.focus();
    }
    path.value = "";
    await load();
    say("The folder is being indexed.");
  });
});

// --- searching ---

const PLACES = { line: "line", page: "page", paragraph: "paragraph", row: "row", slide: "slide" };

function passageEntry(passage, best) {
  // Scores by words alone are relative to the best one; the others say by themselves how relevant the passage is.
  const score = format(best === null ? passage.score : passage.score / best, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const made = entry(passage.title, [`${passage.source}, ${PLACES[passage.place]} ${whole(passage.line)}`]);
  made.prepend(node("span", { className: "score", textContent: score, title: "score" }));
  const text = node("blockquote", { textContent: passage.text, tabIndex: 0 });
  made.querySelector(".what").append(text);
  return made;
}

let searched = 0; // the number of the last search

$("search-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("query").value.trim();
  if (text === "") {
    put("found", "Enter what to search for.");
    return $("query").focus();
  }
  const number = searched += 1;
  const wanted = { query: text, top_k: MOST_PASSAGES, ...(shown.collection === null ? {} : { collection: shown.collection }) };
  const answer = await post("v1/memory/search", wanted);
  // A later search is under way.
  if (number !== searched) return;
  if (answer?.status !== 200 || answer.body === null) {
    $("passages").replaceChildren();
    return put("found", problem(answer));
  }
  const { passages, backend } = answer.body;
  const best = backend !== "sqlite" || passages.length === 0 ? null : passages[0].score || 1;
  $("passages").replaceChildren(...passages.map((passage) => passageEntry(passage, best)));
  put("found", passages.length === 0 ? "Nothing found. Try other words." : plural(passages.length, "passage", "passages"));
});

// --- beginning ---

whenKeyIsGiven(load);
live({ documents: () => loadAfterDialogs(load) }, load);
