// The bridge with a library that has no network: it closes its first connection at once, and holds up the end of the bridge.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

const LIBRARY = `
import { EventEmitter } from 'node:events';

const say = (line) => process.stderr.write(line + '\\n');
let ending;
const hasEnding = new Promise((resolve) => { ending = resolve; });
let reads = 0;

export const DisconnectReason = { restartRequired: 515 };
export const extractMessageContent = (content) => content;
export const isJidGroup = () => false;
export const jidNormalizedUser = (jid) => jid;

export async function useMultiFileAuthState() {
  reads += 1;
  say('session is read');
  if (reads > 1) await hasEnding;
  return { state: {}, saveCreds() {} };
}

export default function makeWASocket() {
  say('socket is opened');
  const ev = Object.assign(new EventEmitter(), { flush() {} });
  const mutex = () => {
    ending();
    return new Promise(() => {});
  };
  if (reads === 1) {
    setImmediate(() => {
      const error = Object.assign(new Error('restart'), { output: { statusCode: DisconnectReason.restartRequired } });
      ev.emit('connection.update', { connection: 'close', lastDisconnect: { error } });
      if (process.env.FAILS_BEFORE_TIMER) process.emit('unhandledRejection', new Error('failed'));
    });
  }
  return { ev, messageMutex: { mutex }, end: async () => {} };
}
`;

// What the library was asked for until the bridge had ended. 'onRead' is called at every reading of the session.
async function calls(context, environment, onRead) {
  const directory = mkdtempSync(join(tmpdir(), 'bridge-'));
  context.after(() => rmSync(directory, { recursive: true }));
  const bridge = fileURLToPath(new URL('../../../../../bridges/whatsapp/', import.meta.url));
  for (const script of ['message_age.mjs', 'forwarded.mjs', 'ending.mjs', 'bridge.mjs']) {
    cpSync(join(bridge, script), join(directory, script));
  }
  const library = join(directory, 'node_modules/@whiskeysockets/baileys');
  mkdirSync(library, { recursive: true });
  writeFileSync(join(library, 'package.json'), '{"type":"module","exports":"./index.js"}');
  writeFileSync(join(library, 'index.js'), LIBRARY);

  const program = [join(directory, 'bridge.mjs'), '--auth-dir', join(directory, 'session')];
  const child = spawn(process.execPath, program, { env: { ...process.env, ...environment } });
  const closed = once(child, 'close');
  child.stdout.resume();
  const seen = [];
  for await (const line of createInterface({ input: child.stderr })) {
    if (line === 'session is read' || line === 'socket is opened') seen.push(line);
    if (line === 'session is read') onRead(child, seen);
  }
  await closed;
  return seen;
}

test('a bridge that ends opens no new connection', async (context) => {
  const seen = await calls(context, {}, (child, before) => {
    if (before.length > 1) child.stdin.write('{"type":"disconnect"}\n');
  });
  assert.deepEqual(seen, ['session is read', 'socket is opened', 'session is read']);
});

test('a reconnect that is due while the bridge ends is dropped', async (context) => {
  const seen = await calls(context, { FAILS_BEFORE_TIMER: '1' }, () => {});
  assert.deepEqual(seen, ['session is read', 'socket is opened']);
});
