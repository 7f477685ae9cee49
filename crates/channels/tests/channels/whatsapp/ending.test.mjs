// With the real library: its packages are beside the script that is tested.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import test from 'node:test';
import makeWASocket, { initAuthCreds } from '@whiskeysockets/baileys';
import { endConnection, flushAtClose } from './ending.mjs';

const logger = { level: 'silent', child: () => logger, trace() {}, debug() {}, info() {}, warn() {}, error() {} };
const keys = { get: async () => ({}), set: async () => {} };

// A connection to a server that never answers, and the ids of the messages that it passes on.
async function connection(context) {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  context.after(() => silent.close());
  const waWebSocketUrl = `ws://127.0.0.1:${silent.address().port}`;
  const socket = makeWASocket({ auth: { creds: initAuthCreds(), keys }, logger, waWebSocketUrl });
  const passedOn = [];
  socket.ev.on('messages.upsert', ({ messages }) => passedOn.push(...messages.map(({ key }) => key.id)));
  return { socket, passedOn };
}

function receive(socket, id) {
  const message = { key: { remoteJid: '4915@s.whatsapp.net', id }, message: { conversation: 'hello' } };
  socket.ev.emit('messages.upsert', { messages: [message], type: 'notify' });
}

test('messages that WhatsApp counts as delivered are passed on before the end', async (context) => {
  const { socket, passedOn } = await connection(context);
  socket.ev.buffer();
  receive(socket, 'waits');
  socket.messageMutex.mutex(async () => {
    // As long as the network takes.
    await new Promise(setImmediate);
    receive(socket, 'is being read');
  });
  assert.deepEqual(passedOn, []);
  await endConnection(socket);
  assert.deepEqual(passedOn, ['waits', 'is being read']);
});

test('a message that cannot be read does not hold up the end', async (context) => {
  const { socket, passedOn } = await connection(context);
  socket.ev.buffer();
  receive(socket, 'waits');
  socket.messageMutex.mutex(() => new Promise(() => {}));
  await endConnection(socket, 10);
  assert.deepEqual(passedOn, ['waits']);
});

test('messages that wait when the connection breaks are passed on', async (context) => {
  const { socket, passedOn } = await connection(context);
  flushAtClose(socket);
  socket.ev.buffer();
  receive(socket, 'waits');
  await socket.end(new Error('the network is gone'));
  assert.deepEqual(passedOn, ['waits']);
});
