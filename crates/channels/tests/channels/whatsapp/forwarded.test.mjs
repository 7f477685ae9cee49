import test from 'node:test';
import assert from 'node:assert/strict';
import { isForwarded } from '../../../../../bridges/whatsapp/forwarded.mjs';

test('messages that were passed on are recognised', () => {
  for (const content of [
    { extendedTextMessage: { text: 'a', contextInfo: { isForwarded: true } } },
    { extendedTextMessage: { text: 'a', contextInfo: { forwardingScore: 2 } } },
    { imageMessage: { caption: 'a', contextInfo: { isForwarded: true, forwardingScore: 1 } } },
    { videoMessage: { caption: 'a', contextInfo: { forwardedNewsletterMessageInfo: { newsletterName: 'News' } } } },
  ]) assert.equal(isForwarded(content), true, JSON.stringify(content));
  for (const content of [
    undefined, null, {}, { conversation: 'a' },
    { extendedTextMessage: { text: 'a' } },
    { extendedTextMessage: { text: 'a', contextInfo: { quotedMessage: { conversation: 'b' }, forwardingScore: 0 } } },
  ]) assert.equal(isForwarded(content), false, JSON.stringify(content));
});
