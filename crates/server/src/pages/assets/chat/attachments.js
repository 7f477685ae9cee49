// Files and pictures for the next question: chosen, dropped or pasted. Hob reads documents; pictures go to the model as they are.

const MOST_FILES = 8;
const LARGEST_FILE_MB = 20;
const LARGEST_PICTURE_MB = 4;
const LARGEST_QUESTION_MB = 8; // of all files as the model gets them, which is what the server saves
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const isPicture = (content) => /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(content);
const noPictures = (model) => {
  const able = answeringModels().filter((one) => supports(one, "vision") === true);
  return `${model === "default" ? "The default model" : model} does not read pictures.${able.length > 0 ? ` Choose a model that does: ${able.slice(0, 3).join(", ")}.` : ""}`;
};

// The files of the question that is being written: `{ name, kind, content }`, where the content is null until it is read.
const tray = {
  items: [],

  // What can be sent; null while a file is being read.
  ready() {
    if (this.items.some(({ content }) => content === null)) {
      hint("A file is still being read.");
      return null;
    }
    return this.items.map(({ name, kind, content }) => ({ name, kind, content }));
  },
  fill(attachments) {
    this.items = attachments.map((one) => ({ ...one, note: "" }));
    this.draw();
  },
  restore(items) {
    this.items = items;
    this.draw();
  },
  clear() {
    this.restore([]);
  },
  draw() {
    $("tray").hidden = this.items.length === 0;
    $("tray-list").replaceChildren(...this.items.map((item) => {
      const remove = node("button", { type: "button", className: "chip-remove", textContent: "×", ariaLabel: `Remove ${item.name}` });
      remove.addEventListener("click", () => {
        this.restore(this.items.filter((one) => one !== item));
        $("question").focus();
      });
      return node("li", { className: "chip" }, node("span", { textContent: [item.name, item.content === null ? "reading…" : item.note].filter(Boolean).join(" · ") }), remove);
    }));
    fitQuestion();
  },
};

function addFiles(files) {
  if (editing?.what === "answer") return;
  const faults = [];
  for (const file of files) {
    const isImage = PICTURES.includes(file.type);
    const largest = isImage ? LARGEST_PICTURE_MB : LARGEST_FILE_MB;
    const model = chat.settings.model ?? "default";
    if (tray.items.length >= MOST_FILES) faults.push(`A question has at most ${MOST_FILES} files.`);
    else if (file.size > largest << 20) faults.push(`${file.name} is larger than ${largest} MB.`);
    else if (isImage && supports(model, "vision") === false) faults.push(noPictures(model));
    else addFile(file, isImage);
  }
  hint([...new Set(faults)].join(" "));
}

async function addFile(file, isImage) {
  const item = { name: file.name || "picture", kind: isImage ? "image" : "text", content: null, note: "" };
  tray.items.push(item);
  tray.draw();
  try {
    const content = await (isImage ? readPicture(file, item) : readDocument(file, item));
    if (new Blob([...tray.items.map((one) => one.content ?? ""), content]).size > LARGEST_QUESTION_MB << 20) {
      throw new Error(`The files of a question have at most ${LARGEST_QUESTION_MB} MB of text and pictures together.`);
    }
    item.content = content;
    say(`Attached ${item.name}.`);
  } catch ({ message }) {
    tray.items = tray.items.filter((one) => one !== item);
    // The user may have begun to edit a message.
    if (draft !== null) draft.files = draft.files.filter((one) => one !== item);
    hint(`${item.name}: ${message}`);
  }
  tray.draw();
}

async function readDocument(file, item) {
  const answer = await askServer(`pages/document?name=${encodeURIComponent(item.name)}`, { method: "POST", body: file, headers: { "content-type": "application/octet-stream" } });
  if (answer?.status !== 200) throw new Error(problem(answer));
  const content = textOf(answer.body?.text);
  if (content.trim() === "") throw new Error("There is no text in this file.");
  item.note = answer.body?.truncated === true ? "only the beginning" : "";
  return content;
}

function readPicture(file, item) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => {
      const content = String(reader.result);
      if (!isPicture(content)) return fail(new Error("This picture cannot be read."));
      if (supports(chat.settings.model ?? "default", "vision") === undefined) item.note = "the engine does not say whether this model reads pictures";
      done(content);
    };
    reader.onerror = () => fail(new Error("The browser cannot read this file."));
    reader.readAsDataURL(file);
  });
}

const hasFiles = (transfer) => transfer !== null && [...transfer.types].includes("Files");

$("attach").addEventListener("click", () => $("files").click());
$("files").addEventListener("change", () => {
  addFiles([...$("files").files]);
  $("files").value = "";
  $("question").focus();
});
$("question").addEventListener("paste", (event) => {
  if (!event.clipboardData || event.clipboardData.files.length === 0) return;
  event.preventDefault();
  addFiles([...event.clipboardData.files]);
});
addEventListener("dragover", (event) => {
  if (!hasFiles(event.dataTransfer) || $("composer").hidden) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", ({ relatedTarget }) => { if (relatedTarget === null) document.body.classList.remove("dropping"); });
addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  if (!hasFiles(event.dataTransfer) || $("composer").hidden) return;
  event.preventDefault();
  addFiles([...event.dataTransfer.files]);
});
put("attach-bounds", `Up to ${MOST_FILES} files of ${LARGEST_FILE_MB} MB: text, PDF, Word (DOCX). Pictures up to ${LARGEST_PICTURE_MB} MB. ${LARGEST_QUESTION_MB} MB together.`);
