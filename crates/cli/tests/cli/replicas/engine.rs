//! A scripted vLLM. Every process of Hob has one of its own, so that its log names the process of each call. All share one log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hob_testkit::{FakeServer, Recorded, Reply};
use serde_json::{Value, json};

/// A process of Hob. A replica that starts again is another process.
pub type ProcessNumber = usize;

/// A call. The engine reports its mark as the number of prompt tokens and in its answer, so that calls can be compared one by one with
/// records and results.
#[derive(Debug, Clone)]
pub struct Call {
    pub mark: u64,
    pub process: ProcessNumber,
    /// The subject of the prompt.
    pub subject: String,
    pub began: Instant,
}

#[derive(Clone, Default)]
pub struct EngineLog(Arc<Mutex<Vec<Call>>>);

impl EngineLog {
    pub fn calls(&self) -> Vec<Call> {
        self.lock().clone()
    }

    fn note(&self, process: ProcessNumber, subject: &str) -> u64 {
        let mut calls = self.lock();
        let mark = calls.len() as u64 + 1;
        calls.push(Call { mark, process, subject: subject.to_owned(), began: Instant::now() });
        mark
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine of a process.
    pub async fn start(&self, process: ProcessNumber) -> FakeServer {
        let log = self.clone();
        FakeServer::start(move |request| match request.path.as_str() {
            "/v1/models" => Reply::transcript("vllm/models"),
            "/health" => Reply::json(200, ""),
            "/v1/chat/completions" => answer(request, |subject| log.note(process, subject)),
            _ => Reply::json(404, "{}"),
        })
        .await
    }
}

/// What the engine says after a note.
pub const SAVED: &str = "saved";
const NOT_SAVED: &str = "not saved";

/// What the subject of a note begins with.
pub const NOTE: &str = "note: ";

/// Hob may add text to a prompt, so its subject is between marks.
pub fn prompt(subject: &str) -> String {
    format!("<<{subject}>>")
}

fn subject(prompt: &str) -> &str {
    let inner = prompt.rsplit_once("<<").and_then(|(_, rest)| rest.split_once(">>"));
    inner.map_or(prompt, |(subject, _)| subject)
}

/// An answer contains the subject and the mark of the call.
pub fn mark_of(answer: &str, subject: &str) -> Option<u64> {
    let (said, mark) = answer.split_once(" #")?;
    if said == subject { mark.parse().ok() } else { None }
}

fn answer(request: &Recorded, note: impl FnOnce(&str) -> u64) -> Reply {
    let asked: Value = serde_json::from_slice(&request.body).expect("JSON");
    let messages = asked["messages"].as_array().expect("messages");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let last = messages.last().expect("a message");
    let prompt = messages.iter().rfind(|message| message["role"] == "user").map(text).unwrap_or_default();
    let subject = subject(&prompt);
    let mark = note(subject);
    let message = match (last["role"].as_str(), subject.strip_prefix(NOTE)) {
        (Some("tool"), _) => {
            let is_saved = text(last).contains("Saved as");
            json!({ "role": "assistant", "content": if is_saved { SAVED } else { NOT_SAVED } })
        }
        (_, Some(content)) => {
            let arguments = json!({ "content": content }).to_string();
            let call = json!({
                "id": format!("call_{mark}"), "type": "function",
                "function": { "name": "memory_store", "arguments": arguments }
            });
            json!({ "role": "assistant", "content": null, "tool_calls": [call] })
        }
        _ => json!({ "role": "assistant", "content": format!("{subject} #{mark}") }),
    };
    let usage = json!({ "prompt_tokens": mark, "completion_tokens": 2, "total_tokens": mark + 2 });
    let reason = if message["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    if asked["stream"] == true {
        return stream(&message, reason, &usage);
    }
    let choice = json!({ "index": 0, "message": message, "finish_reason": reason });
    let body = json!({ "id": "x", "object": "chat.completion", "created": 1, "model": "smollm2", "choices": [choice], "usage": usage });
    // The head goes out at once, the rest a moment later, so that a kill can hit a call.
    Reply::json(200, format!("{body}  ")).in_packets_of(body.to_string().len()).with_pause(MOMENT)
}

const MOMENT: Duration = Duration::from_millis(30);

fn stream(message: &Value, reason: &str, usage: &Value) -> Reply {
    let chunk = |delta: Value, finish: Option<&str>, usage: Option<&Value>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let choices = if usage.is_some() { json!([]) } else { json!([choice]) };
        let body = json!({ "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "smollm2", "choices": choices, "usage": usage });
        format!("data: {body}\n\n")
    };
    let mut text = chunk(json!({ "role": "assistant", "content": "" }), None, None);
    for word in message["content"].as_str().unwrap_or_default().split_inclusive(' ') {
        text += &chunk(json!({ "content": word }), None, None);
    }
    if let Some(calls) = message["tool_calls"].as_array() {
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(index, call)| {
                let mut call = call.clone();
                call["index"] = json!(index);
                call
            })
            .collect();
        text += &chunk(json!({ "tool_calls": calls }), None, None);
    }
    text += &chunk(json!({}), Some(reason), None);
    text += &chunk(json!({}), None, Some(usage));
    text += "data: [DONE]\n\n";
    Reply::sse(text).in_packets_of(150).with_pause(MOMENT)
}
