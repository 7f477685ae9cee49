// Requests to the server, what to show when one fails, and questions before a change.

// The answer's status and body; null when there is no answer that could be read.
async function askServer(path, options = {}) {
  const key = apiKey();
  try {
    const answer = await fetch(path, {
      cache: "no-store",
      credentials: "same-origin",
      ...options,
      headers: { ...keyHeaders(), ...options.headers },
    });
    // A change does not wait: it may be the replacement.
    if (answer.status === 401 && options.method === undefined) await keyReplacement;
    // There is another key now; that one was not refused.
    if (answer.status === 401 && apiKey() !== null && apiKey() !== key) return askServer(path, options);
    return { status: answer.status, body: await answer.json().catch(() => null) };
  } catch {
    return null;
  }
}

const sendJson = (method, path, content) =>
  askServer(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(content) });
const post = (path, content = {}) => sendJson("POST", path, content);
const patch = (path, content) => sendJson("PATCH", path, content);
const remove = (path) => askServer(path, { method: "DELETE" });

// For what is loaded again and again, because answers can arrive in another order than the requests were sent. Each call returns a function
// that says whether the answer may be shown: not if a later request was answered before.
function inOrder() {
  let sent = 0;
  let answered = 0;
  return () => {
    const own = ++sent;
    return () => {
      if (own < answered) return false;
      answered = own;
      return true;
    };
  };
}

// Calls `each` with every line of a body as it arrives.
async function readLines(body, each) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) each(line);
  }
}

// One sentence about an answer that is not the wanted one.
const problem = (answer) =>
  answer === null ? "Hob does not answer. Try again." : answer.body?.detail ?? `Hob answered with status ${answer.status}.`;

function showNotice(text) {
  put("notice", text);
  $("notice").hidden = text === "";
}

// --- the question ---

let openQuestion = null; // what the dialog asks, with the function that gets the answer

function askInDialog({ title, text, yes, label = "", value = "", check = () => "" }, answered) {
  openQuestion?.answered(null);
  openQuestion = { check, answered };
  put("ask-title", title);
  put("ask-text", text);
  put("ask-yes", yes);
  put("ask-label", label);
  put("ask-fault", "");
  $("ask-input").value = value;
  $("ask-field").hidden = label === "";
  if (!$("ask").open) $("ask").showModal();
  (label === "" ? $("ask-no") : $("ask-input")).focus();
}

// Asks before a change: `{ title, text, yes }`, where `yes` is the label of the button. Resolves to whether the user agreed.
const confirmed = (asked) => new Promise((done) => askInDialog(asked, (text) => done(text !== null)));

// Asks for one line of text: also `{ label, value, check }`, where `check(text)` returns what is wrong with it, or "". Resolves to the text,
// or to null.
const askedText = (asked) => new Promise((done) => askInDialog(asked, done));

$("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("ask-input").value.trim();
  const fault = openQuestion?.check(text) ?? "";
  put("ask-fault", fault);
  if (fault !== "") return $("ask-input").focus();
  endQuestion(text);
});
$("ask-no").addEventListener("click", () => endQuestion(null));
// Also after Escape.
$("ask").addEventListener("close", () => {
  // The next question may be open by now.
  if (!$("ask").open) endQuestion(null);
});

function endQuestion(text) {
  const answered = openQuestion?.answered;
  openQuestion = null;
  // Closed first, so that the page behind it can take the focus.
  $("ask").close();
  answered?.(text);
}

// A second click on a button has no effect until the first one was answered.
async function once(button, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    button.removeAttribute("aria-disabled");
  }
}
