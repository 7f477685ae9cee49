import assert from "node:assert/strict";
import test from "node:test";
import { partsIn, plain } from "./parts.mjs";

const { parseInline, parseMarkdown, LONGEST_MARKDOWN } = partsIn();

// The tree in short: `strong[a]`, `link(address)[a]`.
function told(piece) {
  if (typeof piece === "string") return piece;
  if (piece.kind === "break") return "⏎";
  if (piece.kind === "code") return `code[${piece.text}]`;
  const address = "url" in piece ? `(${piece.url})` : "";
  return `${piece.kind}${address}[${piece.children.map(told).join("")}]`;
}
const inline = (text) => parseInline(text).map(told).join("");

function shape(block) {
  switch (block.kind) {
    case "code": return `code:${block.language}[${block.text}]`;
    case "heading": return `h${block.rank}[${block.children.map(told).join("")}]`;
    case "quote": return `quote[${block.blocks.map(shape).join(" ")}]`;
    case "list": {
      const items = block.items.map(({ task, blocks }) => `${task ? `${task}:` : ""}${blocks.map(shape).join(" ")}`);
      return `${block.start === null ? "ul" : `ol${block.start}`}${block.loose ? "+" : ""}[${items.join("; ")}]`;
    }
    case "table": {
      const row = (cells) => cells.map((cell) => cell.map(told).join("")).join(",");
      return `table<${block.aligns}>[${[block.head, ...block.rows].map(row).join("; ")}]${block.rest}`;
    }
    case "paragraph": return `p[${block.children.map(told).join("")}]`;
    default: return block.kind;
  }
}
const blocks = (text) => parseMarkdown(text).map(shape).join(" ");

function assertAll(parse, cases) {
  for (const [text, expected] of cases) assert.equal(parse(text), expected, text);
}

test("emphasis, code, breaks and escapes", () => {
  assertAll(inline, [
    ["a *b* **c** ***d*** _e_ __f__ ~~g~~", "a em[b] strong[c] em[strong[d]] em[e] strong[f] del[g]"],
    ["**a *b* c**", "strong[a em[b] c]"],
    ["**a *b***", "strong[a em[b]]"],
    ["snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"],
    ["**open and *unclosed", "**open and *unclosed"],
    ["about ~5 and ~6", "about ~5 and ~6"],
    ["`a*b*` ``x ` y`` ` open", "code[a*b*] code[x ` y] ` open"],
    ["\\*not\\* \\` &lt;b&gt; &amp;amp;", "*not* ` <b> &amp;"],
    ["\\``x`", "`code[x]"],
    ["one\ntwo<br>three", "one⏎two⏎three"],
    ["****", "****"],
  ]);
});

test("links lead to the web and nowhere else; pictures are links", () => {
  assertAll(inline, [
    ["[a **b**](https://x.org/p_(q)?a=1)", "link(https://x.org/p_(q)?a=1)[a strong[b]]"],
    ['[a](<https://x.org> "title")', "link(https://x.org/)[a]"],
    ["see https://x.org/a_b_c, or (https://y.org).", "see link(https://x.org/a_b_c)[https://x.org/a_b_c], or (link(https://y.org/)[https://y.org])."],
    ["<https://x.org>", "link(https://x.org/)[https://x.org]"],
    ["![a cat](https://x.org/cat.png)", "image(https://x.org/cat.png)[a cat]"],
    ["[![b](https://x.org/b.svg)](https://y.org)", "link(https://y.org/)[image(https://x.org/b.svg)[b]]"],
    ["[a](javascript:alert(1)) [b](data:text/html,x) [c](/here) [d](java\tscript:x)", "link(null)[a] link(null)[b] link(null)[c] [d](java\tscript:x)"],
    ["[a](vbscript:x) [b](file:///etc/passwd) [c]( JaVaScRiPt:alert(1))", "link(null)[a] link(null)[b] link(null)[c]"],
    ["[1] and [x] (y)", "[1] and [x] (y)"],
    ["[a [b](https://x.org) c](https://y.org)", "[a link(https://x.org/)[b] c](link(https://y.org/)[https://y.org])"],
    ["<script>alert(1)</script> <img src=x onerror=alert(1)>", "<script>alert(1)</script> <img src=x onerror=alert(1)>"],
  ]);
});

test("blocks", () => {
  assertAll(blocks, [
    ["# A\ntext\nmore\n\n### B ###\n***\n", "h1[A] p[text⏎more] h2[B] rule"],
    ["```rust\nfn a() {\n\tb();\n}\n```\nafter", "code:rust[fn a() {\n\tb();\n}] p[after]"],
    ["before\n~~~\n```\n~~~", "p[before] code:[```]"],
    ["```\nnot *closed*\n- yet", "code:[not *closed*\n- yet]"],
    ["> a\n> > b\n\nc", "quote[p[a] quote[p[b]]] p[c]"],
    ["- a\n- b\n  - c\n    more\n- d", "ul[p[a]; p[b] ul[p[c⏎more]]; p[d]]"],
    ["- a\n\t- b", "ul[p[a] ul[p[b]]]"],
    ["1. a\n   ```sh\n   ls\n   ```\n2. b", "ol1[p[a] code:sh[ls]; p[b]]"],
    ["3) a\n\n4) b\n\nend", "ol3+[p[a]; p[b]] p[end]"],
    ["- [ ] a\n- [x] b", "ul[open:p[a]; done:p[b]]"],
    ["In the year\n1986. was warm\n1. first", "p[In the year⏎1986. was warm] ol1[p[first]]"],
    ["a\n| x | y |\n|---|--:|\n| 1 | `a\\|b` |\n| 2 |\nend", "p[a] table<left,right>[x,y; 1,code[a|b]; 2,] p[end]"],
    ["| a | b |\nno table", "p[| a | b |⏎no table]"],
    ["a\n2. b|\n-|", "p[a⏎2. b|⏎-|]"],
    ["<div>\n<script>x</script>", "p[<div>⏎<script>x</script>]"],
    ["", ""],
  ]);
});

// Texts that a careless writer could write, the same in every run.
const SIGNS = ["a1 ", "b2", "\n", "\n\n", "*", "**", "_", "`", "```\n", "[", "](https://c3.org/)", "![", "|", "\n|-|-|\n", "> ", "- ", "1. ", "# ", "\\", "<br>", "~~",
  "  ", "#", "-", "\r", "\t"];
// What becomes long lists, tables and quotes, in each other too.
const PARTS = ["\n- a1", "\n  - b2", "\n1. a1", "\n2. b2", "\n- [ ] a1", "\n\n- b2", "\n> a1", "\n> - b2", "\n> | a1 | b2 |", "\n> |-|-|", "\n| a1 | b2 |", "\na1|b2",
  "\n-|-", "\n|-|-|", "\n  | a1 | b2 |", "\n  |-|-|", "\n    b2", "\n---"];
let seed = 7;
const draw = (most) => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return Math.floor((seed / 2147483648) * most);
};
const anyOf = (list, most) => Array.from({ length: 1 + draw(most) }, () => list[draw(list.length)]).join("");
const anyText = () => anyOf(SIGNS, 30);
const anyList = () => anyOf([...SIGNS, ...PARTS, ...PARTS], 45);

test("a text that comes piece by piece is read as it is read whole", () => {
  for (let round = 0; round < 4000; round += 1) {
    const text = round % 2 === 0 ? anyText() : anyList();
    let read = [];
    for (let end = 0; end < text.length; ) {
      end = Math.min(end + 1 + draw(4), text.length);
      read = parseMarkdown(text.slice(0, end), read);
    }
    assert.deepEqual(plain(read), plain(parseMarkdown(text)), JSON.stringify(text));
  }
});

test("of a list or a table that grows only the end is read again", () => {
  const item = (number) => `- item **${number}**\n`;
  const row = (number) => `| ${number} | *b* |\n`;
  for (const [begin, part, partsOf] of [
    ["", item, (blocks) => blocks[0].items],
    ["> ", (number) => `${item(number)}> `, (blocks) => blocks[0].blocks[0].items],
    ["- a\n", (number) => `  ${item(number)}`, (blocks) => blocks[0].items[0].blocks[1].items],
    ["| a | b |\n|---|---|\n", row, (blocks) => blocks[0].rows],
  ]) {
    let text = begin;
    let read = [];
    let parts = [];
    for (let number = 0; number < 200; number += 1) {
      text += part(number);
      read = parseMarkdown(text, read);
      const now = partsOf(read);
      assert.equal(now.length, number + 1);
      // The very same objects.
      parts.slice(0, -2).forEach((one, index) => assert.ok(one === now[index], `${begin}${index} of ${number}`));
      parts = now;
    }
  }
});

// The words of a tree, in order.
function words(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(words).join(" ");
  const { children, blocks: inside, items, head, rows, rest, language, text } = value;
  return [children, inside, items, head, rows, rest, language, text].filter((part) => part !== undefined).map(words).join(" ");
}
const marked = (text) => text.match(/a1|b2/g) ?? [];

test("no word is lost, whatever the text is", () => {
  for (let round = 0; round < 3000; round += 1) {
    const text = anyText();
    assert.deepEqual(marked(words(parseMarkdown(text))), marked(text), JSON.stringify(text));
  }
});

// How deep somebody who walks the tree has to go.
const depthOf = (value) =>
  (typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).slice(0, 1000).map(depthOf)) : 0);

test("a hostile text takes hardly longer than a friendly one", () => {
  const hostile = ["*", "_a", "**a ", "[", "![", "[a](", "](", "`", "`` ` ", "> ", "- ", "1. ", "# ", "|", "|-", "a|b\n-|-\n", "<", "&", "~~", "\\", "*_", "[*",
    "https://", "https://x/)", ") ", " ", "\n", "- a\n", "  ", "```\n", "***", "\t", "- - ", "a\n> ", "[x](http://a(", "[http://a(",
    "http://[", "<http://a"];
  for (const sign of hostile) {
    const text = sign.repeat(LONGEST_MARKDOWN / sign.length);
    const began = process.cpuUsage();
    const tree = parseMarkdown(text);
    // Of the processor's time, so that a busy machine does not count.
    const took = process.cpuUsage(began).user / 1000;
    assert.ok(took < 2000, `${JSON.stringify(sign)} took ${took} ms`);
    assert.ok(depthOf(tree) < 300, `${JSON.stringify(sign)} is too deep`);
  }
});

test("what is no address is looked at once, however many seem to begin in it", () => {
  let looked = 0;
  const { parseInline: parse } = partsIn({ URL: class extends URL {
    constructor(text) {
      looked += text.length;
      super(text);
    }
  } });
  for (const sign of ["[x](http://a(", "http://["]) {
    looked = 0;
    parse(sign.repeat(10_000));
    assert.ok(looked <= sign.length * 10_000, `${JSON.stringify(sign)}: ${looked}`);
  }
  assert.equal(parse("http://^ http://b.org").map(told).join(""), "http://^ link(http://b.org/)[http://b.org]");
});

test("a huge text is shown to its end, and a huge table too", () => {
  const end = parseMarkdown("a\n".repeat(LONGEST_MARKDOWN)).at(-1);
  assert.equal(end.kind, "plain");
  const rows = "| 1 | 2 |\n".repeat(4000);
  const [table] = parseMarkdown(`| a | b |\n|---|---|\n${rows}`);
  assert.equal(table.rows.length + table.rest.split("\n").length, 4000);
  assert.ok(table.rows.length < 3000);
});
