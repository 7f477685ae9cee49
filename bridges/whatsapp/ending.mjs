// Ends a connection of Baileys without losing what it has received. Baileys tells WhatsApp that a message has arrived before it
// passes the message on, and WhatsApp does not send it again.

const LONGEST_WAIT_MS = 1_000;

// Passes on what waits in the buffer of events when the connection closes, which Baileys drops.
export function flushAtClose(socket) {
  socket.ev.on('connection.update', ({ connection }) => {
    if (connection === 'close') socket.ev.flush();
  });
}

// Passes on the messages that are being read and those that wait in the buffer of events, then closes the connection.
export async function endConnection(socket, longestWaitMs = LONGEST_WAIT_MS) {
  const end = () => {
    socket.ev.flush();
    // The result comes when the other side has answered, which this process does not wait for.
    socket.end(undefined).catch(() => {});
  };
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, longestWaitMs);
  });
  // Messages are read under this lock, so none is half read while this code holds it.
  await Promise.race([socket.messageMutex.mutex(async () => end()), late.then(end)]);
  clearTimeout(timer);
}
