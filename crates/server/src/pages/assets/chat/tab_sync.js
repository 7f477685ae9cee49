// The same conversations in other tabs of this browser: which answers they are receiving. What is saved comes from the server.

const elsewhere = new Set(); // names of turns that other tabs are answering
const otherTabs = "BroadcastChannel" in globalThis ? new BroadcastChannel("hob-chat") : null;

// Turns are numbered in their conversation.
const turnName = ({ id }, turn) => `${id} ${turn.id}`;
const isAnsweredElsewhere = (one, turn) => turn.answer === null && elsewhere.has(turnName(one, turn));
const isElsewhere = (one) => one.turns.some((turn) => isAnsweredElsewhere(one, turn));

// Tells other tabs that this tab begins or ends an answer.
function tellTabs(one, turn, running) {
  if (turn.id !== null) otherTabs?.postMessage({ turn: turnName(one, turn), running });
}

// Asks other tabs what they are answering, if an answer is missing here.
function askTabs() {
  if (chat.turns.some(({ answer }) => answer === null)) otherTabs?.postMessage({ who: true });
}

otherTabs?.addEventListener("message", ({ data }) => {
  if (data.who) {
    for (const [turn, run] of runs) tellTabs(run.chat, turn, true);
    return;
  }
  if (data.running) elsewhere.add(data.turn);
  else elsewhere.delete(data.turn);
  const shown = chat.turns.find((turn) => turn.id !== null && turnName(chat, turn) === data.turn);
  if (shown === undefined || runs.has(shown)) return;
  views.get(shown)?.answer.update();
  if (!data.running) hint("");
  showAround();
});
