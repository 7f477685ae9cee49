// Markdown → a tree of blocks, each with the source it was made of. Makes no nodes, and loses no text: what is no Markdown that we
// know, HTML above all, stays the text it is.

const LONGEST_MARKDOWN = 200_000; // what is beyond stays plain
const DEEPEST = 8; // lists and quotes inside each other
const MOST_CELLS = 5000; // of a table; further rows stay plain
const MOST_COLUMNS = 60;

const FENCE = /^( {0,3})(`{3,}|~{3,})(.*)$/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)/;

// `before` are the blocks of a text that this one goes on with. What comes later changes the last two of them at most: the line that
// was being written may turn out to belong to the block above it. The same holds for what blocks are made of, so a long list or table
// is not read again either: finished items and rows stay the objects they are.
function parseMarkdown(text, before = []) {
  const lines = text.slice(0, LONGEST_MARKDOWN).split(/\r\n|\r|\n/);
  const blocks = blocksOf(lines, 0, before.filter(({ kind }) => kind !== "plain"));
  const rest = text.slice(LONGEST_MARKDOWN);
  if (rest !== "") blocks.push({ kind: "plain", text: rest, source: rest, line: lines.length });
  return withRankedHeadings(blocks);
}

// Of the blocks, items or rows that there were when fewer lines had come: what is finished, and what may still change.
const finished = (before) => [before.slice(0, -2), before.slice(-2)];
const partsOf = (before, kind, name) => (before?.kind === kind ? before[name] : []);

function blocksOf(lines, depth, before) {
  const [blocks, changing] = finished(before);
  for (let at = changing[0]?.line ?? 0; at < lines.length; ) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const earlier = changing.find(({ line }) => line === at);
    const [block, next] = blockAt(lines, at, depth, earlier);
    blocks.push({ ...block, source: lines.slice(at, next).join("\n"), line: at });
    at = next;
  }
  return blocks;
}

const isBlank = (line) => line.trim() === "";
// A tab sets in as four spaces do.
const widthOf = (space) => space.replaceAll("\t", "    ").length;
const indentOf = (line) => widthOf(/^[ \t]*/.exec(line)[0]);

// Takes so much off the beginning of a line at most, and leaves the tabs behind it: they may be code's own.
function dedent(line, most) {
  let [at, width] = [0, 0];
  while (width < most && (line[at] === " " || line[at] === "\t")) {
    width += line[at] === "\t" ? 4 : 1;
    at += 1;
  }
  return " ".repeat(Math.max(width - most, 0)) + line.slice(at);
}

// The block that begins at this line, and the line behind it. `before` is what began there when fewer lines had come.
function blockAt(lines, at, depth, before) {
  const line = lines[at];
  if (fenceOf(line)) return codeAt(lines, at);
  if (HEADING.test(line)) return [headingOf(line), at + 1];
  if (RULE.test(line)) return [{ kind: "rule" }, at + 1];
  if (depth < DEEPEST && QUOTE.test(line)) return quoteAt(lines, at, depth, partsOf(before, "quote", "blocks"));
  if (depth < DEEPEST && ITEM.test(line)) return listAt(lines, at, depth, partsOf(before, "list", "items"));
  if (columnsAt(lines, at) > 0) return tableAt(lines, at, partsOf(before, "table", "rows"));
  return paragraphAt(lines, at);
}

// Whether a line ends the paragraph before it.
function interrupts(lines, at) {
  const line = lines[at];
  const item = ITEM.exec(line);
  if (fenceOf(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)) return true;
  // A number at the beginning of a line is often just a number.
  if (item) return item[3] !== "" && (!/\d/.test(item[2]) || /^1[.)]$/.test(item[2]));
  return columnsAt(lines, at) > 0;
}

function fenceOf(line) {
  const [, indent, fence, info] = FENCE.exec(line) ?? [];
  if (!fence || (fence[0] === "`" && info.includes("`"))) return null;
  return { indent: indent.length, fence, language: info.trim() };
}

// A fence that is not closed (yet) goes on to the end.
function codeAt(lines, at) {
  const { indent, fence, language } = fenceOf(lines[at]);
  let end = at + 1;
  const closes = (line) => {
    const trimmed = line.trim();
    return trimmed.length >= fence.length && indentOf(line) <= 3 && runLength(trimmed, 0) === trimmed.length && trimmed[0] === fence[0];
  };
  while (end < lines.length && !closes(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).map((line) => dedent(line, indent)).join("\n");
  return [{ kind: "code", language, text }, Math.min(end + 1, lines.length)];
}

function headingOf(line) {
  const [mark, signs] = HEADING.exec(line);
  const text = line.slice(mark.length).trim().replace(/(^| )#+$/, "");
  return { kind: "heading", level: signs.length, children: parseInline(text.trim()) };
}

// Readers who go by headings find none left out: each is at most one level below the one before.
function withRankedHeadings(blocks) {
  let rank = 0;
  return blocks.map((block) => {
    if (block.kind !== "heading") return block;
    rank = Math.min(block.level, rank + 1);
    return { ...block, rank };
  });
}

function quoteAt(lines, at, depth, before) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [{ kind: "quote", blocks: blocksOf(inside, depth + 1, before) }, end];
}

function listAt(lines, at, depth, before) {
  const [, first, sign] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(sign);
  const [items, changing] = finished(before);
  let next = changing[0]?.line ?? at;
  while (next < lines.length) {
    const item = ITEM.exec(lines[next]);
    const sibling = item && !RULE.test(lines[next]) && widthOf(item[1]) < widthOf(first) + 2 && /\d/.test(item[2]) === ordered;
    if (!sibling) break;
    const end = itemEnd(lines, next, widthOf(item[1]));
    // More than four spaces behind the sign are the text's own.
    const gap = widthOf(item[3]) > 4 ? 1 : widthOf(item[3]);
    const inset = widthOf(item[1]) + item[2].length + gap;
    const text = lines[next].slice(item[1].length + item[2].length);
    const inside = [dedent(text, gap), ...lines.slice(next + 1, end).map((line) => dedent(line, inset))];
    const blank = inside.findIndex(isBlank);
    let behind = end;
    while (behind < lines.length && isBlank(lines[behind])) behind += 1;
    const goesOn = behind < lines.length && ITEM.test(lines[behind]);
    const loosens = (blank > 0 && inside.slice(blank).some((line) => !isBlank(line))) || (goesOn && behind > end);
    const earlier = changing.find(({ line }) => line === next)?.blocks ?? [];
    items.push({ ...itemOf(inside, depth, earlier), loosens, source: lines.slice(next, end).join("\n"), line: next });
    next = behind;
  }
  const start = ordered ? Number.parseInt(sign, 10) : null;
  const loose = items.some(({ loosens }) => loosens);
  return [{ kind: "list", start, loose, items }, Math.min(next, lines.length)];
}

// The line behind an item: its own lines are set in; a line right below its text that begins nothing else goes on with it.
function itemEnd(lines, at, indent) {
  let end = at + 1;
  for (let line = at + 1; line < lines.length; line += 1) {
    if (isBlank(lines[line])) continue;
    const set = indentOf(lines[line]) >= indent + 2;
    const lazy = line === end && !ITEM.test(lines[line]) && !interrupts(lines, line);
    if (!set && !lazy) break;
    end = line + 1;
  }
  return end;
}

function itemOf(lines, depth, before) {
  const [, box, text] = /^\[([ xX])\] (.*)$/.exec(lines[0]) ?? [];
  const task = box === undefined ? null : box === " " ? "open" : "done";
  return { task, blocks: blocksOf(task ? [text, ...lines.slice(1)] : lines, depth + 1, before) };
}

function cellsOf(line) {
  const cells = [""];
  const trimmed = line.trim();
  for (let at = trimmed.startsWith("|") ? 1 : 0; at < trimmed.length; at += 1) {
    if (trimmed[at] === "\\" && trimmed[at + 1] === "|") {
      cells[cells.length - 1] += "|";
      at += 1;
    } else if (trimmed[at] !== "|") {
      cells[cells.length - 1] += trimmed[at];
    } else if (at < trimmed.length - 1) {
      cells.push("");
    }
  }
  return cells.map((cell) => cell.trim());
}

// How many columns the table has whose head is this line; 0 when it is no head of a table.
function columnsAt(lines, at) {
  const [head, below] = [lines[at], lines[at + 1] ?? ""];
  if (!head.includes("|") || !/^[ \t|:-]+$/.test(below) || !below.includes("-")) return 0;
  const columns = cellsOf(below);
  const fits = columns.length <= MOST_COLUMNS && columns.every((cell) => /^:?-+:?$/.test(cell)) && cellsOf(head).length === columns.length;
  return fits ? columns.length : 0;
}

function tableAt(lines, at, before) {
  const columns = columnsAt(lines, at);
  const aligns = cellsOf(lines[at + 1]).map((cell) =>
    cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left");
  const rowOf = (line) => {
    const cells = cellsOf(line);
    // Cells without a column are still somebody's words.
    const kept = cells.length > columns ? [...cells.slice(0, columns - 1), cells.slice(columns - 1).join(" | ")] : cells;
    return Array.from({ length: columns }, (_, index) => parseInline(kept[index] ?? ""));
  };
  const [rows] = finished(before);
  let end = at + 2 + rows.length;
  while (end < lines.length && lines[end].includes("|") && !isBlank(lines[end])) {
    if ((rows.length + 1) * columns < MOST_CELLS) rows.push(rowOf(lines[end]));
    end += 1;
  }
  const rest = lines.slice(at + 2 + rows.length, end).join("\n");
  return [{ kind: "table", aligns, head: rowOf(lines[at]), rows, rest }, end];
}

function paragraphAt(lines, at) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !interrupts(lines, end)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim()).join("\n");
  return [{ kind: "paragraph", children: parseInline(text) }, end];
}
