//! The JSON lines between us and the subprocess.

use serde::{Deserialize, Serialize};

/// What the subprocess says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Event {
    Status {
        status: Said,
    },
    /// What to show as a QR code, to be scanned with the phone.
    Qr {
        data: String,
    },
    Message(Received),
    /// The message of that id went out.
    Sent {
        id: String,
    },
    /// Something is wrong; with an id it concerns that message only.
    Error {
        message: String,
        #[serde(default)]
        id: Option<String>,
        /// Whether it is certain that the message did not go out.
        #[serde(default)]
        unsent: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Said {
    Connected,
    Disconnected,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Received {
    /// The chat it was written in.
    pub jid: String,
    pub sender: String,
    pub text: String,
    #[serde(default)]
    pub message_id: String,
    /// Whether it was written with the account this session belongs to.
    #[serde(default)]
    pub from_me: bool,
}

/// A command to the subprocess.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Order {
    Send { id: String, jid: String, text: String },
    Disconnect,
}

impl Order {
    /// As a line, with its end.
    pub fn line(&self) -> String {
        // Text cannot fail to be JSON.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Reads a line; the error says why it is no event.
pub(crate) fn read(line: &str) -> Result<Event, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_read() {
        let message = Received {
            jid: "4915@s.whatsapp.net".into(),
            sender: "4915@s.whatsapp.net".into(),
            text: "hi".into(),
            message_id: "m".into(),
            from_me: false,
        };
        for (line, expected) in [
            (r#"{"type":"status","status":"connected"}"#, Event::Status { status: Said::Connected }),
            (r#"{"type":"status","status":"disconnected"}"#, Event::Status { status: Said::Disconnected }),
            (r#"{"type":"qr","data":"2@x"}"#, Event::Qr { data: "2@x".into() }),
            (
                r#"{"type":"message","jid":"4915@s.whatsapp.net","sender":"4915@s.whatsapp.net","text":"hi","message_id":"m"}"#,
                Event::Message(message),
            ),
            (r#"{"type":"sent","id":"1"}"#, Event::Sent { id: "1".into() }),
            (
                r#"{"type":"error","message":"no"}"#,
                Event::Error { message: "no".into(), id: None, unsent: false },
            ),
        ] {
            assert_eq!(read(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_events() {
        for line in
            ["", "npm WARN", "{}", r#"{"type":"dance"}"#, r#"{"type":"status","status":"maybe"}"#, "[1]"]
        {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn an_order_is_one_line() {
        let order = Order::Send { id: "1".into(), jid: "4915@s.whatsapp.net".into(), text: "a\nb".into() };
        assert_eq!(
            order.line(),
            "{\"type\":\"send\",\"id\":\"1\",\"jid\":\"4915@s.whatsapp.net\",\"text\":\"a\\nb\"}\n"
        );
        assert_eq!(Order::Disconnect.line(), "{\"type\":\"disconnect\"}\n");
    }
}
