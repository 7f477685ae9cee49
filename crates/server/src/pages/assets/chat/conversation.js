// The conversation that is shown, and asking in it.

const MOST_RUNS = 3; // answers at once; browsers have six connections to a server
const LONGEST_QUESTION = 1_000_000;
const HEARD = 500; // characters of an answer that are said aloud

const runs = new Map(); // turn → { chat, controller, left }
let chat = newChat();
let opening = 0;
let shownTimer = 0;
let chatChanges = 0; // how often conversations changed since the page opened

const isRunning = (one) => one.turns.some((turn) => runs.has(turn));

function startNew() {
  if (location.hash !== "") history.pushState(null, "", location.pathname + location.search);
  opening += 1;
  show(newChat(lastChoice()));
}

async function openFromAddress() {
  // What is opened last is shown, also if it is at hand.
  const turn = ++opening;
  const id = decodeURIComponent(location.hash.slice(1));
  if (id === "") {
    if (chat.id !== null || $("title").textContent === "") startNew();
    return;
  }
  if (id === chat.id) return;
  const known = [...runs.values(), ...[...unsaved.values()].map((one) => ({ chat: one }))].find((run) => run.chat.id === id);
  if (known) return show(known.chat);
  try {
    const heard = chatChanges;
    const found = await openChat(id);
    if (turn !== opening) return;
    show(found);
    // It may have changed after it was read.
    if (heard !== chatChanges) refreshShown();
  } catch ({ kind, message }) {
    if (turn !== opening) return;
    if (kind === "missing") startNew();
    if (kind !== "key") hint(kind === "missing" ? "This conversation does not exist any more." : message);
  }
}

function show(found) {
  const isOther = found !== chat;
  chat = found;
  showAddress();
  if (isOther) {
    pair = null;
    views.clear();
  }
  stopEditing();
  hint("");
  closeList();
  showSettings();
  showThread();
  askTabs();
  toTheEnd();
  if (matchMedia("(hover: hover)").matches && $("key-form").hidden) $("question").focus();
}

// Without an event, which would end the opening of another conversation.
function showAddress() {
  const address = `#${encodeURIComponent(chat.id)}`;
  if (chat.id !== null && location.hash !== address) history.pushState(null, "", address);
}

// Another tab changed conversations: what is shown here follows. Several changes at once are one request.
function refreshShown() {
  chatChanges += 1;
  clearTimeout(shownTimer);
  shownTimer = setTimeout(loadShown, REFRESH_MS);
}

async function loadShown() {
  const refreshed = chat;
  if (refreshed.id === null) return;
  const before = [refreshed.shown, refreshed.turns.length];
  try {
    const changed = await refreshChat(refreshed);
    if (chat !== refreshed) return;
    for (const turn of changed) views.get(turn)?.answer.update().then(follow);
    const isMoved = before[0] !== refreshed.shown || before[1] !== refreshed.turns.length;
    // Another tab may have chosen one of two answers.
    if (pair !== null && !pair.includes(refreshed.shown)) pair = null;
    showSettings();
    if (isMoved || changed.length > 0) showThread();
    else showAround();
    if (changed.length > 0 && !isElsewhere(refreshed)) hint("");
    askTabs();
  } catch ({ kind, message }) {
    if (chat !== refreshed || kind !== "missing" || isRunning(refreshed)) return;
    startNew();
    hint(message);
  }
}

// --- asking ---

function roomToAsk(count = 1) {
  if (isRunning(chat)) return false;
  const reason = whyNot(count);
  hint(reason);
  return reason === "";
}

// Why no question can be asked now; empty if one can.
function whyNot(count) {
  if (isElsewhere(chat)) return "This conversation is being answered in another tab.";
  if (pair !== null && editing === null) return "Two answers are compared. Choose the one to continue with.";
  return runs.size + count <= MOST_RUNS ? "" : `At most ${MOST_RUNS} answers can run at once. Wait for one of them, or stop it.`;
}

function send() {
  const text = $("question").value.trim();
  const attachments = tray.ready();
  if (attachments === null || (text === "" && attachments.length === 0)) return;
  if (editing?.what === "answer") return saveEditedAnswer(text);
  const models = comparedModels();
  if (!roomToAsk(models.length)) return;
  if (text.length > LONGEST_QUESTION) return hint(`A question has at most ${whole(LONGEST_QUESTION)} characters.`);
  const blind = models.find((model) => attachments.some(({ kind }) => kind === "image") && supports(model, "vision") === false);
  if (blind !== undefined) return hint(noPictures(blind));
  const parent = editing === null ? chat.shown : editing.turn.parent;
  if (chat.turns.length === 0) chat.title = titleOf(text) || attachments[0].name;
  if (editing === null) {
    setQuestion("");
    tray.clear();
  }
  stopEditing();
  removeNow();
  begin(parent, { text, attachments }, models);
}

// Asks one question, of one model or of two.
function begin(parent, question, models) {
  const asked = chat;
  const turns = models.map(() => ({ ...newTurn(parent, question), answer: newAnswer() }));
  asked.turns.push(...turns);
  asked.shown = turns[0];
  pair = turns.length > 1 ? turns : null;
  turns.forEach((turn) => runs.set(turn, { chat: asked, controller: new AbortController(), left: false }));
  showThread();
  toTheEnd();
  say("Hob is answering.");
  turns.forEach((turn, index) => answerTurn(asked, turn, models[index]));
}

// The same question to another model, or the same one, as a new branch. A question that did not reach the server is replaced.
function retry(turn, model) {
  pair = null;
  if (!roomToAsk()) return;
  const isLost = turn.id === null && turn.answer.ending === "failed" && turn.answer.text === "";
  if (isLost && !chat.turns.some(({ parent }) => parent === turn)) chat.turns.splice(chat.turns.indexOf(turn), 1);
  begin(turn.parent, turn.question, [model]);
}

function requestFor(asked, turn, model) {
  const { agent, system, temperature, max_tokens } = asked.settings;
  const own = { temperature, max_tokens };
  return {
    model,
    messages: messagesFor(pathTo(turn), system, { pictures: supports(model, "vision") !== false }),
    ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== null)),
    ...(agent ? { agent, steps: true } : {}),
    ...(agent && chosenTools(asked.settings) !== null ? { agent_tools: chosenTools(asked.settings) } : {}),
    ...(usesDocuments(asked) ? { documents: true } : {}),
  };
}

// Answers a turn of a conversation, which need not be the one that is shown.
async function answerTurn(asked, turn, model) {
  const { answer } = turn;
  const run = runs.get(turn);
  const view = () => (asked === chat ? views.get(turn)?.answer : undefined);
  let kind = "";
  try {
    await saveQuestion(asked, turn);
    if (asked === chat) showAddress();
    run.controller.signal.throwIfAborted();
    tellTabs(asked, turn, true);
    await ask(requestFor(asked, turn, model), answer, {
      headers: keyHeaders(),
      signal: run.controller.signal,
      changed: () => view()?.updateSoon(follow),
    });
    endAnswer(answer);
  } catch (error) {
    kind = run.controller.signal.aborted ? "stopped" : error.kind ?? "broken";
    answer.ending = kind === "stopped" ? "stopped" : "failed";
    answer.error = kind === "stopped" ? "" : error.message;
  }
  if (run.left) return;
  runs.delete(turn);
  // Steps that were under way have no result.
  for (const step of answer.steps) step.success ??= false;
  const saved = kind === "away" && turn.id === null ? null : saveAnswer(asked, turn);
  if (asked === chat) showAround();
  await view()?.update();
  follow();
  await saved;
  keepCompletion(asked, turn);
  tellTabs(asked, turn, false);
  if (view()) {
    await view().update();
    follow();
    say([view().remarks, view().heard.slice(0, HEARD)].filter(Boolean).join(" "));
  }
  if (asked === chat) showAround();
  refreshList();
  if (kind === "key") lock();
  else if (answer.ending === "failed") watch.forget();
}

// The question is saved before the engine is asked. A server that cannot save still answers.
async function saveQuestion(asked, turn) {
  try {
    await saveTurn(asked, turn);
    showNotSaved("");
  } catch (error) {
    if (error.kind === "key" || error.kind === "away") throw error;
    if (error.kind === "denied") storeRefusal = error.message;
    showNotSaved(error.message);
  }
  refreshList();
}

// How a stream that came to its end ended.
function endAnswer(answer) {
  const cut = { length: "Cut here: the answer reached its length limit.", content_filter: "Cut here by the engine's filter." }[answer.finish];
  const remarks = warningsOf(answer);
  answer.ending = cut === undefined ? "complete" : "cut";
  // A warning that the model repeated itself says it better.
  answer.error = [remarks, answer.warnings.includes("loop-stopped") ? "" : cut].filter(Boolean).join(" ");
}

function stop() {
  for (const [turn, { controller }] of runs) if (chat.turns.includes(turn)) controller.abort();
  $("question").focus();
}

// The page is being closed: what has arrived is saved.
function leave() {
  for (const [turn, run] of runs) {
    run.left = true;
    run.controller.abort();
    saveWhileLeaving(run.chat, turn);
    Object.assign(turn.answer, { ending: "failed", error: "The page was closed before the answer ended." });
    tellTabs(run.chat, turn, false);
  }
  runs.clear();
  removeNow();
}
