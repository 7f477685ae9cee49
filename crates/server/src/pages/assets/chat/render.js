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
      return Object.assign(plainNode(block.text), { tabIndex: 0 });
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
  const list = node(start === null ? "ul" : "ol", {}, ...items.map((item) => itemNode(item, loose)));
  if (start !== null) list.start = start;
  return list;
}

function itemNode({ task, blocks }, loose) {
  const box = task === null ? [] : [task === "done" ? "☑ " : "☐ "];
  return node("li", { className: task ? "task" : "" }, ...box, ...insideItem(blocks, loose));
}

const insideItem = (blocks, loose) => blocks.flatMap((block) =>
  block.kind === "paragraph" && !loose ? inlineNodes(block.children) : [blockNode(block, true)]);

function tableNode({ aligns, head, rows, rest }) {
  const table = node("table", {}, node("thead", {}, rowNode("th", head, aligns)), node("tbody", {}, ...rows.map((cells) => rowNode("td", cells, aligns))));
  for (const cell of table.tHead.rows[0].cells) cell.scope = "col";
  const box = node("div", { className: "table", tabIndex: 0 }, table);
  if (rest !== "") box.append(plainNode(rest));
  return box;
}

const rowNode = (name, cells, aligns) =>
  node("tr", {}, ...cells.map((cell, index) => node(name, { className: aligns[index] }, ...inlineNodes(cell))));

const plainNode = (text) => node("pre", { className: "plain" }, document.createTextNode(text));

// --- what grows ---

// Shows a text that grows. What is already there stays as it is, so that a reader can mark and copy while more comes, and so that a
// long list takes no longer for each word than a short one.
class MarkdownView {
  #box;
  #text = "";
  #shown = [];

  constructor(box) {
    this.#box = box;
  }

  show(text) {
    const blocks = parseMarkdown(text, text.startsWith(this.#text) ? this.#shown : []);
    growBlocks(this.#box, this.#shown, blocks, false);
    this.#text = text;
    this.#shown = blocks;
  }
}

// A heading's rank hangs on those before it, and whether a list is loose on what follows it.
function isSame(before, now) {
  return before !== undefined && before.source === now.source && before.rank === now.rank && before.loose === now.loose;
}

// How many are the same at the beginning of both.
function sameParts(before, now, same) {
  let count = 0;
  while (count < now.length && same(before[count], now[count])) count += 1;
  return count;
}

// Takes what is behind the first `count` children out, and puts these in its place.
function replaceRest(box, count, nodes) {
  while (box.childNodes.length > count) box.lastChild.remove();
  box.append(...nodes);
}

// The box has a node for each of the blocks before.
function growBlocks(box, before, now, nested) {
  let count = sameParts(before, now, isSame);
  if (grow(box.childNodes[count], before[count], now[count])) count += 1;
  replaceRest(box, count, now.slice(count).map((block) => blockNode(block, nested)));
}

// Makes the node of a block that of the longer block, where only its end is new. Otherwise it is left alone, and made anew.
function grow(made, before, now) {
  if (before === undefined || now === undefined || before.kind !== now.kind) return false;
  switch (now.kind) {
    case "code":
      return before.language === now.language && growText(made.querySelector("code"), before.text, now.text);
    case "plain":
      return growText(made, before.text, now.text);
    case "quote":
      growBlocks(made, before.blocks, now.blocks, true);
      return true;
    case "list":
      return growList(made, before, now);
    case "table":
      return growTable(made, before, now);
    default:
      return false;
  }
}

function growText(made, before, now) {
  const grows = now.startsWith(before);
  if (grows) made.firstChild.appendData(now.slice(before.length));
  return grows;
}

function growList(list, before, now) {
  if (before.start !== now.start || before.loose !== now.loose) return false;
  let count = sameParts(before.items, now.items, (one, other) => one?.source === other.source);
  if (growItem(list.childNodes[count], before.items[count], now.items[count], now.loose)) count += 1;
  replaceRest(list, count, now.items.slice(count).map((item) => itemNode(item, now.loose)));
  return true;
}

function growItem(made, before, now, loose) {
  if (before === undefined || now === undefined || before.task !== now.task) return false;
  const count = sameParts(before.blocks, now.blocks, isSame);
  const last = before.blocks.length - 1;
  // A paragraph may be several nodes of an item, or none; whatever else grows is its last.
  const grown = count === last && grow(made.lastChild, before.blocks[last], now.blocks[last]);
  if (!grown && count <= last) return false;
  made.append(...insideItem(now.blocks.slice(last + 1), loose));
  return true;
}

function growTable(box, before, now) {
  // The line of names and the one below it, which says how the columns stand.
  const headOf = ({ source }) => source.split("\n", 2).join("\n");
  if (headOf(before) !== headOf(now) || !now.rest.startsWith(before.rest)) return false;
  const count = sameParts(before.rows, now.rows, (one, other) => one === other);
  replaceRest(box.querySelector("tbody"), count, now.rows.slice(count).map((cells) => rowNode("td", cells, now.aligns)));
  if (before.rest !== "") growText(box.lastChild, before.rest, now.rest);
  else if (now.rest !== "") box.append(plainNode(now.rest));
  return true;
}
