// Speaks WhatsApp for Hob: JSON lines on stdout for what happens, JSON lines on stdin for what is to be done, everything
// else on stderr. Knows nothing of agents, names or trust; who is answered, and what, is decided on the other side.
//
//   node bridge.mjs --auth-dir DIRECTORY
//
// out  {"type":"status","status":"connected|disconnected"}   {"type":"qr","data"}
//      {"type":"message","jid","sender","text","message_id","from_me"}
//      {"type":"sent","id"}   {"type":"error","message"}   {"type":"error","id","message","unsent"}
// in   {"type":"send","id","jid","text"}   {"type":"disconnect"}

import { createInterface } from 'node:readline';
import { chmodSync, mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import makeWASocket, {
  DisconnectReason, extractMessageContent, isJidGroup, jidNormalizedUser, useMultiFileAuthState,
} from '@whiskeysockets/baileys';

const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 60_000;

// WhatsApp hands over what came while nobody was connected. What is older than this has been answered by a human, or not.
const STALE_SECONDS = 10 * 60;

// Ids of what was sent from here, so that it is not taken for something the user wrote on the phone.
const REMEMBERED_IDS = 1_000;

const { values: options } = parseArgs({ options: { 'auth-dir': { type: 'string' } } });
if (!options['auth-dir']) {
  process.stderr.write('usage: bridge.mjs --auth-dir DIRECTORY\n');
  process.exit(2);
}

// The session is as good as the phone itself: nobody else on this machine may read it.
process.umask(0o077);
mkdirSync(options['auth-dir'], { recursive: true, mode: 0o700 });
chmodSync(options['auth-dir'], 0o700);

const tell = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);
const describe = (error) => (error instanceof Error ? error.message : String(error));

// Baileys logs through this. Only what an operator should know, and never to stdout, which belongs to the protocol.
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
  const { state, saveCreds } = await useMultiFileAuthState(options['auth-dir']);
  socket = makeWASocket({ auth: state, logger, emitOwnEvents: false, markOnlineOnConnect: false, syncFullHistory: false });
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
  // Right after the code was scanned, WhatsApp asks for a new connection and means at once.
  const wait = reason === DisconnectReason.restartRequired ? 0 : pause;
  pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  setTimeout(() => connect().catch(fail), wait);
}

function onMessages({ messages }) {
  for (const message of messages) {
    const { key } = message;
    const age = Date.now() / 1_000 - Number(message.messageTimestamp ?? 0);
    const text = textOf(message.message);
    if (!text || !key?.remoteJid || key.remoteJid === 'status@broadcast' || ours.has(key.id) || age > STALE_SECONDS) continue;
    const isGroup = isJidGroup(key.remoteJid);
    const jid = isGroup ? key.remoteJid : phoneOf(key.remoteJid, key.remoteJidAlt);
    const other = isGroup ? phoneOf(key.participant ?? '', key.participantAlt) : jid;
    // In a chat of two, what the owner writes stands in the other's chat and is the owner's nevertheless.
    const sender = key.fromMe ? jidNormalizedUser(socket?.user?.id) : other;
    tell({ type: 'message', jid, sender, text, message_id: key.id ?? '', from_me: Boolean(key.fromMe) });
  }
}

// WhatsApp hides numbers behind opaque ids where it can; where it also tells the number, that is what people know.
function phoneOf(jid, alternative) {
  return alternative?.endsWith('@s.whatsapp.net') ? alternative : jid;
}

function textOf(message) {
  const content = extractMessageContent(message);
  return content?.conversation ?? content?.extendedTextMessage?.text
    ?? content?.imageMessage?.caption ?? content?.videoMessage?.caption ?? '';
}

async function send({ id, jid, text }) {
  // Baileys throws, or worse waits, when it is asked before the connection stands.
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

function end(code) {
  isEnding = true;
  try {
    socket?.end(undefined);
  } catch {
    // It was not open.
  }
  // What was written last must leave the pipe before the process does.
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
// Whoever started this is gone.
orders.on('close', () => end(0));

connect().catch(fail);
