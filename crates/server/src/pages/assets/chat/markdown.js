// Shows Markdown that Hob renders. The page has no parser: it sends the text and inserts the HTML that comes back.

const MARKDOWN_PATIENCE_MS = 10_000;

// The only text that becomes markup on this page is HTML of our own server, in which everything that a model wrote is escaped.
// The content security policy knows this one policy and allows no other.
const asMarkup = (html) => html;
const ownHtml = globalThis.trustedTypes?.createPolicy("hob-markdown", { createHTML: asMarkup }) ?? { createHTML: asMarkup };

function nodesOf(html) {
  const template = document.createElement("template");
  template.innerHTML = ownHtml.createHTML(html);
  return [...template.content.childNodes];
}

async function renderMarkdown(text, after) {
  const answer = await fetch("pages/markdown", {
    method: "POST",
    credentials: "same-origin",
    headers: { "content-type": "application/json", ...keyHeaders() },
    body: JSON.stringify({ text, after }),
    signal: AbortSignal.timeout(MARKDOWN_PATIENCE_MS),
  });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

// A text that may grow. Blocks that are complete are rendered once and their nodes stay, so a long answer takes no more time for
// each word than a short one. Nodes that do not change stay too, so a reader can select and copy while more arrives.
class MarkdownView {
  #box;
  #turn = 0;
  #text = "";
  #complete = ""; // the text that was shown as a whole
  #after = {};
  #settled = 0; // characters that are rendered for good
  #kept = 0; // their nodes
  #keptInside = 0; // nodes inside the last of these, whose block may continue

  constructor(box) {
    this.#box = box;
  }

  // Resolves when the text is shown, with whether no newer call replaced this one. Where rendering fails, the text itself is shown.
  async show(text, { complete }) {
    const turn = ++this.#turn;
    if (complete ? text === this.#complete : text === "") return true;
    if (complete || !text.startsWith(this.#text)) this.#restart();
    this.#text = text;
    const rest = text.slice(this.#settled);
    const answer = await renderMarkdown(rest, complete ? undefined : this.#after).catch(() => null);
    if (turn !== this.#turn) return false;
    if (answer === null) {
      replaceNodes(this.#box, this.#kept, [node("pre", { className: "unrendered", textContent: rest })]);
      return true;
    }
    if (complete) {
      const nodes = joinedNodes(answer.pieces);
      colourCode(nodes);
      replaceNodes(this.#box, 0, nodes);
      this.#complete = text;
      return true;
    }
    answer.pieces.forEach((piece, index) => {
      if (index > 0) this.#keep();
      this.#place(piece, answer.pieces[index + 1]);
    });
    this.#settled += answer.settled;
    this.#after = answer.after;
    return true;
  }

  #restart() {
    this.#after = {};
    this.#settled = this.#kept = this.#keptInside = 0;
  }

  #keep() {
    this.#kept = this.#box.childNodes.length;
    this.#keptInside = this.#kept === 0 ? 0 : partsOf(this.#box.lastChild).childNodes.length;
  }

  // Code is coloured when its block is closed: an open one would be coloured again with every word.
  #place({ html, continues }, next) {
    const nodes = nodesOf(html);
    const open = this.#box.childNodes[this.#kept - 1];
    const grows = next?.continues ?? true; // the last block
    if (continues && open) {
      replaceNodes(partsOf(open), this.#keptInside, [...partsOf(nodes.shift()).childNodes]);
      // Without a next piece, this one is rendered again, behind the nodes that are counted as kept.
      if (next !== undefined && (nodes.length > 0 || !grows)) colourCode([open]);
    }
    colourCode(grows ? nodes.slice(0, -1) : nodes);
    replaceNodes(this.#box, this.#kept, nodes);
  }
}

// The nodes of all pieces. A block that was rendered in several is one again.
function joinedNodes(pieces) {
  const joined = [];
  for (const { html, continues } of pieces) {
    const nodes = nodesOf(html);
    if (continues) partsOf(joined.at(-1)).append(...partsOf(nodes.shift()).childNodes);
    joined.push(...nodes);
  }
  return joined;
}

// What a block that continues grows by: lines of code, rows of a table, items of a list.
const partsOf = (block) => block.querySelector?.(":scope > pre > code, :scope > table > tbody") ?? block;

// Makes these the children behind the first `count`. Nodes that are equal stay as they are.
function replaceNodes(parent, count, nodes) {
  nodes.forEach((now, index) => {
    const before = parent.childNodes[count + index];
    if (before === undefined) parent.append(now);
    else if (!before.isEqualNode(now) && !becomes(before, now)) before.replaceWith(now);
  });
  while (parent.childNodes.length > count + nodes.length) parent.lastChild.remove();
}

// Gives a node the content of another, if both are text, or elements of the same name and attributes.
function becomes(before, now) {
  if (before.nodeType === Node.TEXT_NODE && now.nodeType === Node.TEXT_NODE) {
    growText(before, now.data);
    return true;
  }
  if (!before.cloneNode().isEqualNode(now.cloneNode())) return false;
  replaceNodes(before, 0, [...now.childNodes]);
  return true;
}

function growText(text, data) {
  if (data.startsWith(text.data)) text.appendData(data.slice(text.data.length));
  else text.data = data;
}
