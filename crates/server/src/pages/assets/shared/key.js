// The API key, if the server requires one. It is stored in this tab, for all pages.

const KEY = "hob-api-key";

// If the browser forbids storage, the key lives as long as the page.
let heldKey = null;

// The last replacement of the key. What is refused while the key is replaced waits for the new one.
let keyReplacement = Promise.resolve();

function apiKey() {
  try {
    return sessionStorage.getItem(KEY) ?? heldKey;
  } catch {
    return heldKey;
  }
}

function keepKey(key) {
  heldKey = key;
  try {
    if (key === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, key);
  } catch {
    // It is held above.
  }
}

// A link to the page can end with '#key=…', such as the QR code of 'hob serve --lan'. Browsers do not send that part to the server. It is
// removed from the address bar and the history. A link does not replace the key that a tab has. If the tab needs no key, the link may come
// from a person who wants to read what is asked here, so the page asks first.
function takeKeyFromAddress() {
  if (!location.hash.startsWith("#key=")) return;
  const found = /^#key=([\x21-\x7e]+)$/.exec(location.hash);
  history.replaceState(null, "", location.pathname + location.search);
  if (found !== null && apiKey() === null && (needsKey() || confirm(OTHER_ACCOUNT))) keepKey(found[1]);
}

const OTHER_ACCOUNT =
  "This link contains an API key, but Hob answers here without one. With the key, your questions and chats belong to the account of that key, and its owner can read them. Use the key?";

// Whether the server refuses this tab without a key. It waits for the answer, because the scripts after this one ask the server at once.
function needsKey() {
  try {
    const request = new XMLHttpRequest();
    request.open("GET", "v1/keys/self", false);
    request.send();
    return request.status === 401 || request.status === 429;
  } catch {
    return false;
  }
}

takeKeyFromAddress();
// Before the listeners of the page. The event "popstate" comes first, and the chat page would ask the server for a conversation with the key
// as its name, which would be in the access log.
addEventListener("popstate", takeKeyFromAddress);
addEventListener("hashchange", takeKeyFromAddress);

function keyHeaders() {
  const key = apiKey();
  return key ? { authorization: `Bearer ${key}` } : {};
}

// Shows the form, with an error if the key is wrong.
function askForKey() {
  put("key-fault", apiKey() === null ? "" : "Wrong API key.");
  keepKey(null);
  if ($("key-form").hidden) {
    $("key-form").hidden = false;
    $("key").focus();
  }
}

function whenKeyIsGiven(goOn) {
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = $("key").value.trim();
    // Nothing else fits into a header.
    if (/[^\x21-\x7e]/.test(key)) return put("key-fault", "A key contains only letters, digits and symbols, without spaces.");
    keepKey(key);
    $("key").value = "";
    loadWithKey(goOn);
  });
}
