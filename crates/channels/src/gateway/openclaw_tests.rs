use super::*;

/// The frames of a real gateway, `in` from it and `out` to it.
fn recorded(direction: &str) -> Vec<Value> {
    let text = include_str!("../../../testkit/transcripts/openclaw/frames.json");
    let frames: Vec<Value> = serde_json::from_str(text).unwrap();
    frames.into_iter().filter(|frame| frame["dir"] == direction).map(|frame| frame["frame"].clone()).collect()
}

fn parsed(frame: &str) -> Value {
    serde_json::from_str(frame).unwrap()
}

#[test]
fn a_recorded_conversation_has_one_message_from_a_person() {
    let incoming: Vec<Incoming> =
        recorded("in").iter().map(|frame| read(&frame.to_string()).unwrap()).collect();
    assert_eq!(incoming[0], Incoming::Challenge);
    assert!(
        matches!(&incoming[1], Incoming::Answer { id, outcome: Ok(hello) } if id == "1" && hello["type"] == "hello-ok")
    );
    let messages: Vec<&ChannelMessage> = incoming
        .iter()
        .filter_map(|frame| match frame {
            Incoming::Message(message) => Some(message.as_ref()),
            _ => None,
        })
        .collect();
    let metadata = json!({
        "sender_name": "Ann",
        "account_id": "default",
        "session_key": "agent:main:main",
        "chat_type": "direct",
    });
    let expected = ChannelMessage {
        channel: "telegram".into(),
        sender: "777".into(),
        content: "ping from Ann".into(),
        message_id: "d52e9942-b41a-4b12-b935-99d269b65c26".into(),
        conversation_id: "telegram:777".into(),
        metadata: metadata.as_object().unwrap().clone(),
        ..ChannelMessage::default()
    };
    assert_eq!(messages, [&expected], "what its own agent says is no message to us");
}

#[test]
fn the_authentication_matches_the_recorded_client() {
    let mut recorded = recorded("out")[0].clone();
    let mut ours = parsed(&connect("1", Some(&"testtoken".to_owned().into())));
    for about in [&mut recorded, &mut ours] {
        let client = about["params"]["client"].as_object_mut().unwrap();
        client.remove("version");
        client.remove("displayName");
        client.remove("platform");
    }
    assert_eq!(ours, recorded);
    assert_eq!(parsed(&subscribe("2")), recorded_subscription());
}

fn recorded_subscription() -> Value {
    recorded("out")[1].clone()
}

#[test]
fn an_error_keeps_its_text() {
    let refused =
        r#"{"type":"res","id":"1","ok":false,"error":{"code":"UNAUTHORIZED","message":"wrong token"}}"#;
    let expected = Incoming::Answer { id: "1".into(), outcome: Err("wrong token (UNAUTHORIZED)".into()) };
    assert_eq!(read(refused), Ok(expected));
}

#[test]
fn an_invalid_frame_is_an_error() {
    for frame in ["", "{}", "[]", r#"{"type":"req","id":"1"}"#, r#"{"type":3}"#] {
        assert!(read(frame).is_err(), "{frame}");
    }
    // A message without its required parts is ignored.
    for payload in ["null", "{}", r#"{"message":"x"}"#, r#"{"message":{"role":"user","content":"x"}}"#] {
        let frame = format!(r#"{{"type":"event","event":"session.message","payload":{payload}}}"#);
        assert_eq!(read(&frame), Ok(Incoming::Other), "{frame}");
    }
}

#[test]
fn the_recipient_follows_the_channel_or_is_the_conversation() {
    let to = |channel: &str, conversation: Option<&str>| {
        let message = Outgoing::new(channel, "hi", conversation).unwrap();
        send("1", &message).map(|frame| {
            let params = parsed(&frame)["params"].take();
            (params["channel"].as_str().unwrap().to_owned(), params["to"].as_str().unwrap().to_owned())
        })
    };
    assert_eq!(to("telegram", Some("telegram:777")), Ok(("telegram".into(), "telegram:777".into())));
    assert_eq!(to("discord:channel:5", None), Ok(("discord".into(), "channel:5".into())));
    for nobody in ["telegram", "telegram:", ":777"] {
        assert!(matches!(to(nobody, None), Err(SendFailure::Invalid(_))), "{nobody}");
    }
}
