use serde_json::json;

use super::*;

fn bot() -> TelegramBot {
    TelegramBot { id: 99, username: "HobBot".into(), first_name: "Hob".into() }
}

fn update(message: Value) -> Value {
    let mut whole = json!({
        "message_id": 5,
        "date": 1_700_000_000,
        "from": { "id": 7, "is_bot": false, "first_name": "Ann", "last_name": "Lee", "username": "ann" },
        "chat": { "id": 7, "type": "private", "first_name": "Ann" },
    });
    for (name, value) in message.as_object().unwrap() {
        whole[name] = value.clone();
    }
    json!({ "update_id": 1, "message": whole })
}

fn in_group(message: Value) -> Value {
    let mut update = update(message);
    update["message"]["chat"] = json!({ "id": -100, "type": "supergroup", "title": "Family" });
    update
}

fn content(update: &Value) -> Option<String> {
    read(update, &bot(), true).map(|message| message.content)
}

#[test]
fn a_direct_message_has_its_sender_its_chat_and_its_number() {
    let message = read(&update(json!({ "text": "hello" })), &bot(), true).unwrap();
    let expected = ChannelMessage {
        channel: "telegram".into(),
        sender: "7".into(),
        content: "hello".into(),
        message_id: "5".into(),
        conversation_id: "7".into(),
        metadata: json!({ "sender_name": "Ann Lee @ann" }).as_object().unwrap().clone(),
        ..ChannelMessage::default()
    };
    assert_eq!(message, expected);
}

#[test]
fn a_message_of_someone_else_is_noted_as_such() {
    let is_noted = |message: Value| {
        let read = read(&update(message), &bot(), true).unwrap();
        read.metadata.get(FORWARDED) == Some(&json!(true))
    };
    assert!(!is_noted(json!({ "text": "hello" })));
    assert!(is_noted(json!({ "text": "hello", "forward_origin": { "type": "hidden_user" } })));
    assert!(is_noted(json!({ "text": "hello", "forward_date": 1_700_000_000 })));
    assert!(is_noted(json!({ "text": "hello", "via_bot": { "id": 8, "is_bot": true } })));
}

#[test]
fn in_a_group_only_a_mention_or_a_reply_is_for_the_bot() {
    assert_eq!(content(&in_group(json!({ "text": "who is there?" }))), None);
    assert_eq!(
        content(&in_group(json!({ "text": "@hobbot who is there?" }))).as_deref(),
        Some("who is there?")
    );
    assert_eq!(content(&in_group(json!({ "text": "@HobBots or a@hobbot.example" }))), None);
    assert_eq!(content(&in_group(json!({ "text": "/start@HobBot" }))).as_deref(), Some("Hello"));
    let reply = json!({ "text": "and then?", "reply_to_message": { "message_id": 4, "from": { "id": 99, "is_bot": true } } });
    assert_eq!(content(&in_group(reply)).as_deref(), Some("and then?"));
    let other = json!({ "text": "and then?", "reply_to_message": { "message_id": 4, "from": { "id": 8 } } });
    assert_eq!(content(&in_group(other)), None);
    let named = json!({ "text": "Hob, hi", "entities": [{ "type": "text_mention", "offset": 0, "length": 3, "user": { "id": 99 } }] });
    assert_eq!(content(&in_group(named)).as_deref(), Some("Hob, hi"));
    let mentioned = in_group(json!({ "text": "@HobBot hi" }));
    assert!(read(&mentioned, &bot(), true).unwrap().is_group);
    assert_eq!(read(&mentioned, &bot(), false), None, "groups are off");
}

#[test]
fn a_topic_is_a_conversation_of_its_own() {
    let topic = in_group(json!({ "text": "@HobBot hi", "message_thread_id": 3, "is_topic_message": true }));
    assert_eq!(read(&topic, &bot(), true).unwrap().conversation_id, "-100:3");
    // The thread of a reply is no topic.
    let reply = in_group(json!({ "text": "@HobBot hi", "message_thread_id": 3 }));
    assert_eq!(read(&reply, &bot(), true).unwrap().conversation_id, "-100");
}

#[test]
fn files_come_by_reference_and_of_a_picture_the_largest_that_is_not_too_large() {
    let photo = json!({
        "caption": "what is this?",
        "photo": [
            { "file_id": "small", "width": 90, "height": 60, "file_size": 1_000 },
            { "file_id": "large", "width": 1280, "height": 960, "file_size": 200_000 },
            { "file_id": "huge", "width": 9000, "height": 9000, "file_size": 50_000_000 },
        ],
    });
    let message = read(&update(photo), &bot(), true).unwrap();
    assert_eq!(message.content, "what is this?");
    assert_eq!(message.files, [file("photo.jpg", "image/jpeg", "large")]);
    let document =
        json!({ "document": { "file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf" } });
    let message = read(&update(document), &bot(), true).unwrap();
    assert_eq!((message.content.as_str(), message.files), ("", vec![file("a.pdf", "application/pdf", "d")]));
    let audio = json!({ "audio": { "file_id": "a", "duration": 3, "file_name": "a.mp3" } });
    let message = read(&update(audio), &bot(), true).unwrap();
    assert_eq!(message.files, [file("a.mp3", "audio/mpeg", "a")]);
}

#[test]
fn only_a_recording_that_is_not_forwarded_is_a_voice_message() {
    let voice = json!({ "voice": { "file_id": "v", "duration": 3, "mime_type": "audio/ogg" } });
    let own = ChannelFile { is_voice_message: true, ..file("voice message", "audio/ogg", "v") };
    assert_eq!(read(&update(voice.clone()), &bot(), true).unwrap().files, [own]);
    let mut forwarded = voice;
    forwarded["forward_origin"] = json!({ "type": "hidden_user" });
    let message = read(&update(forwarded), &bot(), true).unwrap();
    assert_eq!(message.files, [file("voice message", "audio/ogg", "v")]);
}

#[test]
fn a_start_is_a_greeting_and_what_cannot_be_read_is_said_so() {
    assert_eq!(content(&update(json!({ "text": "/start" }))).as_deref(), Some("Hello"));
    assert_eq!(content(&update(json!({ "text": "/started well" }))).as_deref(), Some("/started well"));
    assert_eq!(content(&update(json!({ "sticker": { "file_id": "s" } }))).as_deref(), Some(UNREADABLE));
}

#[test]
fn bots_channels_events_and_nonsense_are_ignored() {
    for update in [
        update(json!({ "text": "hi", "from": { "id": 8, "is_bot": true } })),
        update(json!({ "text": "hi", "chat": { "id": -1, "type": "channel" } })),
        in_group(json!({ "new_chat_members": [{ "id": 99 }] })),
        json!({ "update_id": 2, "edited_message": {} }),
        json!({ "update_id": 2, "message": { "text": [1, 2] } }),
        json!({ "update_id": 2, "message": "hello" }),
        json!([]),
    ] {
        assert_eq!(read(&update, &bot(), true), None, "{update}");
    }
    assert_eq!(number(&json!({ "update_id": "x" })), None);
}
