// The tree of an answer as nodes. This is the one place where a model's words become elements: of a handful of names, by text
// alone, with no address but those of the web, and with no picture at all.

function inlineNodes(pieces, insideLink = false) {
  return pieces.map((piece) => {
    if (typeof piece === "string") return piece;
    switch (piece.kind) {
      case "break":
        return node("br");
      case "code":
        return node("code", { textContent: piece.text });
      case "link":
      case "image":
        return linkNode(piece, insideLink);
      default:
        return node({ strong: "strong", em: "em", del: "del" }[piece.kind], {}, ...inlineNodes(piece.children, insideLink));
    }
  });
}

// A picture would tell somebody else that it is being looked at, so it is a link to it.
function linkNode({ kind, url, children }, insideLink) {
  const label = inlineNodes(children, true);
  if (label.length === 0) label.push(kind === "image" ? "picture" : url ?? "");
  if (url === null || insideLink) return node("span", {}, ...label);
  const link = node("a", { href: url, target: "_blank", rel: "noopener noreferrer", title: url }, ...label);
  if (kind === "image") link.prepend("🖼 ");
  return link;
}

function blockNode(block, nested) {
  switch (block.kind) {
    case "code":
      return codeNode(block);
    case "heading":
      return nested
        ? node("p", {}, node("strong", {}, ...inlineNodes(block.children)))
        : node(`h${Math.min(block.rank + 2, 6)}`, {}, ...inlineNodes(block.children));
    case "rule":
      return node("hr");
    case "quote":
      return node("blockquote", {}, ...block.blocks.map((one) => blockNode(one, true)));
    case "list":
      return listNode(block);
    case "table":
      return tableNode(block);
    case "plain":
      return node("pre", { className: "plain", textContent: block.text, tabIndex: 0 });
    default:
      return node("p", {}, ...inlineNodes(block.children));
  }
}

function codeNode({ language, text }) {
  const code = node("code", {}, document.createTextNode(text));
  const copy = node("button", { type: "button", className: "small", textContent: "Copy" });
  copy.setAttribute("aria-label", "Copy code");
  copy.addEventListener("click", () => copyText(code.textContent, copy));
  return node("figure", { className: "code" },
    node("figcaption", {}, node("span", { textContent: language }), copy), node("pre", { tabIndex: 0 }, code));
}

function listNode({ start, loose, items }) {
  const list = node(start === null ? "ul" : "ol", {}, ...items.map(({ task, blocks }) => {
    const nodes = blocks.flatMap((block) =>
      block.kind === "paragraph" && !loose ? inlineNodes(block.children) : [blockNode(block, true)]);
    return node("li", { className: task ? "task" : "" }, ...(task ? [task === "done" ? "☑ " : "☐ "] : []), ...nodes);
  }));
  if (start !== null) list.start = start;
  return list;
}

function tableNode({ aligns, head, rows, rest }) {
  const row = (name, cells) => node("tr", {}, ...cells.map((cell, index) =>
    node(name, { className: aligns[index] }, ...inlineNodes(cell))));
  const table = node("table", {}, node("thead", {}, row("th", head)), node("tbody", {}, ...rows.map((cells) => row("td", cells))));
  for (const cell of table.tHead.rows[0].cells) cell.scope = "col";
  const box = node("div", { className: "table", tabIndex: 0 }, table);
  if (rest !== "") box.append(node("pre", { className: "plain", textContent: rest }));
  return box;
}

// Shows a text that grows. What is already there stays as it is, so that a reader can mark and copy while more comes.
class MarkdownView {
  #box;
  #text = "";
  #shown = [];

  constructor(box) {
    this.#box = box;
  }

  show(text) {
    const blocks = parseMarkdown(text, text.startsWith(this.#text) ? this.#shown : []);
    let same = 0;
    while (same < blocks.length && isSame(this.#shown[same], blocks[same])) same += 1;
    if (this.#grow(blocks, same)) same += 1;
    while (this.#box.childNodes.length > same) this.#box.lastChild.remove();
    this.#box.append(...blocks.slice(same).map((block) => blockNode(block, false)));
    this.#text = text;
    this.#shown = blocks;
  }

  // Code that only became longer gets the rest, however long it is already.
  #grow(blocks, index) {
    const [before, now] = [this.#shown[index], blocks[index]];
    const grows = before?.kind === "code" && now?.kind === "code" && before.language === now.language && now.text.startsWith(before.text);
    if (grows) this.#box.childNodes[index].querySelector("code").firstChild.appendData(now.text.slice(before.text.length));
    return grows;
  }
}

function isSame(before, now) {
  return before !== undefined && before.source === now.source && before.rank === now.rank;
}
