//! OpenClaw's own protocol: requests with answers, and events. Pure: parses and writes text.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use crate::outgoing::{Outgoing, SendFailure};
use crate::types::ChannelMessage;

/// The protocol version.
const PROTOCOL: u32 = 4;

/// A parsed frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// The gateway asks for authentication.
    Challenge,
    /// The answer to the request with that id: its result, or an error text.
    Answer {
        id: String,
        outcome: Result<Value, String>,
    },
    Message(Box<ChannelMessage>),
    /// Any other frame.
    Other,
}

/// Parses a frame.
pub(crate) fn read(frame: &str) -> Result<Incoming, String> {
    let frame: Value = serde_json::from_str(frame).map_err(|error| error.to_string())?;
    match text(&frame, "type") {
        "event" => Ok(match text(&frame, "event") {
            "connect.challenge" => Incoming::Challenge,
            "session.message" => message(&frame["payload"])
                .map_or(Incoming::Other, |message| Incoming::Message(Box::new(message))),
            _ => Incoming::Other,
        }),
        "res" => {
            let id = text(&frame, "id").to_owned();
            let outcome = if frame["ok"] == true {
                Ok(frame["payload"].clone())
            } else {
                Err(complaint(&frame["error"]))
            };
            Ok(Incoming::Answer { id, outcome })
        }
        _ => Err("it is neither an event nor an answer".to_owned()),
    }
}

/// Whether this first frame comes from an OpenClaw gateway.
pub(crate) fn is_challenge(frame: &str) -> bool {
    matches!(read(frame), Ok(Incoming::Challenge))
}

/// A message that a person sent on a channel. Messages of OpenClaw's own agent or pages have no sender or no transport.
fn message(payload: &Value) -> Option<ChannelMessage> {
    let message = &payload["message"];
    let about = &message["__openclaw"];
    let transport = &about["transport"];
    if text(message, "role") != "user" || text(transport, "channel").is_empty() {
        return None;
    }
    let content = content(&message["content"]);
    if content.trim().is_empty() {
        return None;
    }
    let delivery = &payload["session"]["deliveryContext"];
    let mut metadata = Map::new();
    let known = [
        ("sender_name", &about["senderName"]),
        ("account_id", &delivery["accountId"]),
        ("session_key", &payload["sessionKey"]),
        ("chat_type", &payload["session"]["chatType"]),
    ];
    for (key, value) in known {
        if let Some(value) = value.as_str() {
            metadata.insert(key.to_owned(), value.into());
        }
    }
    Some(ChannelMessage {
        channel: text(transport, "channel").to_owned(),
        sender: text(about, "senderId").to_owned(),
        content,
        message_id: text(payload, "messageId").to_owned(),
        // The address for an answer; the gateway's own reference of the conversation is not an address.
        conversation_id: text(delivery, "to").to_owned(),
        metadata,
        ..ChannelMessage::default()
    })
}

/// The text, or the text parts.
fn content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts =
                parts.iter().filter(|part| text(part, "type") == "text").map(|part| text(part, "text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn complaint(error: &Value) -> String {
    match (text(error, "code"), text(error, "message")) {
        ("", "") => "it gave no reason".to_owned(),
        ("", message) => message.to_owned(),
        (code, message) => format!("{message} ({code})"),
    }
}

fn request(id: &str, method: &str, params: Value) -> String {
    json!({ "type": "req", "id": id, "method": method, "params": params }).to_string()
}

/// The authentication: asks for the rights to read and to send messages.
pub(crate) fn connect(id: &str, token: Option<&SecretString>) -> String {
    let mut params = json!({
        "minProtocol": PROTOCOL,
        "maxProtocol": PROTOCOL,
        "client": {
            "id": "gateway-client",
            "displayName": "Hob",
            "version": env!("CARGO_PKG_VERSION"),
            "platform": std::env::consts::OS,
            "mode": "backend",
        },
        "role": "operator",
        "scopes": ["operator.read", "operator.write"],
        "caps": [],
    });
    if let Some(token) = token {
        params["auth"] = json!({ "token": token.expose_secret() });
    }
    request(id, "connect", params)
}

/// Asks for the events of messages.
pub(crate) fn subscribe(id: &str) -> String {
    request(id, "sessions.subscribe", json!({}))
}

pub(crate) fn channels_status(id: &str) -> String {
    request(id, "channels.status", json!({}))
}

/// The names in the answer to [`channels_status`].
pub(crate) fn channels(payload: &Value) -> Result<Vec<String>, String> {
    let names = payload["channelOrder"].as_array().ok_or("its answer has no list of channels")?;
    Ok(names.iter().filter_map(|name| name.as_str()).map(str::to_owned).collect())
}

/// A message. Without a conversation, the recipient follows the name of the channel: `telegram:777`.
pub(crate) fn send(id: &str, message: &Outgoing) -> Result<String, SendFailure> {
    let (channel, to) = match (&message.conversation_id, message.channel.split_once(':')) {
        (Some(to), _) => (message.channel.as_str(), to.as_str()),
        (None, Some((channel, to))) if !channel.is_empty() && !to.is_empty() => (channel, to),
        (None, _) => {
            return Err(SendFailure::Invalid(format!(
                "this gateway needs a recipient: write CHANNEL:RECIPIENT, such as {}:12345",
                message.channel
            )));
        }
    };
    let mut params = json!({
        "channel": channel,
        "to": to,
        "message": message.content,
        "idempotencyKey": message.key,
    });
    if let Some(account) = &message.account_id {
        params["accountId"] = account.as_str().into();
    }
    Ok(request(id, "send", params))
}

#[cfg(test)]
#[path = "openclaw_tests.rs"]
mod tests;
