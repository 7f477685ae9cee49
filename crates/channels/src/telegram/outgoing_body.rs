//! The bodies of requests that send text. Text goes out as it is, without markup, so no letter in it has a meaning.

use serde_json::{Value, json};

use super::target::TelegramChat;

pub(super) fn message_body(target: TelegramChat, text: &str, reply_to: Option<i64>) -> Value {
    let mut body = target.fields();
    body["text"] = text.into();
    body["link_preview_options"] = json!({ "is_disabled": true });
    if let Some(message) = reply_to {
        // The question may be deleted by now.
        body["reply_parameters"] = json!({ "message_id": message, "allow_sending_without_reply": true });
    }
    body
}

pub(super) fn edit_body(target: TelegramChat, message: i64, text: &str) -> Value {
    json!({
        "chat_id": target.chat,
        "message_id": message,
        "text": text,
        "link_preview_options": { "is_disabled": true },
    })
}
