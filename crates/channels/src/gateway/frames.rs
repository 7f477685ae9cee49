//! The simple protocol: one JSON object per frame, both ways.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::message_queue::{FORWARDED, is_forwarded};
use crate::outgoing::Outgoing;
use crate::types::ChannelMessage;

/// Longer metadata is dropped, except that someone else wrote the message.
const MAX_METADATA_BYTES: usize = 16 << 10;

#[derive(Deserialize)]
struct Incoming {
    channel: String,
    #[serde(default, deserialize_with = "text")]
    sender: String,
    content: String,
    #[serde(default, deserialize_with = "text")]
    message_id: String,
    #[serde(default, deserialize_with = "text")]
    conversation_id: String,
    metadata: Option<Map<String, Value>>,
}

/// Identifiers are text, but some services send numbers, or null for none.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(serde::de::Error::custom("expected text or a number")),
    }
}

/// Parses a frame.
pub(crate) fn read(frame: &str) -> Result<ChannelMessage, String> {
    let incoming: Incoming = serde_json::from_str(frame).map_err(|error| error.to_string())?;
    if incoming.channel.is_empty() {
        return Err("it has no channel".to_owned());
    }
    if incoming.content.trim().is_empty() {
        return Err("it has no content".to_owned());
    }
    let overhead = frame.len().saturating_sub(incoming.content.len());
    let mut metadata = incoming.metadata.unwrap_or_default();
    if overhead > MAX_METADATA_BYTES {
        let someone_else_wrote_it = is_forwarded(&metadata);
        metadata = Map::new();
        if someone_else_wrote_it {
            metadata.insert(FORWARDED.to_owned(), true.into());
        }
    }
    Ok(ChannelMessage {
        channel: incoming.channel,
        sender: incoming.sender,
        content: incoming.content,
        message_id: incoming.message_id,
        conversation_id: incoming.conversation_id,
        metadata,
        ..ChannelMessage::default()
    })
}

#[derive(Serialize)]
struct OutgoingFrame<'a> {
    channel: &'a str,
    content: &'a str,
    conversation_id: Option<&'a str>,
    metadata: Value,
}

/// A message as a frame, and as the body of `POST /send`.
pub(crate) fn write(message: &Outgoing) -> String {
    let frame = OutgoingFrame {
        channel: &message.channel,
        content: &message.content,
        conversation_id: message.conversation_id.as_deref(),
        metadata: json!({}),
    };
    // Text and an empty object can always be serialised.
    serde_json::to_string(&frame).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_becomes_a_message() {
        let frame = r#"{"channel":"telegram","sender":777,"content":"hi","message_id":"m1",
            "conversation_id":null,"metadata":{"name":"Ann"},"extra":[1]}"#;
        let expected = ChannelMessage {
            channel: "telegram".into(),
            sender: "777".into(),
            content: "hi".into(),
            message_id: "m1".into(),
            conversation_id: String::new(),
            metadata: json!({ "name": "Ann" }).as_object().unwrap().clone(),
            ..ChannelMessage::default()
        };
        assert_eq!(read(frame), Ok(expected));
    }

    #[test]
    fn a_frame_without_a_message_is_an_error() {
        for frame in [
            "",
            "hello",
            "[]",
            r#"{"channel":"t"}"#,
            r#"{"channel":"","content":"x"}"#,
            r#"{"channel":"t","content":" \n"}"#,
            r#"{"channel":"t","content":{"text":"x"}}"#,
            r#"{"channel":"t","content":"x","sender":["a"]}"#,
            r#"{"channel":"t","content":"x""#,
        ] {
            assert!(read(frame).is_err_and(|reason| !reason.is_empty()), "{frame}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn long_metadata_is_dropped() {
        let frame =
            json!({ "channel": "t", "content": "x", "metadata": { "blob": "y".repeat(MAX_METADATA_BYTES) } });
        assert_eq!(read(&frame.to_string()).unwrap().metadata, Map::new());
        for (noted, kept) in [(json!("Bob"), json!({ FORWARDED: true })), (json!(false), json!({}))] {
            let mut forwarded = frame.clone();
            forwarded["metadata"][FORWARDED] = noted;
            assert_eq!(Value::from(read(&forwarded.to_string()).unwrap().metadata), kept);
        }
    }

    #[test]
    fn a_message_becomes_a_frame() {
        let message = Outgoing::new("telegram", "\"hi\"\n", Some("t1")).unwrap();
        let expected =
            json!({ "channel": "telegram", "content": "\"hi\"\n", "conversation_id": "t1", "metadata": {} });
        assert_eq!(serde_json::from_str::<Value>(&write(&message)).unwrap(), expected);
    }
}
