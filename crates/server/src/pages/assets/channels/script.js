
// Shows v1/channels/details and v1/channels/messages, links WhatsApp, and sends a test. Texts come from outside, so they are only used as
// text.

const LINKING_MS = 1500;
const TITLES = { gateway: "Gateway", whatsapp: "WhatsApp", telegram: "Telegram" };
const STATES = {
  connected: ["connected", "good"], connecting: ["connecting", ""], disconnected: ["not connected", "bad"], error: ["error", "bad"],
  not_configured: ["not configured", ""],
};
const TOOLS = { pure: "only compute", read: "may read", act: "may act" };

// --- the state ---

function channelCard(channel) {
  const [text, className] = STATES[channel.status] ?? [channel.status, ""];
  return node("li", { className: "card" },
    node("h3", { textContent: TITLES[channel.name] ?? channel.name }),
    node("ul", { className: "chips" }, node("li", { textContent: text, className })),
    ...(channel.address ? [node("p", { className: "quiet", textContent: channel.address })] : []),
    ...(channel.message ? [node("p", { textContent: channel.message })] : []));
}

function waitingRow({ sender, name, code }) {
  const button = node("button", { type: "button", className: "plain", textContent: "Approve", ariaLabel: `Approve ${name || sender}` });
  button.dataset.action = `approve ${sender}`;
  button.addEventListener("click", () => once(button, async () => {
    const answer = await post("v1/channels/approve", { code });
    if (answer?.status !== 200) return put("waiting-fault", problem(answer));
    put("waiting-fault", "");
    await load();
    showDone(`${name || sender} is approved.`);
  }));
  return node("tr", {},
    node("th", { scope: "row", textContent: sender }), node("td", { textContent: name }), node("td", { textContent: code }),
    node("td", {}, button));
}

function showDetails({ channels, answering, senders, waiting, approved }) {
  fill("waiting", waiting.map(waitingRow));
  $("waiting-card").hidden = waiting.length === 0;
  put("approved", approved.length ? `Approved: ${approved.map((one) => (one.name ? `${one.name} (${one.sender})` : one.sender)).join(", ")}.` : "");
  $("channels").replaceChildren(...channels.map(channelCard));
  $("channels-section").hidden = channels.length === 0;
  $("empty").hidden = channels.length > 0;
  $("send-card").hidden = $("trust-card").hidden = channels.length === 0;
  put("count", channels.length ? `${whole(channels.filter((one) => one.status === "connected").length)} of ${plural(channels.length, "channel", "channels")} connected` : "");
  put("answering", answering === null ? "Hob receives messages and does not answer them." : [
    `Messages are answered by ${answering.agent === null ? "the model" : `the agent ${answering.agent}`}`,
    `at most ${plural(answering.messages_per_minute, "message", "messages")} a minute from one sender`,
    ...(answering.key === null ? [] : [`with the limits of the key ${answering.key}`]),
  ].join(", ") + ".");
  $("senders-table").hidden = senders.length === 0;
  $("senders").replaceChildren(...senders.map((one) => node("tr", {},
    node("th", { scope: "row", textContent: one.sender }),
    node("td", { textContent: TOOLS[one.trust] ?? one.trust }),
    node("td", { textContent: one.memory ? "may be read" : "no" }))));
}

function showMessages(messages) {
  $("no-messages").hidden = messages.length > 0;
  $("messages").replaceChildren(...messages.map((message) => {
    const isOut = message.direction === "out";
    const who = isOut ? `Hob${message.sender === null ? "" : ` to ${message.sender}`}` : message.sender ?? "unknown";
    const where = [message.channel, message.conversation].filter(Boolean).join(" · ");
    return node("li", { className: isOut ? "out" : "in" },
      node("small", { textContent: `${who} · ${where} · ${recently(message.at)}` }),
      node("p", { textContent: message.truncated ? `${message.content}…` : message.content }));
  }));
}

function showNames(names) {
  $("channel-names").replaceChildren(...names.map((name) => node("option", { value: name })));
}

const loads = inOrder();

async function load() {
  const isInOrder = loads();
  const answer = await askServer("v1/channels/details");
  if (!isInOrder()) return;
  if (!isAdmitted(answer, "content")) return clearTimeout(linking);
  const isGood = answer?.status === 200 && answer.body !== null;
  noteLoad(isGood ? "" : problem(answer));
  if (!isGood) return;
  $("key-form").hidden = true;
  showDetails(answer.body);
  $("content").hidden = false;
  // A gateway that is away takes seconds to say so.
  askServer("v1/channels").then((listed) => { if (listed?.status === 200) showNames(listed.body.channels); });
  const [messages] = await Promise.all([askServer("v1/channels/messages"), loadLink()]);
  if (!isInOrder()) return;
  if (messages?.status === 200) showMessages(messages.body.data);
  else noteLoad(problem(messages));
}

// --- linking WhatsApp ---

let linking = 0; // the timer of the next look
let shownCode = "";
let isTurnedOn = false; // by this page; Hob then connects
const looks = inOrder();

const LINK_TEXTS = {
  idle: "Link an account, so that Hob answers messages in WhatsApp that begin with its name.",
  installing: "Installing the bridge to WhatsApp. This takes a minute the first time.",
  connecting: "Connecting to WhatsApp.",
  scan: "On your phone: WhatsApp → Settings → Linked devices → Link a device. Then scan this code.",
  failed: "The account is not linked.",
};

function showLink({ enabled, state, code, message }) {
  put("link-text", state === "linked"
    ? enabled ? "An account is linked, and Hob is connected."
      : isTurnedOn ? "WhatsApp is turned on in config.toml. Hob connects now; if it does not, restart it."
      : "An account is linked. Turn WhatsApp on, or set enabled = true under [channel.whatsapp] in config.toml and run 'hob reload'."
    // Only a page on the machine that runs Hob gets the code. The message says so.
    : state === "scan" && code === null ? "An account is being linked." : LINK_TEXTS[state]);
  put("link-fault", message ?? "");
  $("link-start").hidden = enabled || !["idle", "failed"].includes(state);
  $("link-enable").hidden = enabled || isTurnedOn || state !== "linked";
  $("link-cancel").hidden = enabled || !["installing", "connecting", "scan"].includes(state);
  $("link-code").hidden = code === null;
  // The code changes now and then; redrawing the same one would move it under the scanner.
  if (code !== null && code.path !== shownCode) {
    const picture = drawn("svg", { viewBox: `0 0 ${code.size} ${code.size}`, role: "img", "aria-label": "QR code for WhatsApp", "shape-rendering": "crispEdges" },
      drawn("path", { d: code.path }));
    $("link-code").replaceChildren(picture);
  }
  shownCode = code?.path ?? "";
  clearTimeout(linking);
  // Codes expire within a minute, and only the bridge knows when.
  const isChanging = ["installing", "connecting", "scan"].includes(state) || (isTurnedOn && !enabled);
  if (isChanging && !document.hidden) linking = setTimeout(loadLink, LINKING_MS);
}

async function loadLink() {
  const isInOrder = looks();
  const answer = await askServer("v1/channels/whatsapp");
  if (!isInOrder()) return;
  if (answer?.status === 200) showLink(answer.body);
  else put("link-fault", problem(answer));
}

async function changeLink(button, sent, focusNext) {
  await once(button, async () => {
    const answer = await sent();
    if (answer?.status !== 200) return put("link-fault", problem(answer));
    // What was asked before is older than this.
    looks()();
    showLink(answer.body);
    $(focusNext).focus();
  });
}

$("link-start").addEventListener("click", () => changeLink($("link-start"), () => post("v1/channels/whatsapp"), "link-cancel"));
$("link-cancel").addEventListener("click", () => changeLink($("link-cancel"), () => remove("v1/channels/whatsapp"), "link-start"));

$("link-enable").addEventListener("click", () => once($("link-enable"), async () => {
  const answer = await askServer("v1/channels/whatsapp", { method: "PUT" });
  if (answer?.status !== 200) return put("link-fault", problem(answer));
  isTurnedOn = true;
  showLink(answer.body);
  say($("link-text").textContent);
}));

// --- a test message ---

$("send-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  const value = (name) => form.elements.namedItem(name).value.trim();
  for (const input of form.elements) input.removeAttribute("aria-invalid");
  showNotice("");
  once(form.querySelector("button"), async () => {
    const message = { channel: value("channel"), content: value("content") };
    if (value("conversation_id") !== "") message.conversation_id = value("conversation_id");
    const answer = await post("v1/channels/send", message);
    if (answer?.status !== 200) {
      put("send-fault", problem(answer));
      const wrong = form.elements.namedItem(answer?.body?.error?.param ?? "channel");
      wrong?.setAttribute("aria-invalid", "true");
      wrong?.focus();
      return;
    }
    put("send-fault", "");
    await load();
    showDone(`The message to ${message.channel} is sent.`);
  });
});

whenKeyIsGiven(load);
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(linking) : $("content").hidden || loadLink()));
live({ channels: load }, load);
