// The passages of documents that an answer is based on, and the dialog that shows a passage or an attached file.

const nameOfPath = (path) => path.split(/[\\/]/).filter(Boolean).at(-1) ?? path;

function sourceItem({ document: path, passage, score }, index) {
  const button = node("button", { type: "button", className: "chip", textContent: `${index + 1} ${nameOfPath(path)}`, title: path });
  button.addEventListener("click", () => showPassage({ title: nameOfPath(path), note: `${path} · score ${figure(score)}`, text: passage }));
  return node("li", {}, button);
}

function attachmentItem({ name, kind, content }) {
  if (kind === "image") return node("li", {}, isPicture(content) ? node("img", { src: content, alt: name, title: name }) : name);
  const button = node("button", { type: "button", className: "chip", textContent: name });
  button.addEventListener("click", () => showPassage({ title: name, note: `As the model reads it: ${plural(content.length, "character", "characters")}`, text: content }));
  return node("li", {}, button);
}

function showPassage({ title, note, text }) {
  put("passage-title", title);
  put("passage-note", note);
  put("passage-text", text);
  $("passage").showModal();
}

// --- whether there are documents ---

let indexed = false;
const documentLooks = inOrder();

// Asks the server whether something is indexed that this caller may read.
async function lookForDocuments() {
  const isInOrder = documentLooks();
  const answer = await askServer("v1/memory/stats");
  if (!isInOrder()) return;
  indexed = answer?.status === 200 && Number(answer.body?.chunks) > 0;
  showSettings();
}

const usesDocuments = (asked) => indexed && asked.settings.documents !== false;
