// Colours code: keywords, strings, comments and numbers of common languages. It reads each character once, and writes only text nodes.

const LONGEST_CODE = 100_000; // characters; longer code stays as it is
const MOST_MARKS = 20_000; // spans in one block; what follows stays as it is

const words = (text) => new Set(text.split(" "));
const C_LIKE = { line: ["//"], block: ["/*", "*/"], quotes: "\"'" };
const HASHED = { line: ["#"], quotes: "\"'" };

const RUST = words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type union unsafe use where while");
const PYTHON = words("and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case");
const SCRIPT = words("abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace new null number of package private protected public readonly return set static string super switch this throw true try type typeof undefined unknown var void while with yield");
const C = words("alignas alignof auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false final float for friend goto if inline int long mutable namespace new noexcept nullptr operator override private protected public register return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while");
const JAVA = words("abstract assert boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long native new null package private protected public record return sealed short static strictfp super switch synchronized this throw throws transient true try var void volatile while yield");
const GO = words("break case chan const continue default defer else fallthrough false for func go goto if import interface iota map nil package range return select struct switch true type var");
const SHELL = words("case do done elif else esac export fi for function if in local readonly return select set shift source then trap unset until while");
const SQL = words("add all alter and as asc begin between by cascade case check column commit constraint create cross default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction true union unique update using values view when where with");
const LITERALS = words("true false null yes no on off inf nan");

const LANGUAGES = new Map();
for (const [names, rules] of [
  ["rust rs", { ...C_LIKE, quotes: "\"", keywords: RUST }],
  ["python py python3", { ...HASHED, triple: true, keywords: PYTHON }],
  ["javascript js jsx mjs typescript ts tsx", { ...C_LIKE, quotes: "\"'`", keywords: SCRIPT }],
  ["c h cpp c++ cc cxx hpp csharp cs", { ...C_LIKE, keywords: C }],
  ["java kotlin", { ...C_LIKE, triple: true, keywords: JAVA }],
  ["go golang", { ...C_LIKE, quotes: "\"'`", keywords: GO }],
  ["bash sh shell zsh console", { ...HASHED, keywords: SHELL, variables: true, spaced: true }],
  ["json json5 jsonc", { ...C_LIKE, quotes: "\"", keywords: LITERALS, keys: ":" }],
  ["yaml yml", { ...HASHED, keywords: LITERALS, keys: ":", spaced: true }],
  ["toml ini", { ...HASHED, triple: true, keywords: LITERALS, keys: "=" }],
  ["html xml svg", { block: ["<!\x2d-", "-->"], line: [], quotes: "\"'", tags: true }],
  ["css scss", { line: [], block: ["/*", "*/"], quotes: "\"'", keys: ":" }],
  ["sql", { line: ["--"], block: ["/*", "*/"], quotes: "'\"", keywords: SQL, ignoresCase: true }],
]) for (const name of names.split(" ")) LANGUAGES.set(name, rules);

const isDigit = (sign) => sign >= "0" && sign <= "9";
const isWordSign = (sign) => sign !== undefined && (/^[\p{L}\p{N}_]$/u.test(sign) || sign === "$" || sign === "@");

// The end of a string that begins at `at`. One that is not closed ends with its line, or with the code if it may have several lines.
function endOfString(code, at, { triple }) {
  const quote = code[at];
  if (triple && code.startsWith(quote.repeat(3), at)) {
    const end = code.indexOf(quote.repeat(3), at + 3);
    return end < 0 ? code.length : end + 3;
  }
  for (let index = at + 1; index < code.length; index += 1) {
    if (code[index] === "\\") index += 1;
    else if (code[index] === quote) return index + 1;
    else if (code[index] === "\n" && quote !== "`") return index;
  }
  return code.length;
}

function endOfWord(code, at) {
  let end = at;
  while (end < code.length && isWordSign(code[end])) end += 1;
  return end;
}

// Digits with what belongs to a number: `0xff`, `1_000`, `2.5e-3`, `10u8`.
function endOfNumber(code, at) {
  let end = at;
  while (end < code.length && (/[0-9A-Za-z_]/.test(code[end]) || (code[end] === "." && isDigit(code[end + 1] ?? "")))) end += 1;
  return end;
}

// Whether only spaces are between the word and the sign that makes it a key.
function isKey(code, end, sign) {
  let at = end;
  while (code[at] === " ") at += 1;
  return code[at] === sign;
}

// The marks of a piece of code: `[kind, end]` of what begins at `at`, or null.
function markAt(code, at, rules) {
  const sign = code[at];
  const before = code[at - 1];
  const beginsLine = rules.line.some((start) => code.startsWith(start, at));
  // In a shell, a hash inside of a word begins no comment.
  if (beginsLine && !(rules.spaced && before !== undefined && !/\s/.test(before))) {
    const end = code.indexOf("\n", at);
    return ["comment", end < 0 ? code.length : end];
  }
  if (rules.block && code.startsWith(rules.block[0], at)) {
    const end = code.indexOf(rules.block[1], at + rules.block[0].length);
    return ["comment", end < 0 ? code.length : end + rules.block[1].length];
  }
  if (rules.tags && sign === "<" && /[A-Za-z/!]/.test(code[at + 1] ?? "")) {
    return ["keyword", endOfWord(code, code[at + 1] === "/" ? at + 2 : at + 1)];
  }
  if (rules.quotes.includes(sign)) {
    const end = endOfString(code, at, rules);
    return [rules.keys && isKey(code, end, rules.keys) ? "name" : "string", end];
  }
  if (rules.variables && sign === "$" && (isWordSign(code[at + 1]) || code[at + 1] === "{")) {
    const close = code[at + 1] === "{" ? code.indexOf("}", at) : -1;
    return ["name", close < 0 ? endOfWord(code, at + 1) : close + 1];
  }
  if (isDigit(sign)) return ["number", endOfNumber(code, at)];
  if (!isWordSign(sign)) return null;
  const end = endOfWord(code, at);
  const word = code.slice(at, end);
  if (rules.keywords?.has(rules.ignoresCase ? word.toLowerCase() : word)) return ["keyword", end];
  return [rules.keys && isKey(code, end, rules.keys) ? "name" : "", end];
}

// The code in parts `[kind, text]`, which together are the code; null if it stays as it is. A kind is empty for plain text.
function codeParts(code, language) {
  const rules = LANGUAGES.get(language.trim().toLowerCase().split(/[\s,{:]/, 1)[0]);
  if (rules === undefined || code.length > LONGEST_CODE) return null;
  const parts = [];
  let plain = 0; // where the plain text before `at` begins
  let at = 0;
  while (at < code.length && parts.length < MOST_MARKS) {
    const [kind, end] = markAt(code, at, rules) ?? ["", at + 1];
    if (kind !== "") {
      if (plain < at) parts.push(["", code.slice(plain, at)]);
      parts.push([kind, code.slice(at, end)]);
      plain = end;
    }
    at = Math.max(end, at + 1);
  }
  if (plain < code.length) parts.push(["", code.slice(plain)]);
  return parts;
}

// Colours the blocks of code in these nodes.
function colourCode(nodes) {
  const figures = nodes.flatMap((one) => (one.matches?.("figure.code") ? [one] : [...(one.querySelectorAll?.("figure.code") ?? [])]));
  for (const figure of figures) {
    const code = figure.querySelector("code");
    const parts = codeParts(code.textContent, figure.querySelector("figcaption span").textContent);
    if (parts === null) continue;
    code.replaceChildren(...parts.map(([kind, text]) => (kind === "" ? document.createTextNode(text) : node("span", { className: `code-${kind}`, textContent: text }))));
  }
}
