import assert from 'node:assert/strict';
import test from 'node:test';
import { isStale } from '../../../../../bridges/whatsapp/message_age.mjs';

const NOW = 1_800_000_000;

test('messages that are older than ten minutes are skipped', () => {
  const minutesAgo = (minutes) => isStale(NOW - minutes * 60, NOW * 1_000);
  assert.deepEqual([0, 1, 10].map(minutesAgo), [false, false, false]);
  assert.deepEqual([11, 60, 1_440].map(minutesAgo), [true, true, true]);
});

test('a timestamp is a number, a text, an object with a value, or missing', () => {
  assert.equal(isStale(String(NOW), NOW * 1_000), false);
  assert.equal(isStale({ valueOf: () => NOW }, NOW * 1_000), false);
  assert.equal(isStale(undefined, NOW * 1_000), true);
  assert.equal(isStale(null, NOW * 1_000), true);
});
