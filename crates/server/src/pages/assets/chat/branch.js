// Branches of a conversation: moving between them, and editing a question or an answer, which makes a new one.

const views = new Map(); // turn → { question, answer }, of the conversation that is shown
let editing = null; // { turn, what: "question" or "answer" }
let draft = null; // what was being written when editing began

function viewsOf(turn) {
  if (!views.has(turn)) {
    const shownIn = chat;
    const rating = new RatingView(shownIn, turn, {
      rated: (value) => {
        hint("");
        say(`Rated ${value}.`);
      },
      failed: ({ kind, message }) => (kind === "key" ? lock() : hint(message)),
    });
    views.set(turn, {
      question: new QuestionView(turn, { edit: () => edit(turn, "question"), branches: new BranchButtons(turn) }),
      answer: new AnswerView(turn, {
        rating,
        retry: () => retry(turn, shownIn.settings.model ?? "default"),
        retryWith: (button) => openChoices(button, answeringModels().map((model) => [model, () => retry(turn, model)])),
        edit: () => edit(turn, "answer"),
        choose: () => continueWith(turn),
        shown: follow,
      }),
    });
  }
  return views.get(turn);
}

class BranchButtons {
  #place = node("span", {});
  #compare;

  constructor(turn) {
    const step = (by, label, text) => Object.assign(smallButton(text, () => this.#move(turn, by)), { ariaLabel: label });
    this.back = step(-1, "Previous branch", "‹");
    this.next = step(1, "Next branch", "›");
    this.#compare = smallButton("Side by side", () => {
      pair = [turn, this.#other(turn)];
      showThread();
    });
    this.root = node("div", { className: "branches", role: "group", ariaLabel: "Branches", hidden: true }, this.back, this.#place, this.next, this.#compare);
  }

  update(turn) {
    const branches = branchesOf(chat.turns, turn);
    const place = branches.indexOf(turn);
    this.root.hidden = branches.length < 2 || pair !== null;
    this.#place.textContent = `${place + 1} of ${branches.length}`;
    this.back.disabled = place === 0;
    this.next.disabled = place === branches.length - 1;
    this.#compare.hidden = turn !== chat.shown || this.#other(turn) === undefined;
  }

  // Another answer to the same question.
  #other(turn) {
    return branchesOf(chat.turns, turn).findLast((one) => one !== turn && one.question.text === turn.question.text && one.answer !== null);
  }

  #move(turn, by) {
    const branches = branchesOf(chat.turns, turn);
    const now = branches[branches.indexOf(turn) + by];
    if (now === undefined) return;
    showBranch(latestBelow(chat.turns, now));
    const buttons = viewsOf(now).question.branches;
    const pressed = by < 0 ? buttons.back : buttons.next;
    (pressed.disabled ? (by < 0 ? buttons.next : buttons.back) : pressed).focus();
    say(`Branch ${branches.indexOf(now) + 1} of ${branches.length}.`);
  }
}

// Shows the branch that ends with this turn. The server remembers it.
function showBranch(turn) {
  chat.shown = turn;
  stopEditing();
  showThread();
  if (turn.id === null) return;
  chat.current = turn.id;
  patchChat(chat, { current: turn.id }).catch(({ message }) => hint(message));
}

function showThread() {
  const nodes = pathTo(chat.shown).flatMap((turn) => {
    const { question, answer } = viewsOf(turn);
    return [question.root, pair?.includes(turn) ? pairBox(pair) : answer.root];
  });
  placeNodes($("thread"), nodes);
  showAround();
}

// Updates what depends on the state of the conversation.
function showAround() {
  const running = isRunning(chat);
  const waiting = running || isElsewhere(chat);
  put("title", chat.title || "New conversation");
  document.title = chat.title === "" ? "Hob: chat" : `${chat.title} · Hob`;
  $("empty").hidden = chat.turns.length > 0 || !$("key-form").hidden;
  $("export").hidden = chat.turns.length === 0;
  $("send").hidden = running;
  $("stop").hidden = !running;
  for (const turn of new Set([...pathTo(chat.shown), ...(pair ?? [])])) {
    const { question, answer } = viewsOf(turn);
    const compared = pair?.includes(turn) === true;
    question.branches.update(turn);
    question.edit.hidden = waiting;
    answer.edit.hidden = waiting || compared || turn.answer === null || turn.answer.text === "";
    answer.retry.hidden = waiting || compared;
    answer.retryWith.hidden = waiting || compared || answeringModels().length < 2;
    answer.choose.hidden = !compared || waiting;
  }
  fitQuestion();
  showList();
}

// --- editing ---

function edit(turn, what) {
  if (editing === null) draft = { text: $("question").value, files: tray.items };
  editing = { turn, what };
  $("editing").hidden = false;
  put("editing-text", what === "question" ? "Editing a question. Sending it makes a new branch." : "Editing an answer. Saving it makes a new branch.");
  put("send", what === "question" ? "Send" : "Save");
  tray.fill(what === "question" ? turn.question.attachments : []);
  setQuestion(what === "question" ? turn.question.text : turn.answer.text);
  $("question").focus();
}

function stopEditing() {
  if (editing !== null) {
    tray.restore(draft.files);
    setQuestion(draft.text);
  }
  editing = draft = null;
  put("send", "Send");
  $("editing").hidden = true;
}

// The edited answer is a branch of its own; no model is asked.
async function saveEditedAnswer(text) {
  const { turn } = editing;
  const asked = chat;
  if (isRunning(asked) || text === "") return;
  const answer = { ...newAnswer(), text, model: turn.answer.model, sources: turn.answer.sources, ending: "complete" };
  const now = { ...newTurn(turn.parent, turn.question), answer };
  asked.turns.push(now);
  asked.shown = now;
  pair = null;
  stopEditing();
  showThread();
  await saveAnswer(asked, now);
  if (asked === chat) viewsOf(now).answer.update();
}
