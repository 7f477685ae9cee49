// What changes on the server, as it happens. The stream has only the names of what changed; the page then loads it.

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;
// The server writes something every 15 seconds.
const SILENCE_MS = 40_000;
// A page waits for the stream this long before its first load. Some proxies hold the stream back.
const LONGEST_WAIT_MS = 300;

const liveTopics = new Map(); // name of a topic → the functions that load it
const liveLoads = new Set(); // what is loaded when the stream is open
// `hasLoaded`: the page has loaded something. A stream that opens later does not have the changes since then.
const liveStream = { controller: null, timer: 0, pause: FIRST_RETRY_MS, started: false, isOpen: false, hasLoaded: false };

// Calls `load` once, and then `reload` of a topic when something of it changed: `live({ tasks: reload, channels: reload }, load)`. A change
// between a load and the opening of the stream would be missed, so the load waits for the stream. A page that does not get one loads anyway.
// When a stream opens after a load, also after a break, each `reload` is called once. All calls on a page share one stream, and only a
// visible page has it: browsers have six connections to a server, for all tabs.
function live(topics, load = null) {
  for (const [name, reload] of Object.entries(topics)) liveTopics.set(name, [...(liveTopics.get(name) ?? []), reload]);
  if (load !== null) loadWhenOpen(load);
  if (liveStream.started) return;
  liveStream.started = true;
  document.addEventListener("visibilitychange", () => (document.hidden ? endLive() : listenLive()));
  addEventListener("online", listenLive);
  listenLive();
}

// Loads with a new key. The stream is opened with it first, if the page has one.
function loadWithKey(load) {
  if (!liveStream.started) return load();
  endLive();
  loadWhenOpen(load);
  listenLive();
}

function loadWhenOpen(load) {
  if (liveStream.isOpen) return load();
  liveLoads.add(load);
  setTimeout(loadWithoutStream, LONGEST_WAIT_MS);
}

function loadWaiting() {
  const loads = [...liveLoads];
  liveLoads.clear();
  // In a task of its own: a fault in a load is not a lost connection.
  for (const load of loads) queueMicrotask(load);
}

function loadWithoutStream() {
  if (liveLoads.size > 0) liveStream.hasLoaded = true;
  loadWaiting();
}

function reloadTopics(names) {
  const wanted = names.includes("all") ? [...liveTopics.keys()] : names;
  for (const reload of new Set(wanted.flatMap((name) => liveTopics.get(name) ?? []))) queueMicrotask(reload);
}

function endLive() {
  clearTimeout(liveStream.timer);
  liveStream.controller?.abort();
  liveStream.controller = null;
  liveStream.isOpen = false;
}

async function listenLive() {
  endLive();
  if (document.hidden) return loadWithoutStream();
  const own = liveStream.controller = new AbortController();
  const isCurrent = () => liveStream.controller === own;
  const key = apiKey();
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
    if (answer.status === 401) await keyReplacement;
    if (!isCurrent()) return;
    if (answer.status === 401 && apiKey() !== null && apiKey() !== key) return listenLive();
    // Not for this caller, or only with a key. The key form starts it again.
    if ([401, 403].includes(answer.status)) {
      showLost(false);
      return loadWaiting();
    }
    if (!answer.ok || answer.body === null) throw new Error(`status ${answer.status}`);
    showLost(false);
    liveStream.pause = FIRST_RETRY_MS;
    liveStream.isOpen = true;
    if (liveStream.hasLoaded) reloadTopics(["all"]);
    liveStream.hasLoaded = true;
    loadWaiting();
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
  liveStream.isOpen = false;
  showLost(true);
  liveStream.timer = setTimeout(listenLive, liveStream.pause);
  liveStream.pause = Math.min(liveStream.pause * 2, LONGEST_RETRY_MS);
  loadWithoutStream();
}
