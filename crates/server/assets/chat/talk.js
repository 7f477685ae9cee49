// The conversation that is shown, and asking in it.

const KEEP_MS = 2000; // how much of an answer a crash may cost
const MOST_RUNS = 3; // answers at once; browsers have six connections to a server
const LONGEST_QUESTION = 1_000_000;
const HEARD = 500; // characters of an answer that are said aloud

const shelf = openShelf();
const runs = new Map(); // id of a conversation → { conversation, controller }
let current = null;
let views = [];
let editing = false;

function startNew() {
  if (location.hash !== "") history.pushState(null, "", location.pathname + location.search);
  show({ ...newConversation(Date.now()), ...shelf.choice() });
}

function openFromAddress() {
  const id = location.hash.slice(1);
  if (current && id === current.id) return;
  const found = id === "" ? null : runs.get(id)?.conversation ?? shelf.open(id);
  if (found) show(found);
  else startNew();
}

function show(conversation) {
  current = conversation;
  if (conversation.messages.length > 0 && location.hash !== `#${conversation.id}`) location.hash = conversation.id;
  stopEditing();
  closeList();
  chooseModel(conversation.model);
  $("agent").value = conversation.agent;
  // An agent that is no longer among the choices is chosen no longer.
  if ($("agent").selectedIndex < 0) $("agent").value = conversation.agent = "";
  showThread();
  toTheEnd();
  if (matchMedia("(hover: hover)").matches && $("key-form").hidden) $("question").focus();
}

function showThread() {
  views = current.messages.map((message) => new MessageView(message, message.role === "user" ? edit : retry));
  $("thread").replaceChildren(...views.map((view) => view.root));
  showAround();
}

// What depends on how far the conversation is.
function showAround() {
  const running = runs.has(current.id);
  const count = current.messages.length;
  put("title", current.title || "New conversation");
  document.title = current.title === "" ? "Hob: chat" : `${current.title} · Hob`;
  $("empty").hidden = count > 0 || !$("key-form").hidden;
  $("export").hidden = count === 0;
  $("send").hidden = running;
  $("stop").hidden = !running;
  // Only the last question can be asked anew.
  views.forEach((view, index) => { view.again.hidden = running || index < count - 2; });
  showList();
}

// --- asking ---

function roomToAsk() {
  if (runs.has(current.id)) return false;
  hint(runs.size < MOST_RUNS ? "" : `${MOST_RUNS} answers are on their way. Wait for one of them, or stop it.`);
  return runs.size < MOST_RUNS;
}

function send() {
  const text = $("question").value.trim();
  if (text === "" || !roomToAsk()) return;
  if (text.length > LONGEST_QUESTION) return hint(`A question has at most ${LONGEST_QUESTION.toLocaleString()} characters.`);
  if (editing) current.messages.splice(lastQuestion());
  if (current.messages.length === 0) current.title = titleOf(text);
  current.messages.push(newQuestion(text));
  stopEditing();
  setQuestion("");
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
  editing = true;
  $("editing").hidden = false;
  setQuestion(current.messages[lastQuestion()].content);
  $("question").focus();
}

function stopEditing() {
  if (editing) setQuestion("");
  editing = false;
  $("editing").hidden = true;
}

// Has the last question of a conversation answered, whichever is shown meanwhile.
async function answer(conversation) {
  const question = {
    model: conversation.model,
    messages: turnsOf(conversation.messages),
    ...(conversation.agent === "" ? {} : { agent: conversation.agent }),
  };
  const message = newAnswer();
  conversation.messages.push(message);
  conversation.updated = Date.now();
  const controller = new AbortController();
  runs.set(conversation.id, { conversation, controller });
  keep(conversation);
  show(conversation);
  say("Hob is answering.");

  const shown = () => (current === conversation ? views.at(-1) : null);
  let kept = Date.now();
  let kind = "";
  try {
    await ask(question, message, {
      headers: keyHeaders(),
      signal: controller.signal,
      changed: () => {
        shown()?.updateSoon(follow);
        if (Date.now() - kept < KEEP_MS) return;
        kept = Date.now();
        keep(conversation);
      },
    });
    message.state = "complete";
  } catch (error) {
    kind = controller.signal.aborted ? "stopped" : error.kind ?? "broken";
    message.state = kind === "stopped" ? "stopped" : "broken";
    message.trouble = kind === "stopped" ? "" : error.message;
  }
  runs.delete(conversation.id);
  conversation.updated = Date.now();
  keep(conversation);
  const view = shown();
  if (view) {
    view.update();
    showAround();
    follow();
    say([outcomeOf(message), view.heard.slice(0, HEARD)].filter(Boolean).join(" "));
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
