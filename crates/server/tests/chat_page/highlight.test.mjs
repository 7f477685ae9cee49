import assert from "node:assert/strict";
import test from "node:test";
import { partsIn, plain } from "./parts.mjs";

const { codeParts, LONGEST_CODE, MOST_MARKS } = partsIn();

const marks = (code, language) => plain(codeParts(code, language)).filter(([kind]) => kind !== "").map(([kind, text]) => `${kind}:${text}`);

test("keywords, strings, comments and numbers are found", () => {
  for (const [language, code, expected] of [
    ["rust", 'fn a() -> u8 { 0xff } // "no"', ["keyword:fn", "number:0xff", 'comment:// "no"']],
    ["python", "def f(x): # it\n  return '''a\nb''' + 1.5", ["keyword:def", "comment:# it", "keyword:return", "string:'''a\nb'''", "number:1.5"]],
    ["ts", "const a = `x\ny`; /* b\n */", ["keyword:const", "string:`x\ny`", "comment:/* b\n */"]],
    ["c++", 'char *s = "a\\"b";', ["keyword:char", 'string:"a\\"b"']],
    ["java", "public int x = 1_000L;", ["keyword:public", "keyword:int", "number:1_000L"]],
    ["go", "func main() { x := 'a' }", ["keyword:func", "string:'a'"]],
    ["bash", 'if [ $x ]; then echo "$y" ${z}#no; fi # yes', ["keyword:if", "name:$x", "keyword:then", 'string:"$y"', "name:${z}", "keyword:fi", "comment:# yes"]],
    ["json", '{"a": [1, true, "b"]}', ['name:"a"', "number:1", "keyword:true", 'string:"b"']],
    ["yaml", "a: yes # b\nc: 'd'", ["name:a", "keyword:yes", "comment:# b", "name:c", "string:'d'"]],
    ["toml", '[a]\nb = "c"', ["name:b", 'string:"c"']],
    ["html", '<p class="a">1 &lt; 2</p><!-- c -->', ["keyword:<p", 'string:"a"', "number:1", "number:2", "keyword:</p", "comment:<!-- c -->"]],
    ["css", "a { color: red } /* b */", ["name:color", "comment:/* b */"]],
    ["sql", "SELECT 'a' FROM t -- c", ["keyword:SELECT", "string:'a'", "keyword:FROM", "comment:-- c"]],
    ["Rust,ignore", "let a;", ["keyword:let"]],
  ]) assert.deepEqual(marks(code, language), expected, language);
});

test("the parts are the code, whatever it contains", () => {
  const pieces = ["\"", "'", "`", "\\", "/*", "*/", "//", "#", "<!--", "<a", "\n", " ", "${", "fn", "漢", "1.", "0x", "=", ":", "\u0000", "🦙"];
  let seed = 7;
  const next = (most) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % most;
  for (const language of ["rust", "python", "js", "c", "bash", "json", "yaml", "toml", "html", "css", "sql"]) {
    for (let round = 0; round < 200; round += 1) {
      const code = Array.from({ length: 30 }, () => pieces[next(pieces.length)]).join("");
      assert.equal(codeParts(code, language).map(([, text]) => text).join(""), code, `${language}: ${JSON.stringify(code)}`);
    }
  }
});

test("unknown languages and long code stay as they are, and marks are bounded", () => {
  assert.equal(codeParts("a", ""), null);
  assert.equal(codeParts("a", "cobol"), null);
  assert.equal(codeParts("x".repeat(LONGEST_CODE + 1), "rust"), null);
  const many = codeParts("1 ".repeat(LONGEST_CODE / 2), "rust");
  assert.ok(many.length <= MOST_MARKS + 2, String(many.length));
  assert.equal(many.map(([, text]) => text).join("").length, LONGEST_CODE);
});

test("signs that are repeated take no longer", () => {
  for (const sign of ["\"", "/*", "'''", "<", "${", "a", "(", "<!-", "1.", "#"]) {
    for (const language of ["rust", "python", "bash", "html", "json"]) codeParts(sign.repeat(LONGEST_CODE / sign.length), language);
  }
});
