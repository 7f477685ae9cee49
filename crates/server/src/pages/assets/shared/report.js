// What the pages that report share: a request to the server, and the notice.

// The answer's status and body; null when there is no answer that could be read.
async function askServer(path, options = {}) {
  try {
    const answer = await fetch(path, {
      cache: "no-store",
      credentials: "same-origin",
      ...options,
      headers: { ...keyHeaders(), ...options.headers },
    });
    return { status: answer.status, body: await answer.json().catch(() => null) };
  } catch {
    return null;
  }
}

function showNotice(text) {
  put("notice", text);
  $("notice").hidden = text === "";
}

