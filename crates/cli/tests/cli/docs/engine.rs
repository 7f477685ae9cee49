//! An Ollama that gives the answers that the documentation shows.

use hob_testkit::{FakeServer, Recorded, Reply};
use serde_json::{Value, json};

/// The answers, each with a word of the conversation that selects it; the last one is the default.
const ANSWERS: &[(&str, &str)] = &[
    ("boiler", "The boiler was serviced on 3 March; the next service is due in March 2028."),
    ("capital of France", "The capital of France is Paris."),
    ("sky blue", "Because air scatters blue light more than red light."),
    ("", "Good day to you."),
];

/// The names of its models contain their size after a colon, such as `qwen3:8b`.
pub async fn start(models: &'static [&'static str]) -> FakeServer {
    FakeServer::start(move |request| match request.path.as_str() {
        "/api/tags" => Reply::json(200, tags(models).to_string()),
        "/api/show" => Reply::json(200, shown(&asked(request)).to_string()),
        "/api/chat" => chat(&asked(request)),
        _ => Reply::json(404, r#"{"error": "not found"}"#),
    })
    .await
}

fn asked(request: &Recorded) -> Value {
    serde_json::from_slice(&request.body).expect("JSON")
}

fn tags(models: &[&str]) -> Value {
    let tag = |name: &&str| json!({ "name": name, "model": name, "details": details(name) });
    json!({ "models": models.iter().map(tag).collect::<Vec<_>>() })
}

fn details(name: &str) -> Value {
    let (family, size) = name.split_once(':').expect("a size");
    json!({ "format": "gguf", "family": family, "parameter_size": size.to_uppercase(), "quantization_level": "Q4_K_M" })
}

fn shown(body: &Value) -> Value {
    json!({
        "details": details(body["model"].as_str().expect("a name")),
        "model_info": { "general.architecture": "qwen3", "qwen3.context_length": 40960 },
        "capabilities": ["completion", "tools"],
    })
}

fn chat(body: &Value) -> Reply {
    let messages = body["messages"].as_array().expect("messages");
    let wants_sum =
        body["tools"].to_string().contains("\"calculator\"") && body.to_string().contains("17 * 23");
    let message = match messages.last().map(|last| &last["role"]) {
        Some(role) if role == "tool" => says("17 * 23 is 391."),
        _ if wants_sum => calls_calculator(),
        _ => says(answer(&body["messages"].to_string())),
    };
    let end = json!({ "prompt_eval_count": 26, "eval_count": 9, "done_reason": "stop" });
    let model = &body["model"];
    if body["stream"] == false {
        Reply::json(200, line(model, &message, Some(&end)).to_string())
    } else {
        streamed(model, &message, &end)
    }
}

fn answer(conversation: &str) -> &'static str {
    let (_, answer) =
        ANSWERS.iter().find(|(word, _)| conversation.contains(word)).expect("the last fits everything");
    answer
}

fn says(content: &str) -> Value {
    json!({ "role": "assistant", "content": content })
}

fn calls_calculator() -> Value {
    let call = json!({ "function": { "name": "calculator", "arguments": { "expression": "17 * 23" } } });
    json!({ "role": "assistant", "content": "", "tool_calls": [call] })
}

/// Word by word.
fn streamed(model: &Value, message: &Value, end: &Value) -> Reply {
    let content = message["content"].as_str().expect("text");
    let mut lines: Vec<Value> =
        content.split_inclusive(' ').map(|word| line(model, &says(word), None)).collect();
    if message.get("tool_calls").is_some() {
        lines.push(line(model, message, None));
    }
    lines.push(line(model, &says(""), Some(end)));
    Reply::ndjson(lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn line(model: &Value, message: &Value, end: Option<&Value>) -> Value {
    let mut line = json!({ "model": model, "message": message, "done": end.is_some() });
    for (name, value) in end.and_then(Value::as_object).into_iter().flatten() {
        line[name] = value.clone();
    }
    line
}
