//! Entry for the fuzz target of the gateway's two protocols.

use serde::de::IgnoredAny;
use serde_json::json;

use super::frames;
use super::openclaw::{self, Incoming};
use crate::outgoing::Outgoing;
use crate::types::ChannelMessage;

/// A frame, in either protocol.
pub fn gateway_frame(bytes: &[u8]) {
    let Ok(frame) = std::str::from_utf8(bytes) else { return };
    if let Ok(message) = frames::read(frame) {
        check_message(&message);
        let ChannelMessage { channel, sender, content, message_id, conversation_id, .. } = &message;
        let again = json!({
            "channel": channel,
            "sender": sender,
            "content": content,
            "message_id": message_id,
            "conversation_id": conversation_id,
        });
        let without_metadata = ChannelMessage { metadata: Default::default(), ..message.clone() };
        assert_eq!(
            frames::read(&again.to_string()),
            Ok(without_metadata),
            "a message is read in another way"
        );
    }
    match openclaw::read(frame) {
        Ok(Incoming::Message(message)) => check_message(&message),
        Ok(Incoming::Answer { outcome: Ok(payload), .. }) => {
            let _ = openclaw::channels(&payload);
        }
        Ok(Incoming::Answer { outcome: Err(reason), .. }) => {
            assert!(!reason.is_empty(), "an error has no reason")
        }
        Ok(Incoming::Challenge | Incoming::Other) | Err(_) => {}
    }
}

/// A message has a channel and words, and an answer to it can be written in both protocols.
fn check_message(message: &ChannelMessage) {
    assert!(!message.channel.is_empty() && !message.content.trim().is_empty(), "a message has no words");
    let Ok(answer) = Outgoing::new(&message.channel, &message.content, Some(&message.conversation_id)) else {
        return;
    };
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    assert!(is_json(&frames::write(&answer)), "a frame is not JSON");
    assert!(openclaw::send("1", &answer).map_or(true, |frame| is_json(&frame)), "a frame is not JSON");
}
