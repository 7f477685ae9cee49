//! Messages of a channel. The gateway keeps a message until it is answered, and sends it again when Hob connects again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hob_testkit::Gateway;
use serde_json::{Value, json};

use super::engine::{mark_of, prompt};
use super::load::Load;

/// Longer than another replica may take to connect. Only an answer that is lost takes as long.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// Sends messages one after the other until the faults are over. Returns how many. The check of the answers finds those without one.
pub async fn converse(gateway: &Gateway, load: &Load, count: usize) -> usize {
    let mut sent = 0;
    while sent < count || !load.is_over.load(Ordering::Relaxed) {
        let _ = tokio::time::timeout(ANSWER_LIMIT, deliver(gateway, sent)).await;
        sent += 1;
    }
    sent
}

async fn deliver(gateway: &Gateway, number: usize) {
    // Each has another sender, because the answers to one sender are limited.
    let message = json!({
        "channel": "telegram", "sender": format!("s{number}"), "content": prompt(&subject(number)),
        "message_id": number.to_string(), "conversation_id": format!("c{number}"),
    });
    gateway.opened(1).await;
    loop {
        let connections = gateway.connections_so_far();
        let frames = gateway.frames();
        if frames.iter().any(|frame| is_answer(frame, number)) {
            return;
        }
        gateway.push(message.to_string());
        let mut arrived = frames.len();
        loop {
            tokio::select! {
                frames = gateway.received(arrived + 1) => {
                    if frames[arrived..].iter().any(|frame| is_answer(frame, number)) {
                        return;
                    }
                    arrived = frames.len();
                }
                () = gateway.opened(connections + 1) => break,
            }
        }
    }
}

pub fn subject(number: usize) -> String {
    format!("message{number}q")
}

fn is_answer(frame: &Value, number: usize) -> bool {
    frame["conversation_id"] == format!("c{number}")
}

/// The marks of the answers to a message.
pub fn answers(frames: &[Value], number: usize) -> Vec<u64> {
    let answers = frames.iter().filter(|frame| is_answer(frame, number));
    let mark = |frame: &Value| mark_of(frame["content"].as_str().unwrap_or_default(), &subject(number));
    answers.map(|frame| mark(frame).unwrap_or_else(|| panic!("{frame} answers message {number}"))).collect()
}
