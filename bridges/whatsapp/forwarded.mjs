// Which messages someone else than their sender wrote. Hob does not take them for the words of the sender.

// Whether a message was passed on. `content` has one field for each kind of message, with what WhatsApp notes about it.
export function isForwarded(content) {
  return Object.values(content ?? {}).some((part) => {
    const about = part?.contextInfo;
    return Boolean(about?.isForwarded || about?.forwardedNewsletterMessageInfo || Number(about?.forwardingScore ?? 0) > 0);
  });
}
