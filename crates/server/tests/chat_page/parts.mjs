// The parts of the chat page that make no nodes, as a test may call them. The page has them in one script, so they have no
// exports of their own.

import { readFileSync } from "node:fs";
import vm from "node:vm";

const FILES = ["stream.js", "conversations.js"];
const NAMES = [
  "EventLines", "addEvent", "readAnswer", "ask", "ChatError", "ConversationStore", "newConversation", "newQuestion", "newAnswer",
  "titleOf", "turnsOf", "asMarkdown", "fileNameOf", "readConversation", "isElsewhere", "MOST_CONVERSATIONS", "LONGEST_LINE", "LONGEST_ANSWER",
];

const source = FILES.map((file) => readFileSync(new URL(`../../src/pages/assets/chat/${file}`, import.meta.url), "utf8")).join("\n");

// `world` is what the browser would have.
export function partsIn(world = {}) {
  const context = vm.createContext({ URL, TextDecoder, TextEncoder, AbortController, crypto: globalThis.crypto, ...world });
  return vm.runInContext(`"use strict";\n${source}\n({ ${NAMES.join(", ")} })`, context);
}

// Objects of another context have other prototypes; compared are their contents.
export const plain = (value) => JSON.parse(JSON.stringify(value));
