// The conversation that is shown, and asking in it.

const KEEP_MS = 2000; // how much of an answer a crash may cost
const MOST_RUNS = 3; // answers at once; browsers have six connections to a server
const LONGEST_QUESTION = 1_000_000;
const HEARD = 500; // characters of an answer that are said aloud

const store = openStore();
const runs = new Map(); // id of a conversation → { conversation, controller }
let current = null;
let views = [];
let editing = false;
let draft = ""; // what was being written when editing began

function startNew() {
  if (location.hash !== "") history.pushState(null, "", location.pathname + location.search);
  show({ ...newConversation(Date.now()), ...store.choice() });
}

function openFromAddress() {
  const id = location.hash.slice(1);
  if (current && id === current.id) return;
  const found = id === "" ? null : runs.get(id)?.conversation ?? store.open(id);
  if (found) show(found);
  else startNew();
}

function show(conversation) {
  current = conversation;
  if (conversation.messages.length > 0 && location.hash !== `#${conversation.id}`) location.hash = conversation.id;
  stopEditing();
  hint("");
  closeList();
  chooseModel(conversation.model);
  $("agent").value = conversation.agent;
  // An agent that is no longer in the list is deselected.
  if ($("agent").selectedIndex < 0) $("agent").value = conversation.agent = "";
  showThread();
  watchElsewhere();
  toTheEnd();
  if (matchMedia("(hover: hover)").matches && $("key-form").hidden) $("question").focus();
}

function showThread() {
  const conversation = current;
  const rated = ({ id, rating }) => {
    // Another tab may have continued it during the request.
    const newest = runs.get(conversation.id)?.conversation ?? store.open(conversation.id) ?? conversation;
    const message = newest.messages.find((one) => one.id === id);
    if (message) message.rating = rating;
    keep(newest);
    hint("");
    say(`Rated ${rating}.`);
  };
  const failed = ({ kind, message }) => (kind === "key" ? lock() : hint(message));
  views = conversation.messages.map((message) =>
    new MessageView(message, { again: message.role === "user" ? edit : retry, rated, failed, shown: follow }));
  $("thread").replaceChildren(...views.map((view) => view.root));
  showAround();
}

// Updates what depends on the state of the conversation.
function showAround() {
  const running = runs.has(current.id);
  const waiting = running || isElsewhere(current);
  const count = current.messages.length;
  put("title", current.title || "New conversation");
  document.title = current.title === "" ? "Hob: chat" : `${current.title} · Hob`;
  $("empty").hidden = count > 0 || !$("key-form").hidden;
  $("export").hidden = count === 0;
  $("send").hidden = running;
  $("stop").hidden = !running;
  // Only the last question can be asked again.
  views.forEach((view, index) => { view.again.hidden = waiting || index < count - 2; });
  showList();
}

// --- asking ---

// Why no question can be asked now; empty if one can.
function whyNot() {
  if (isElsewhere(current)) return "This conversation is being answered in another tab.";
  return runs.size < MOST_RUNS ? "" : `${MOST_RUNS} answers are on their way. Wait for one of them, or stop it.`;
}

function roomToAsk() {
  if (runs.has(current.id)) return false;
  const reason = whyNot();
  hint(reason);
  return reason === "";
}

function send() {
  const text = $("question").value.trim();
  if (text === "" || !roomToAsk()) return;
  if (text.length > LONGEST_QUESTION) return hint(`A question has at most ${LONGEST_QUESTION.toLocaleString()} characters.`);
  if (editing) current.messages.splice(lastQuestion());
  else setQuestion("");
  if (current.messages.length === 0) current.title = titleOf(text);
  current.messages.push(newQuestion(text));
  stopEditing();
  forgetRemoved();
  answer(current);
}

const lastQuestion = () => current.messages.findLastIndex((message) => message.role === "user");

function retry() {
  if (!roomToAsk()) return;
  current.messages.splice(lastQuestion() + 1);
  answer(current);
}

function edit() {
  if (!editing) draft = $("question").value;
  editing = true;
  $("editing").hidden = false;
  setQuestion(current.messages[lastQuestion()].content);
  $("question").focus();
}

function stopEditing() {
  if (editing) setQuestion(draft);
  editing = false;
  $("editing").hidden = true;
}

// Answers the last question of a conversation, which need not be the one that is shown.
async function answer(conversation) {
  const question = {
    model: conversation.model,
    messages: turnsOf(conversation.messages),
    ...(conversation.agent === "" ? {} : { agent: conversation.agent }),
  };
  const message = { ...newAnswer(), alive: Date.now() };
  conversation.messages.push(message);
  conversation.updated = Date.now();
  const controller = new AbortController();
  runs.set(conversation.id, { conversation, controller });
  keep(conversation);
  show(conversation);
  say("Hob is answering.");

  const shown = () => (current === conversation ? views.at(-1) : null);
  let kept = Date.now();
  const keepOften = () => {
    if (Date.now() - kept < KEEP_MS) return;
    message.alive = kept = Date.now();
    keep(conversation);
  };
  // Also while no text arrives: other tabs treat a tab without updates as closed.
  const timer = setInterval(keepOften, KEEP_MS);
  let kind = "";
  try {
    await ask(question, message, {
      headers: keyHeaders(),
      signal: controller.signal,
      changed: () => {
        shown()?.updateSoon(follow);
        keepOften();
      },
    });
    message.state = "complete";
  } catch (error) {
    kind = controller.signal.aborted ? "stopped" : error.kind ?? "broken";
    message.state = kind === "stopped" ? "stopped" : "broken";
    message.trouble = kind === "stopped" ? "" : error.message;
  }
  clearInterval(timer);
  message.alive = 0;
  runs.delete(conversation.id);
  conversation.updated = Date.now();
  keep(conversation);
  const view = shown();
  if (view) {
    showAround();
    await view.update();
    follow();
    say([view.remarks, view.heard.slice(0, HEARD)].filter(Boolean).join(" "));
  } else {
    showList();
  }
  if (kind === "key") lock();
  else if (message.state === "broken") watch.forget();
}

function stop() {
  runs.get(current.id)?.controller.abort();
  $("question").focus();
}
