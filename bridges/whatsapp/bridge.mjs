// The WhatsApp bridge of Hob: events as JSON lines on stdout, commands as JSON lines on stdin, everything else on
// stderr. Knows nothing of agents, names or trust; Hob decides who is answered.
//
//   node bridge.mjs --auth-dir DIRECTORY
//
// out  {"type":"status","status":"connected|disconnected"}   {"type":"qr","data"}
//      {"type":"message","jid","sender","text","message_id","from_me","forwarded"}
//      {"type":"sent","id"}   {"type":"error","message"}   {"type":"error","id","message","unsent"}
// in   {"type":"send","id","jid","text"}   {"type":"disconnect"}

import { createInterface } from 'node:readline';
import { chmodSync, mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import makeWASocket, {
  DisconnectReason, extractMessageContent, isJidGroup, jidNormalizedUser, useMultiFileAuthState,
} from '@whiskeysockets/baileys';
import { endConnection, flushAtClose } from './ending.mjs';
import { isForwarded } from './forwarded.mjs';
import { isStale } from './message_age.mjs';

const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 60_000;

// Ids of messages that were sent from here, to distinguish them from messages that the user wrote on the phone.
const REMEMBERED_IDS = 1_000;

const { values: options } = parseArgs({ options: { 'auth-dir': { type: 'string' } } });
if (!options['auth-dir']) {
  process.stderr.write('usage: bridge.mjs --auth-dir DIRECTORY\n');
  process.exit(2);
}

// The session gives full access to the account, so only the owner may read it.
process.umask(0o077);
mkdirSync(options['auth-dir'], { recursive: true, mode: 0o700 });
chmodSync(options['auth-dir'], 0o700);

const tell = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);
const describe = (error) => (error instanceof Error ? error.message : String(error));

// The log of Baileys. Only warnings and errors, and never to stdout, which belongs to the protocol.
const logger = {
  level: 'warn',
  child: () => logger,
  trace() {},
  debug() {},
  info() {},
  warn: (...said) => note('warn', said),
  error: (...said) => note('error', said),
};

function note(level, said) {
  const words = said.map((word) => (typeof word === 'string' ? word : word?.msg ?? describe(word?.err ?? word?.error ?? '')));
  process.stderr.write(`${level}: ${words.filter(Boolean).join(' ')}\n`);
}

let socket = null;
let isOpen = false;
let isEnding = false;
let pause = FIRST_PAUSE_MS;
const ours = new Set();

async function connect() {
  // Messages of a socket that opens during the end would be confirmed and lost.
  if (isEnding) return;
  const { state, saveCreds } = await useMultiFileAuthState(options['auth-dir']);
  if (isEnding) return;
  socket = makeWASocket({ auth: state, logger, emitOwnEvents: false, markOnlineOnConnect: false, syncFullHistory: false });
  flushAtClose(socket);
  socket.ev.on('creds.update', saveCreds);
  socket.ev.on('connection.update', onConnection);
  socket.ev.on('messages.upsert', onMessages);
}

function onConnection({ connection, lastDisconnect, qr }) {
  if (qr) tell({ type: 'qr', data: qr });
  if (connection === 'open') {
    isOpen = true;
    pause = FIRST_PAUSE_MS;
    tell({ type: 'status', status: 'connected' });
  }
  if (connection === 'close') {
    isOpen = false;
    tell({ type: 'status', status: 'disconnected' });
    if (!isEnding) comeBack(lastDisconnect?.error);
  }
}

function comeBack(error) {
  const reason = error?.output?.statusCode;
  if (reason === DisconnectReason.loggedOut || reason === DisconnectReason.forbidden) {
    tell({ type: 'error', message: "WhatsApp has ended this session. Run 'hob channel login whatsapp' to link it again" });
    return end(3);
  }
  if (reason === DisconnectReason.connectionReplaced) {
    tell({ type: 'error', message: 'another program uses this WhatsApp session' });
    return end(4);
  }
  note('warn', [`connection closed (${reason ?? 'unknown'}): ${describe(error)}`]);
  // Right after the code was scanned, WhatsApp requires an immediate reconnect.
  const wait = reason === DisconnectReason.restartRequired ? 0 : pause;
  pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  setTimeout(() => connect().catch(fail), wait);
}

function onMessages({ messages }) {
  for (const message of messages) {
    const { key } = message;
    const content = extractMessageContent(message.message);
    const text = textOf(content);
    if (!text || !key?.remoteJid || key.remoteJid === 'status@broadcast' || ours.has(key.id)) continue;
    if (isStale(message.messageTimestamp, Date.now())) continue;
    const isGroup = isJidGroup(key.remoteJid);
    const jid = isGroup ? key.remoteJid : phoneOf(key.remoteJid, key.remoteJidAlt);
    const other = isGroup ? phoneOf(key.participant ?? '', key.participantAlt) : jid;
    // In a chat of two, the owner's messages are in the other person's chat.
    const sender = key.fromMe ? jidNormalizedUser(socket?.user?.id) : other;
    tell({
      type: 'message', jid, sender, text, message_id: key.id ?? '', from_me: Boolean(key.fromMe), forwarded: isForwarded(content),
    });
  }
}

// WhatsApp replaces numbers by opaque ids; if it also sends the number, the number is used.
function phoneOf(jid, alternative) {
  return alternative?.endsWith('@s.whatsapp.net') ? alternative : jid;
}

function textOf(content) {
  return content?.conversation ?? content?.extendedTextMessage?.text
    ?? content?.imageMessage?.caption ?? content?.videoMessage?.caption ?? '';
}

async function send({ id, jid, text }) {
  // Baileys throws, or blocks, if it is called before the connection is open.
  if (!isOpen) return tell({ type: 'error', id, message: 'WhatsApp is not connected', unsent: true });
  try {
    const sent = await socket.sendMessage(jid, { text });
    if (sent?.key?.id) remember(sent.key.id);
    tell({ type: 'sent', id });
  } catch (error) {
    tell({ type: 'error', id, message: describe(error) });
  }
}

function remember(id) {
  ours.add(id);
  if (ours.size > REMEMBERED_IDS) ours.delete(ours.values().next().value);
}

async function end(code) {
  if (isEnding) return;
  isEnding = true;
  try {
    if (socket) await endConnection(socket);
  } catch (error) {
    note('warn', [`the connection is not closed: ${describe(error)}`]);
  }
  // The last output must be flushed before the process exits.
  process.stdout.write('', () => process.exit(code));
}

function fail(error) {
  tell({ type: 'error', message: describe(error) });
  end(1);
}

process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);

const orders = createInterface({ input: process.stdin });
orders.on('line', (line) => {
  let order;
  try {
    order = JSON.parse(line);
  } catch {
    return note('warn', ['a line on stdin is no JSON']);
  }
  if (order?.type === 'send') send(order);
  else if (order?.type === 'disconnect') end(0);
});
// The parent process has exited.
orders.on('close', () => end(0));

connect().catch(fail);
