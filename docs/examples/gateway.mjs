// A messaging gateway to try things with: what you type is a message, and what Hob says is printed.
//
//   npm install ws && node gateway.mjs [PORT]
//
// It speaks the simple protocol of docs/channels.md, on one port: WebSocket both ways, POST /send, GET /channels.

import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';

const port = Number(process.argv[2] ?? 18789);
const show = ({ content }) => console.log(`hob> ${content}`);

const server = createServer((request, response) => {
  const reply = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  if (request.method === 'GET' && request.url === '/channels') return reply(200, ['terminal']);
  if (request.method !== 'POST' || request.url !== '/send') return reply(404, { detail: 'not found' });
  let body = '';
  request.on('data', (piece) => { body += piece; });
  request.on('end', () => {
    show(JSON.parse(body));
    reply(200, { status: 'sent' });
  });
});

const sockets = new WebSocketServer({ server, path: '/ws' });
sockets.on('connection', (socket) => {
  console.log('-- Hob is here');
  socket.on('message', (frame) => show(JSON.parse(frame)));
});

let number = 0;
createInterface({ input: process.stdin }).on('line', (content) => {
  number += 1;
  const message = {
    channel: 'terminal', sender: 'you', content, conversation_id: 'terminal', message_id: `${process.pid}-${number}`, metadata: {},
  };
  for (const socket of sockets.clients) socket.send(JSON.stringify(message));
});

server.listen(port, '127.0.0.1', () => console.log(`-- listening on ws://127.0.0.1:${server.address().port}/ws`));
