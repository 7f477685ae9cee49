// The navigation: the theme, the menu of a narrow screen, and the state of the connection.

const THEME = "hob-theme";

// For screen readers.
const say = (text) => put("said", text);

// --- the theme ---

function storedTheme() {
  try {
    return localStorage.getItem(THEME) ?? "";
  } catch {
    return "";
  }
}

function showTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  $("theme").value = document.documentElement.dataset.theme ?? "";
}

$("theme").addEventListener("change", () => {
  const theme = $("theme").value;
  showTheme(theme);
  try {
    if (theme === "") localStorage.removeItem(THEME);
    else localStorage.setItem(THEME, theme);
  } catch {
    // The choice then applies to this page only.
  }
});
// Another tab changed it, or emptied the storage.
addEventListener("storage", ({ key }) => { if (key === THEME || key === null) showTheme(storedTheme()); });
showTheme(storedTheme());

// --- the menu of a narrow screen ---

function openMenu(isOpen) {
  $("nav").classList.toggle("open", isOpen);
  $("nav-open").ariaExpanded = String(isOpen);
}

$("nav-open").addEventListener("click", () => openMenu(!$("nav").classList.contains("open")));
$("nav").addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !$("nav").classList.contains("open")) return;
  // The page has its own meaning for Escape.
  event.stopPropagation();
  openMenu(false);
  $("nav-open").focus();
});
// A click or the focus elsewhere closes it.
document.addEventListener("pointerdown", ({ target }) => { if (!$("nav").contains(target)) openMenu(false); });
document.addEventListener("focusin", ({ target }) => { if (!$("nav").contains(target)) openMenu(false); });

$("skip").addEventListener("click", () => {
  const main = document.querySelector("main");
  main.tabIndex = -1;
  main.focus();
});

// --- the connection ---

const connection = { state: "unknown", text: "connecting", lost: false };

function drawConnection() {
  const { state, text, lost } = connection;
  $("connection").dataset.state = lost ? "bad" : state;
  put("connection-text", lost ? "no connection" : text);
}

// What the page knows of the server: "good", "bad" or "unknown", and a few words.
function showConnection(state, text) {
  Object.assign(connection, { state, text });
  drawConnection();
}

// What the live stream knows; it comes before what the page knows.
function showLost(lost) {
  connection.lost = lost;
  // A page that says nothing about the server is connected once its stream is.
  if (!lost && connection.text === "connecting") Object.assign(connection, { state: "good", text: "connected" });
  drawConnection();
}
