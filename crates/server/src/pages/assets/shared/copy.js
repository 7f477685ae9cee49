// Copying and saving.

const COPIED_MS = 1500;

// Copies text to the clipboard, and shows the result on the button.
async function copyText(text, button) {
  const copied = await toClipboard(text);
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  button.textContent = copied ? "Copied" : "Not allowed";
  setTimeout(() => { button.textContent = label; }, COPIED_MS);
  say(copied ? "Copied." : "The browser does not allow copying.");
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyTheOldWay(text);
  }
}

// Browsers deny the clipboard API to pages over plain HTTP from another machine; this older way still works.
function copyTheOldWay(text) {
  const focused = document.activeElement;
  const area = node("textarea", { value: text, readOnly: true, className: "unseen" });
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}

function saveFile(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  node("a", { href: address, download: name }).click();
  // The download has its own reference once it has begun.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
