//! Turns an update of Telegram into a message. Pure.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::api::TelegramBot;
use super::target::{CHANNEL, TelegramChat};
use crate::message_queue::FORWARDED;
use crate::received_file::ChannelFile;
use crate::types::ChannelMessage;

/// The largest picture that is downloaded. Telegram sends each in several sizes.
const MAX_PICTURE_BYTES: u64 = 10 << 20;

/// What the model gets for a message without text and without a file that Hob can read.
const UNREADABLE: &str = "(I sent you something that is not text, such as a sticker or a video.)";

/// What the model gets for the command that opens a chat, or for the name of the bot alone.
const GREETING: &str = "Hello";

/// A message as Telegram sends it. Fields that Hob does not use are ignored.
#[derive(Debug, Deserialize)]
struct Incoming {
    message_id: i64,
    from: Option<User>,
    chat: Chat,
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    text: Option<String>,
    caption: Option<String>,
    #[serde(default)]
    entities: Vec<Entity>,
    #[serde(default)]
    caption_entities: Vec<Entity>,
    reply_to_message: Option<Box<RepliedTo>>,
    #[serde(default)]
    photo: Vec<Photo>,
    document: Option<Attached>,
    voice: Option<Attached>,
    audio: Option<Attached>,
    /// Set if someone else wrote the message.
    forward_origin: Option<Value>,
    forward_date: Option<Value>,
    /// Set if another bot wrote the message for its sender.
    via_bot: Option<Value>,
    /// Set for events of a group, such as a new member.
    new_chat_members: Option<Value>,
    left_chat_member: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
    #[serde(default)]
    username: String,
}

#[derive(Debug, Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct RepliedTo {
    from: Option<User>,
}

/// A marked part of a text.
#[derive(Debug, Deserialize)]
struct Entity {
    #[serde(rename = "type")]
    kind: String,
    user: Option<User>,
}

#[derive(Debug, Deserialize)]
struct Photo {
    file_id: String,
    file_size: Option<u64>,
    #[serde(default)]
    width: u64,
    #[serde(default)]
    height: u64,
}

#[derive(Debug, Deserialize)]
struct Attached {
    file_id: String,
    file_name: Option<String>,
    mime_type: Option<String>,
}

/// The number of an update; `None` if it has none.
pub(super) fn number(update: &Value) -> Option<i64> {
    update["update_id"].as_i64()
}

/// Reads an update. `None` if it is no message to the bot.
pub(super) fn read(update: &Value, bot: &TelegramBot, answers_groups: bool) -> Option<ChannelMessage> {
    let message = update.get("message")?;
    match Incoming::deserialize(message) {
        Ok(incoming) => incoming.into_message(bot, answers_groups),
        Err(error) => {
            tracing::debug!(%error, "skipped a message of Telegram that is not understood");
            None
        }
    }
}

impl Incoming {
    fn into_message(self, bot: &TelegramBot, answers_groups: bool) -> Option<ChannelMessage> {
        let is_group = match self.chat.kind.as_str() {
            "private" => false,
            "group" | "supergroup" => true,
            // A channel of Telegram has no senders to answer.
            _ => return None,
        };
        // Two bots that answer each other never end.
        let from = self.from.as_ref().filter(|from| !from.is_bot)?;
        if self.new_chat_members.is_some() || self.left_chat_member.is_some() {
            return None;
        }
        let text = self.text.as_deref().or(self.caption.as_deref()).unwrap_or_default();
        if is_group && !(answers_groups && self.is_for(bot, text)) {
            return None;
        }
        let is_forwarded =
            self.forward_origin.is_some() || self.forward_date.is_some() || self.via_bot.is_some();
        let files = self.files(is_forwarded);
        let mut content = without_command(&without_mention(text, &bot.username)).to_owned();
        if content.is_empty() && files.is_empty() {
            let instead = if text.is_empty() { UNREADABLE } else { GREETING };
            content = instead.to_owned();
        }
        let topic = self.message_thread_id.filter(|_| self.is_topic_message);
        let mut metadata = Map::new();
        metadata.insert("sender_name".to_owned(), from.name().into());
        if is_forwarded {
            metadata.insert(FORWARDED.to_owned(), true.into());
        }
        Some(ChannelMessage {
            channel: CHANNEL.to_owned(),
            sender: from.id.to_string(),
            content,
            message_id: self.message_id.to_string(),
            conversation_id: TelegramChat { chat: self.chat.id, topic }.id(),
            is_group,
            files,
            metadata,
        })
    }

    /// Whether a message in a group names the bot, or answers one of its messages.
    fn is_for(&self, bot: &TelegramBot, text: &str) -> bool {
        let is_bot = |user: Option<&User>| user.is_some_and(|user| user.id == bot.id);
        let replied = self.reply_to_message.as_ref();
        is_bot(replied.and_then(|replied| replied.from.as_ref()))
            || mention(text, &bot.username).is_some()
            || self.entities.iter().chain(&self.caption_entities).any(|entity| {
                // The mention of a user without a name.
                entity.kind == "text_mention" && is_bot(entity.user.as_ref())
            })
    }

    fn files(&self, is_forwarded: bool) -> Vec<ChannelFile> {
        let photo = self
            .photo
            .iter()
            .filter(|photo| photo.file_size.unwrap_or_default() <= MAX_PICTURE_BYTES)
            .max_by_key(|photo| photo.width.saturating_mul(photo.height));
        let photo = photo.map(|photo| file("photo.jpg", "image/jpeg", &photo.file_id));
        let attached = |attached: &Attached, name: &str, media_type: &str| {
            let name = attached.file_name.as_deref().unwrap_or(name);
            file(name, attached.mime_type.as_deref().unwrap_or(media_type), &attached.file_id)
        };
        let document = self.document.as_ref().map(|document| attached(document, "document", ""));
        let voice = self.voice.as_ref().map(|voice| ChannelFile {
            is_voice_message: !is_forwarded,
            ..attached(voice, "voice message", "audio/ogg")
        });
        let audio = self.audio.as_ref().map(|audio| attached(audio, "audio", "audio/mpeg"));
        photo.into_iter().chain(document).chain(voice).chain(audio).collect()
    }
}

fn file(name: &str, media_type: &str, file_id: &str) -> ChannelFile {
    ChannelFile {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        reference: Some(file_id.to_owned()),
        ..ChannelFile::default()
    }
}

impl User {
    fn name(&self) -> String {
        let username = if self.username.is_empty() { String::new() } else { format!("@{}", self.username) };
        let parts = [self.first_name.as_str(), &self.last_name, &username];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// Where `@username` stands in a text, as a whole word.
fn mention(text: &str, username: &str) -> Option<(usize, usize)> {
    if username.is_empty() {
        return None;
    }
    let name = format!("@{}", username.to_ascii_lowercase());
    // Only ASCII letters change, so the positions are those of the text.
    let lower = text.to_ascii_lowercase();
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    lower.match_indices(&name).map(|(start, found)| (start, start + found.len())).find(|(start, end)| {
        let before = lower[..*start].chars().next_back();
        let after = lower[*end..].chars().next();
        // A command such as `/start@name` has a letter before it.
        let is_command =
            lower[..*start].split_whitespace().next_back().is_some_and(|word| word.starts_with('/'));
        (is_command || !before.is_some_and(is_letter)) && !after.is_some_and(is_letter)
    })
}

fn without_mention(text: &str, username: &str) -> String {
    match mention(text, username) {
        Some((start, end)) => format!("{}{}", &text[..start], &text[end..]).trim().to_owned(),
        None => text.trim().to_owned(),
    }
}

/// Without the command that Telegram sends when a person opens the chat.
fn without_command(text: &str) -> &str {
    match text.strip_prefix("/start") {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => rest.trim(),
        _ => text,
    }
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
