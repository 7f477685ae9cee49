
// Shows the data of v1/savings. Names of models and engines come from outside, so they are only used as text.

const POLL_MS = 5000;
const COUNT_UP_MS = 700;
const MOST_MODELS = 8;
const MOST_CALLS = 7;
const MOST_KEYS = 20;

const still = matchMedia("(prefers-reduced-motion: reduce)");

// --- the big number ---

const saved = { shown: null, frame: 0 };
function showSaved(target) {
  const places = digits(target);
  put("saved-said", money(target, places));
  const from = saved.shown;
  cancelAnimationFrame(saved.frame);
  saved.shown = target;
  // A hidden tab has no frames.
  if (from === null || from === target || still.matches || document.hidden) return put("saved", money(target, places));
  const began = performance.now();
  const step = (now) => {
    const part = Math.min((now - began) / COUNT_UP_MS, 1);
    put("saved", money(part < 1 ? from + (target - from) * (1 - (1 - part) ** 3) : target, places));
    if (part < 1) saved.frame = requestAnimationFrame(step);
  };
  saved.frame = requestAnimationFrame(step);
}

// --- what to compare with ---

let latest = null;
let compared = null;

function provider() {
  const all = latest.per_provider;
  const cheapest = all.reduce((least, one) => (least && least.total_cost <= one.total_cost ? least : one), null);
  return all.find((one) => one.label === compared) ?? cheapest;
}

function showProviders() {
  const box = $("providers");
  const chosen = provider();
  const labels = latest.per_provider.map((one) => one.label);
  const cards = () => [...box.querySelectorAll(".provider")];
  if (JSON.stringify(cards().map((card) => card.dataset.label)) !== JSON.stringify(labels)) {
    cards().forEach((card) => card.remove());
    for (const label of labels) {
      const input = node("input", { type: "radio", name: "provider", value: label });
      input.addEventListener("change", () => { compared = label; show(latest); });
      const card = node("label", { className: "provider card" }, input,
        node("span", { className: "label", textContent: label }), node("span", { className: "total" }),
        node("span", { className: "parts" }), node("span", { className: "price" }));
      card.dataset.label = label;
      box.append(card);
    }
  }
  cards().forEach((card, index) => {
    const one = latest.per_provider[index];
    card.querySelector("input").checked = one === chosen;
    card.querySelector(".total").textContent = money(one.total_cost);
    card.querySelector(".parts").textContent = `${money(one.input_cost)} for reading, ${money(one.output_cost)} for writing`;
    card.querySelector(".price").textContent = `at ${price(one.input_price)} and ${price(one.output_price)} per million tokens`;
  });
}

// --- the chart ---

let span = "week";

function points() {
  const { today, days } = latest.over_time;
  return { today, week: days.slice(-7), month: days }[span];
}
const named = (point) => when(point.start, span === "today" ? clock : day);
const worth = (point) => {
  const { input_price, output_price } = provider();
  return (point.prompt_tokens * input_price + point.completion_tokens * output_price) / 1e6;
};
const told = (point) => `${count(point.prompt_tokens)} read, ${count(point.completion_tokens)} written, worth ${money(worth(point))}`;

function roundUp(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= number) ?? number;
}

function showChart() {
  const list = points();
  const sum = list.reduce((all, point) => ({
    calls: all.calls + point.calls,
    prompt_tokens: all.prompt_tokens + point.prompt_tokens,
    completion_tokens: all.completion_tokens + point.completion_tokens,
  }), { calls: 0, prompt_tokens: 0, completion_tokens: 0 });
  const title = { today: "Today", week: "The last 7 days", month: "The last 30 days" }[span];
  const summary = `${title}: ${plural(sum.calls, "answer", "answers")}, ${told(sum)}`;
  put("readout", summary);
  put("chart-caption", `Tokens over time. ${title}.`);

  const box = $("chart");
  const width = box.clientWidth || 640, height = box.clientHeight || 224;
  const left = 46, foot = 22, head = 8;
  const top = roundUp(Math.max(4, ...list.map((point) => point.prompt_tokens + point.completion_tokens)));
  const y = (tokens) => head + (height - head - foot) * (1 - tokens / top);
  const step = (width - left) / list.length;
  const thick = Math.min(step * 0.64, 46);
  const every = Math.ceil(list.length / Math.max(Math.floor((width - left) / 76), 1));
  const nodes = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => [
    drawn("line", { class: "grid", x1: left, x2: width, y1: y(top * part), y2: y(top * part) }),
    drawn("text", { x: left - 8, y: y(top * part) + 4, "text-anchor": "end" }, count(top * part)),
  ]);
  list.forEach((point, index) => {
    const x = left + step * index + (step - thick) / 2;
    const bar = (kind, from, to) =>
      drawn("rect", { class: kind, x, width: thick, y: y(to), height: Math.max(y(from) - y(to), to > from ? 1 : 0), rx: kind === "read" ? Math.min(2, thick / 4) : 0 });
    const group = drawn("g", {},
      drawn("rect", { class: "hit", x: left + step * index, width: step, y: head, height: height - head - foot, rx: 4 }),
      bar("written", 0, point.completion_tokens),
      bar("read", point.completion_tokens, point.completion_tokens + point.prompt_tokens));
    group.addEventListener("pointerenter", () => put("readout", `${named(point)}: ${told(point)}`));
    group.addEventListener("pointerleave", () => put("readout", summary));
    nodes.push(group);
    // Counted from the end, so that the last one always has its name.
    if ((list.length - 1 - index) % every === 0) {
      nodes.push(drawn("text", { x: x + thick / 2, y: height - 5, "text-anchor": "middle" }, axis(point)));
    }
  });
  box.setAttribute("viewBox", `0 0 ${width} ${height}`);
  box.replaceChildren(...nodes);
  $("chart-rows").replaceChildren(...list.map((point) => node("tr", {},
    node("th", { scope: "row", textContent: named(point) }),
    ...[point.calls, point.prompt_tokens, point.completion_tokens].map((n) => node("td", { textContent: count(n) })))));
}
function axis(point) {
  if (span === "today") return when(point.start, clock);
  return when(point.start, span === "week" ? { weekday: "short", day: "numeric" } : { day: "numeric", month: "short" });
}

const tabs = [...document.querySelectorAll("[role=tab]")];
function choose(tab) {
  span = tab.dataset.span;
  for (const one of tabs) {
    one.setAttribute("aria-selected", String(one === tab));
    one.tabIndex = one === tab ? 0 : -1;
  }
  $("chart-panel").setAttribute("aria-labelledby", tab.id);
  if (latest) showChart();
}
tabs.forEach((tab, index) => {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  });
});

// --- the rest ---

function showTiming(id, timing, none) {
  put(id, timing ? seconds(timing.p50) : "–");
  put(`${id}-note`, timing ? `median; 95 % within ${seconds(timing.p95)}` : none);
}

// Only what meters counted: without one there is no tile.
function showEnergy(used) {
  const unmeasured = !used || used.calls === 0;
  $("energy-tile").hidden = unmeasured;
  if (unmeasured) return;
  put("energy", energy(used.joules));
  put("energy-note", `for ${plural(used.calls, "call", "calls")}${used.meter ? `, by ${used.meter}` : ""}`);
}

function showModels() {
  const models = latest.per_model.slice(0, MOST_MODELS);
  const most = Math.max(...models.map((model) => model.total_tokens), 1);
  $("models").replaceChildren(...models.map((model) => {
    const [written, read] = [model.completion_tokens, model.prompt_tokens].map((n) => (100 * n) / most);
    const facts = [model.engine, plural(model.calls, "answer", "answers")];
    if (model.latency) facts.push(`typically ${seconds(model.latency.p50)}`);
    if (model.first_token) facts.push(`first token after ${seconds(model.first_token.p50)}`);
    return node("li", {},
      node("div", { className: "line" },
        node("span", { className: "name", textContent: model.model }), node("span", { textContent: count(model.total_tokens) })),
      drawn("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
        drawn("rect", { class: "written", width: written, height: 8 }),
        drawn("rect", { class: "read", x: written, width: read, height: 8 })),
      node("p", { className: "quiet", textContent: facts.join(" · ") }));
  }));
  const more = latest.per_model.length - models.length;
  put("models-more", more > 0 ? `and ${plural(more, "model", "models")} more` : models.length ? "" : "No local model has answered yet.");
}

// Only for the owner: strangers get only the totals.
function showRecent() {
  $("recent-card").hidden = latest.recent === undefined;
  $("recent").replaceChildren(...(latest.recent ?? []).slice(0, MOST_CALLS).map((call) => {
    const ended = call.ending === "complete";
    const origin = [call.engine, call.agent, call.source].filter(Boolean).join(" · ");
    return node("tr", {},
      node("td", {}, call.model, node("small", { textContent: origin })),
      node("td", { textContent: recently(call.at) }),
      node("td", { textContent: count(call.total_tokens) }),
      node("td", { className: call.ending, textContent: ended ? seconds(call.latency) : call.ending }));
  }));
}

// Only for the owner, and only if there are named keys.
function showKeys(usage) {
  const keys = usage?.data ?? [];
  $("keys-card").hidden = !keys.some((used) => used.key !== null && used.calls > 0);
  if ($("keys-card").hidden) return;
  const seen = keys.filter((used) => used.calls > 0);
  $("keys").replaceChildren(...seen.slice(0, MOST_KEYS).map((used) => {
    const why = used.frequent_failure?.reason;
    return node("tr", {},
      node("th", { scope: "row", textContent: used.key ?? "without a named key" }),
      node("td", { textContent: count(used.calls) }),
      node("td", { textContent: count(used.prompt_tokens + used.completion_tokens) }),
      node("td", { textContent: used.cost > 0 ? money(used.cost) : "–" }),
      node("td", {}, count(used.failures), ...(used.failures > 0 && why ? [node("small", { textContent: why })] : [])),
      node("td", { textContent: used.latency ? seconds(used.latency.p50) : "–" }),
      node("td", { textContent: used.first_token ? seconds(used.first_token.p50) : "–" }));
  }));
  const more = seen.length - MOST_KEYS;
  put("keys-more", ["Times are medians. The reason is the most frequent one among the latest calls.",
    more > 0 && `${plural(more, "key", "keys")} more: hob telemetry stats.`].filter(Boolean).join(" "));
}

function show(savings) {
  latest = savings;
  const nothing = savings.total_calls === 0 && (savings.recent ?? []).length === 0;
  $("key-form").hidden = true;
  $("empty").hidden = !nothing || Boolean(savings.message);
  $("figures").hidden = nothing;
  showEngine(savings.engine.healthy, savings.engine.key);
  put("prices", `Prices as of ${when(`${savings.prices_as_of}T00:00:00Z`, { dateStyle: "long", timeZone: "UTC" })}. ` +
    "Failed calls save nothing; calls to the cloud count as cost. Days use this browser's time zone.");
  if (nothing) return;

  const against = provider();
  const spent = savings.local_cost;
  showSaved(against.total_cost - spent);
  put("saved-note", [`compared with ${against.label}`, spent > 0 && `after ${money(spent)} spent in the cloud`,
    savings.since && `since ${when(savings.since, { dateStyle: "medium" })}`].filter(Boolean).join(", "));
  put("in-flight", count(savings.live.in_flight));
  put("queued", count(savings.live.queued));
  put("calls", count(savings.total_calls));
  put("calls-note", "by your own engines");
  put("tokens", count(savings.total_tokens));
  put("tokens-note", `${count(savings.total_prompt_tokens)} read, ${count(savings.total_completion_tokens)} written`);
  showTiming("latency", savings.latency, "no answer in 30 days");
  showTiming("first-token", savings.first_token, "no stream in 30 days");
  showEnergy(savings.energy);
  showProviders();
  showChart();
  showModels();
  showRecent();
}

function showEngine(healthy, engine) {
  const [state, text] = healthy === null ? ["unknown", `connecting to ${engine}`]
    : healthy ? ["good", `${engine} answers`] : ["bad", `${engine} does not answer`];
  showConnection(state, text);
}

function showAway(reason) {
  document.body.classList.add("stale");
  showConnection("bad", "no connection");
  const age = latest ? ` These figures are from ${when(arrived, { timeStyle: "medium" })}.` : "";
  showNotice(`${reason}${age} Trying again every ${POLL_MS / 1000} seconds.`);
}

// --- asking the server ---

let arrived = 0;
let timer = 0;
let asking = false;
let zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function lock() {
  clearTimeout(timer);
  document.body.classList.remove("stale");
  showNotice("");
  $("figures").hidden = $("empty").hidden = $("call-card").hidden = true;
  showConnection("unknown", "locked");
  askForKey();
}

// A member sees the calls of its own key only.
function showMember() {
  showNotice("");
  $("key-form").hidden = true;
  $("figures").hidden = $("empty").hidden = true;
  $("call-key").hidden = true;
  showConnection("good", "connected");
  startCalls();
}

const askFor = (path) => askServer(path, { signal: AbortSignal.timeout(POLL_MS) });

async function poll() {
  clearTimeout(timer);
  if (asking || document.hidden) return;
  asking = true;
  const query = zone ? `?timezone=${encodeURIComponent(zone)}` : "";
  const answer = await askFor(`v1/savings${query}`);
  // Strangers get no list of calls, and may not ask who made them.
  const usage = answer?.body?.recent === undefined ? null : await askFor("v1/usage?days=30");
  asking = false;
  if (answer?.status === 401) return lock();
  if (answer?.status === 400 && zone) {
    // The browser has a time zone that the server does not know.
    zone = "";
    return poll();
  }
  if (answer?.status === 403) return showMember();
  timer = setTimeout(poll, POLL_MS);
  if (answer === null) return showAway("Hob does not answer.");
  const { status, body } = answer;
  if (status === 200 && body === null) return showAway("Hob does not answer.");
  if (status !== 200) return showAway(`Hob reports a problem: ${body?.detail ?? `status ${status}`}.`);
  arrived = Date.now();
  document.body.classList.remove("stale");
  try {
    showNotice(body.message ? `No data: ${body.message}.` : "");
    show(body);
    // Strangers see the totals only.
    if (body.recent !== undefined) startCalls();
    showKeys(usage?.status === 200 ? usage.body : null);
  } catch (error) {
    showNotice("Error in this page: it cannot show the data from Hob. See the browser's console.");
    throw error;
  }
}

whenKeyIsGiven(poll);
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : poll()));
let resizing = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(() => { if (latest && !$("figures").hidden) showChart(); });
});
poll();
