// What changes on the server, as it happens. The stream has only the names of what changed; the page then loads it.

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;
// The server writes something every 15 seconds.
const SILENCE_MS = 40_000;

const liveTopics = new Map(); // name of a topic → the functions that load it
const liveStream = { controller: null, timer: 0, pause: FIRST_RETRY_MS, hadOne: false, started: false };

// Calls `reload` of a topic when something of it changed: `live({ tasks: reload, channels: reload })`. After a break each is called once,
// because a change may have been missed. All calls on a page share one stream, and only a visible page has it: browsers have six
// connections to a server, for all tabs.
function live(topics) {
  for (const [name, reload] of Object.entries(topics)) liveTopics.set(name, [...(liveTopics.get(name) ?? []), reload]);
  if (liveStream.started) return;
  liveStream.started = true;
  document.addEventListener("visibilitychange", () => (document.hidden ? endLive() : listenLive()));
  addEventListener("online", listenLive);
  // After the page has stored the key.
  $("key-form").addEventListener("submit", () => setTimeout(listenLive));
  listenLive();
}

function reloadTopics(names) {
  const wanted = names.includes("all") ? [...liveTopics.keys()] : names;
  for (const reload of new Set(wanted.flatMap((name) => liveTopics.get(name) ?? []))) reload();
}

function endLive() {
  clearTimeout(liveStream.timer);
  liveStream.controller?.abort();
  liveStream.controller = null;
}

async function listenLive() {
  endLive();
  if (document.hidden) return;
  const own = liveStream.controller = new AbortController();
  const isCurrent = () => liveStream.controller === own;
  let silence = 0;
  const noteLife = () => {
    clearTimeout(silence);
    silence = setTimeout(() => own.abort(), SILENCE_MS);
  };
  try {
    noteLife();
    const answer = await fetch("pages/live", {
      cache: "no-store", credentials: "same-origin", headers: keyHeaders(), signal: own.signal,
    });
    if (!isCurrent()) return;
    // Not for this caller, or only with a key. The key form starts it again.
    if ([401, 403].includes(answer.status)) return showLost(false);
    if (!answer.ok || answer.body === null) throw new Error(`status ${answer.status}`);
    showLost(false);
    liveStream.pause = FIRST_RETRY_MS;
    if (liveStream.hadOne) reloadTopics(["all"]);
    liveStream.hadOne = true;
    // Each event has one line of data, or is a comment.
    await readLines(answer.body, (line) => {
      noteLife();
      if (line.startsWith("data: ")) reloadTopics(JSON.parse(line.slice(6)).topics);
    });
  } catch {
    // Handled like the end of the stream.
  } finally {
    clearTimeout(silence);
  }
  if (!isCurrent()) return;
  showLost(true);
  liveStream.timer = setTimeout(listenLive, liveStream.pause);
  liveStream.pause = Math.min(liveStream.pause * 2, LONGEST_RETRY_MS);
}
