// Markdown inside a line: text → a tree of strings and `{ kind, … }`. Makes no nodes, and takes time in proportion to the text,
// whatever the text is.

const MOST_OPEN = 32; // marks or brackets that wait for their other half; so deep can the tree be
const LOOK_BACK = 16; // marks that are tried for one that closes
const LONGEST_ADDRESS = 2000;

const SPECIAL = /[\\`*_~[\]!<&\nh]/g;
const BARE_ADDRESS = /https?:\/\/[^\s<>"`|]{1,2000}/y;
const POINTED_ADDRESS = /<(https?:\/\/[^\s<>]{1,2000})>/y;
const LINE_BREAK_TAG = /<br ?\/?>/iy;
const ENTITY = /&(amp|lt|gt|quot|#39|nbsp);/y;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };
const SPACE = /\s/;
const SIGN = /[\p{P}\p{S}]/u;
const ESCAPABLE = /[!-/:-@[-`{-~]/;

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// Only the web: what a link could start here otherwise is nobody's business.
function webAddress(text) {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

function parseInline(text) {
  return new InlineParser(text).parse();
}

class InlineParser {
  #text;
  #at = 0;
  #plain = "";
  #out = [];
  #marks = []; // what may open emphasis: `{ sign, count, both, place }`, each with its entry in #out
  #brackets = []; // `{ place, image }`
  #ticks = null; // length of a run of backticks → where such runs are
  #noAddress = 0; // up to here it was tried for one in vain

  constructor(text) {
    this.#text = text;
  }

  parse() {
    const text = this.#text;
    while (this.#at < text.length) {
      const found = matchAt(SPECIAL, text, this.#at);
      const end = found ? found.index : text.length;
      this.#plain += text.slice(this.#at, end);
      this.#at = end;
      if (found && !this.#special(found[0])) {
        this.#plain += found[0];
        this.#at += 1;
      }
    }
    this.#flush();
    return joined(this.#out);
  }

  #flush() {
    if (this.#plain !== "") this.#out.push(this.#plain);
    this.#plain = "";
  }

  #add(piece, length) {
    this.#flush();
    this.#out.push(piece);
    this.#at += length;
    return true;
  }

  // Whether something begins or ends here; otherwise the sign is itself.
  #special(sign) {
    const text = this.#text;
    switch (sign) {
      case "\\": {
        const next = text[this.#at + 1] ?? "";
        if (next === "\n") return this.#break(2);
        if (!ESCAPABLE.test(next)) return false;
        this.#plain += next;
        this.#at += 2;
        return true;
      }
      case "\n":
        return this.#break(1);
      case "`":
        return this.#code();
      case "*":
      case "_":
      case "~":
        return this.#emphasis(sign);
      case "[":
        return this.#open("[", false);
      case "!":
        return text[this.#at + 1] === "[" && this.#open("![", true);
      case "]":
        return this.#close();
      case "<": {
        if (matchAt(LINE_BREAK_TAG, text, this.#at)) return this.#break(LINE_BREAK_TAG.lastIndex - this.#at);
        const found = matchAt(POINTED_ADDRESS, text, this.#at);
        return found !== null && this.#address(found[1], found[0].length);
      }
      case "&": {
        const found = matchAt(ENTITY, text, this.#at);
        if (!found) return false;
        this.#plain += ENTITIES[found[1]];
        this.#at += found[0].length;
        return true;
      }
      default:
        return this.#bareAddress();
    }
  }

  // A line ends where its writer ended it: models write verses and lists of lines that way.
  #break(length) {
    this.#plain = this.#plain.trimEnd();
    return this.#add({ kind: "break" }, length);
  }

  #code() {
    const text = this.#text;
    const length = runLength(text, this.#at);
    this.#ticks ??= runsOfTicks(text);
    // A run whose first tick was escaped is known by its whole length only.
    const places = this.#ticks.get(length) ?? [];
    while (places.length > 0 && places.at(-1) <= this.#at) places.pop();
    if (places.length === 0) {
      this.#plain += "`".repeat(length);
      this.#at += length;
      return true;
    }
    const end = places.pop();
    let inside = text.slice(this.#at + length, end).replaceAll("\n", " ");
    if (inside.startsWith(" ") && inside.endsWith(" ") && inside.trim() !== "") inside = inside.slice(1, -1);
    return this.#add({ kind: "code", text: inside }, end + length - this.#at);
  }

  #emphasis(sign) {
    const text = this.#text;
    const length = runLength(text, this.#at);
    const mark = { sign, count: length, both: false, place: 0 };
    if (length <= 3 && (sign !== "~" || length === 2)) {
      const before = text[this.#at - 1] ?? " ";
      const after = text[this.#at + length] ?? " ";
      const [opens, closes] = flanks(sign, before, after);
      mark.both = opens && closes;
      if (closes) this.#wrap(mark);
      if (opens && mark.count > 0) {
        this.#flush();
        if (this.#marks.length >= MOST_OPEN) this.#marks.shift();
        mark.place = this.#out.length;
        this.#marks.push(mark);
        this.#out.push(mark);
        this.#at += length;
        return true;
      }
    }
    this.#plain += sign.repeat(mark.count);
    this.#at += length;
    return true;
  }

  // Puts what lies between this mark and those that it closes into elements.
  #wrap(mark) {
    while (mark.count > 0) {
      let index = this.#marks.length - 1;
      const last = Math.max(index - LOOK_BACK, -1);
      while (index > last && !fits(this.#marks[index], mark)) index -= 1;
      if (index <= last) return;
      const opener = this.#marks[index];
      const used = Math.min(2, opener.count, mark.count);
      this.#flush();
      const children = this.#out.splice(opener.place + 1);
      // What was opened in between and not closed is text.
      this.#marks.length = index + 1;
      this.#brackets = this.#brackets.filter((bracket) => bracket.place < opener.place);
      opener.count -= used;
      mark.count -= used;
      if (opener.count === 0) this.#marks.pop();
      const kind = mark.sign === "~" ? "del" : used === 2 ? "strong" : "em";
      this.#out.push({ kind, children: joined(children) });
    }
  }

  #open(sign, image) {
    if (this.#brackets.length >= MOST_OPEN) this.#brackets.shift();
    this.#flush();
    this.#brackets.push({ place: this.#out.length, image });
    return this.#add(sign, sign.length);
  }

  #close() {
    const bracket = this.#brackets.pop();
    const target = bracket && linkTarget(this.#text, this.#at + 1);
    if (!target) return false;
    this.#flush();
    const children = joined(this.#out.splice(bracket.place).slice(1));
    this.#marks = this.#marks.filter((mark) => mark.place < bracket.place);
    // A link has no link inside.
    if (!bracket.image) this.#brackets = [];
    const url = webAddress(target.address);
    return this.#add({ kind: bracket.image ? "image" : "link", url, children }, target.end - this.#at);
  }

  #address(address, length) {
    const url = webAddress(address);
    return url !== null && this.#add({ kind: "link", url, children: [address] }, length);
  }

  #bareAddress() {
    // Inside brackets it is the text of a link.
    if (this.#brackets.length > 0 || this.#at < this.#noAddress) return false;
    if (/[\p{L}\p{N}]/u.test(this.#text[this.#at - 1] ?? "")) return false;
    const found = matchAt(BARE_ADDRESS, this.#text, this.#at);
    if (!found) return false;
    const address = withoutStops(found[0]);
    if (this.#address(address, address.length)) return true;
    this.#noAddress = this.#at + found[0].length;
    return false;
  }
}

function runLength(text, at) {
  let end = at;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

// Each list has its first place last, so that places are taken from its end.
function runsOfTicks(text) {
  const runs = new Map();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    if (!runs.has(run.length)) runs.set(run.length, []);
    runs.get(run.length).push(index);
  }
  for (const places of runs.values()) places.reverse();
  return runs;
}

// What ends a sentence, or a bracket that was opened before the address, is no part of it.
function withoutStops(address) {
  let unopened = address.split(")").length - address.split("(").length;
  let end = address.length;
  for (; end > 0; end -= 1) {
    const sign = address[end - 1];
    if (sign === ")" ? unopened-- <= 0 : !".,;:!?'*_~]}".includes(sign)) break;
  }
  return address.slice(0, end);
}

// Whether a run of marks can open and can close, by what stands around it.
function flanks(sign, before, after) {
  const [spaceBefore, spaceAfter] = [SPACE.test(before), SPACE.test(after)];
  const [signBefore, signAfter] = [SIGN.test(before), SIGN.test(after)];
  const left = !spaceAfter && (!signAfter || spaceBefore || signBefore);
  const right = !spaceBefore && (!signBefore || spaceAfter || signAfter);
  // Underlines inside a word are part of its name.
  return sign === "_" ? [left && (!right || signBefore), right && (!left || signAfter)] : [left, right];
}

function fits(opener, mark) {
  if (opener.sign !== mark.sign) return false;
  const sum = opener.count + mark.count;
  return !((opener.both || mark.both) && sum % 3 === 0 && opener.count % 3 !== 0);
}

// `(address "title")` behind a bracket; the title is of no use here.
function linkTarget(text, at) {
  if (text[at] !== "(") return null;
  const piece = text.slice(at + 1, at + 1 + LONGEST_ADDRESS);
  let end = 0;
  let depth = 0;
  const pointed = /^\s{0,9}<([^<>\n]*)>/.exec(piece);
  const space = /^\s{0,9}/.exec(piece)[0].length;
  if (pointed) {
    end = pointed[0].length;
  } else {
    for (end = space; end < piece.length; end += 1) {
      const sign = piece[end];
      if (sign === "\\") end += 1;
      else if (sign === "(") depth += 1;
      else if (sign === ")" && depth > 0) depth -= 1;
      else if (sign === ")" || SPACE.test(sign)) break;
      if (depth > 4) return null;
    }
  }
  const address = pointed ? pointed[1] : piece.slice(space, end).replace(/\\([!-/:-@[-`{-~])/g, "$1");
  const rest = /^\s{0,9}(?:"[^"]{0,300}"|'[^']{0,300}')?\s{0,9}\)/.exec(piece.slice(end, end + 330));
  return rest ? { address, end: at + 1 + end + rest[0].length } : null;
}

// Neighbouring strings are one string; marks that found no other half are the signs they are.
function joined(pieces) {
  const list = [];
  for (const piece of pieces) {
    const one = piece.sign ? piece.sign.repeat(piece.count) : piece;
    if (one === "") continue;
    if (typeof one === "string" && typeof list.at(-1) === "string") list[list.length - 1] += one;
    else list.push(one);
  }
  return list;
}
