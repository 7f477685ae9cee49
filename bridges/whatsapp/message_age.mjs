// Which messages are too old to be answered. WhatsApp delivers messages from the time without a connection; an answer to
// one of yesterday would surprise its sender.

const STALE_SECONDS = 10 * 60;

// Whether a message is too old. WhatsApp's timestamps are in seconds; a message without one is.
export function isStale(timestamp, nowMs) {
  return nowMs / 1_000 - Number(timestamp ?? 0) > STALE_SECONDS;
}
