// The parts of the chat page that make no nodes, as a test may call them. The page has them in one script, so they have no
// exports of their own.

import { readFileSync } from "node:fs";
import vm from "node:vm";

const FILES = ["stream.js", "tree.js", "export.js", "save_limits.js", "highlight.js"];
const NAMES = [
  "EventLines", "addEvent", "readAnswer", "ask", "ChatError", "newAnswer", "LONGEST_LINE", "LONGEST_ANSWER",
  "newTurn", "pathTo", "branchesOf", "latestBelow", "mergedTurns", "readSavedAnswer", "savedForm", "fittedForm", "cutNote", "detailBytes", "MOST_SAVED_TEXT", "MOST_SAVED_DETAIL", "titleOf", "contentOf", "messagesFor", "asMarkdown", "fileNameOf",
  "codeParts", "LONGEST_CODE", "MOST_MARKS",
];
// Of the files that also make nodes, these functions.
const OLD = ["readOldMessage", "readOldConversation", "oldConversations"];

const read = (file) => readFileSync(new URL(`../../src/pages/assets/chat/${file}`, import.meta.url), "utf8");
const source = FILES.map(read).join("\n");
const functionsOf = (text, names) => names.map((name) => new RegExp(`^function ${name}\\([\\s\\S]*?^}`, "m").exec(text)[0]).join("\n");
const old = `const SHELF = "hob-chat:";
const newChat = (settings) => ({ id: null, title: "", settings, turns: [] });
${functionsOf(read("local_chat_migration.js"), OLD)}`;

// `world` is what the browser would have.
export function partsIn(world = {}) {
  const context = vm.createContext({ URL, TextDecoder, TextEncoder, AbortController, ...world });
  return vm.runInContext(`"use strict";\n${source}\n${old}\n({ ${[...NAMES, ...OLD].join(", ")} })`, context);
}

// Objects of another context have other prototypes; compared are their contents.
export const plain = (value) => JSON.parse(JSON.stringify(value));
