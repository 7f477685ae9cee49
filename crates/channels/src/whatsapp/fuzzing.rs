//! Entry for the fuzz target of the WhatsApp process.

use super::event::{self, Event, Order};
use super::jid::{is_group, is_jid, is_ours};
use super::mention::MentionRule;

/// A line of the process.
pub fn whatsapp_line(bytes: &[u8]) {
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    let Ok(Event::Message(message)) = event::read(line) else { return };
    assert!(!is_jid(&message.jid) || is_ours(&message.jid), "an address belongs to no channel");
    for has_own_number in [false, true] {
        let rule = MentionRule { name: "Hob".to_owned(), has_own_number };
        let asked = rule.question(&message.text, is_group(&message.jid), message.from_me);
        assert!(asked.is_none_or(|asked| message.text.contains(asked)), "a question is not in its message");
    }
    let order = Order::Send { id: message.message_id, jid: message.jid, text: message.text }.line();
    assert_eq!(order.matches('\n').count(), 1, "an order has several lines");
}
