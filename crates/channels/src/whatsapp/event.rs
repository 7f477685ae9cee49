//! The JSON lines from and to the subprocess.

use serde::{Deserialize, Serialize};

/// An event of the subprocess.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Event {
    Status {
        status: ReportedStatus,
    },
    /// The content of a QR code to scan with the phone.
    Qr {
        data: String,
    },
    Message(Received),
    /// The message with that id was sent.
    Sent {
        id: String,
    },
    /// An error; with an id it concerns that message only.
    Error {
        message: String,
        id: Option<String>,
        /// Whether the message certainly was not sent.
        #[serde(default)]
        unsent: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReportedStatus {
    Connected,
    Disconnected,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Received {
    /// The chat of the message.
    pub jid: String,
    pub sender: String,
    pub text: String,
    #[serde(default)]
    pub message_id: String,
    /// Whether the account of this session wrote it.
    #[serde(default)]
    pub from_me: bool,
    /// Whether someone else wrote it.
    #[serde(default)]
    pub forwarded: bool,
}

/// A command to the subprocess.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Order {
    Send { id: String, jid: String, text: String },
    Disconnect,
}

impl Order {
    /// The order as a line.
    pub fn line(&self) -> String {
        // Text can always be serialised.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

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
            forwarded: true,
        };
        for (line, expected) in [
            (
                r#"{"type":"status","status":"connected"}"#,
                Event::Status { status: ReportedStatus::Connected },
            ),
            (
                r#"{"type":"status","status":"disconnected"}"#,
                Event::Status { status: ReportedStatus::Disconnected },
            ),
            (r#"{"type":"qr","data":"2@x"}"#, Event::Qr { data: "2@x".into() }),
            (
                r#"{"type":"message","jid":"4915@s.whatsapp.net","sender":"4915@s.whatsapp.net","text":"hi","message_id":"m","forwarded":true}"#,
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
    fn other_lines_are_not_events() {
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
