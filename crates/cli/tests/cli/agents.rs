//! `hob ask` with an agent and its tools.

use hob_testkit::{FakeServer, Reply};
use serde_json::{Value, json};

use crate::home::Home;
use crate::terminal::Terminal;

const CALL: &str = r#"{"id":"c1","type":"function","function":{"name":"calculator","arguments":"{\"expression\":\"17 * 23\"}"}}"#;

/// A vLLM with the model `smollm2` that calls the calculator and then answers with the result.
async fn calculating() -> FakeServer {
    FakeServer::start(|request| match request.path.as_str() {
        "/v1/models" => Reply::transcript("vllm/models"),
        "/v1/chat/completions" => {
            let body: Value = serde_json::from_slice(&request.body).expect("JSON");
            let messages = body["messages"].as_array().expect("messages");
            let has_result = messages.iter().any(|message| message["role"] == "tool");
            if body["stream"] == true { streamed(has_result) } else { whole(has_result) }
        }
        _ => Reply::json(404, "{}"),
    })
    .await
}

fn whole(has_result: bool) -> Reply {
    let (message, reason) = if has_result {
        (r#"{"role":"assistant","content":"It is 391."}"#.to_owned(), "stop")
    } else {
        (format!(r#"{{"role":"assistant","content":null,"tool_calls":[{CALL}]}}"#), "tool_calls")
    };
    let usage = r#"{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14}"#;
    Reply::json(
        200,
        format!(
            r#"{{"id":"x","object":"chat.completion","created":1,"model":"smollm2","choices":[{{"index":0,"message":{message},"finish_reason":"{reason}"}}],"usage":{usage}}}"#
        ),
    )
}

fn streamed(has_result: bool) -> Reply {
    let (deltas, reason) = if has_result {
        (vec![r#"{"content":"It is "}"#.to_owned(), r#"{"content":"391."}"#.to_owned()], "stop")
    } else {
        let call = CALL.replacen('{', r#"{"index":0,"#, 1);
        (vec![format!(r#"{{"tool_calls":[{call}]}}"#)], "tool_calls")
    };
    let chunk = |delta: &str, reason: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n")
    };
    let mut body: String = deltas.iter().map(|delta| chunk(delta, "null")).collect();
    body += &chunk("{}", &format!("\"{reason}\""));
    Reply::sse(body + "data: [DONE]\n\n")
}

fn home(vllm: &FakeServer) -> Home {
    Home::with_engines(&[("vllm", &vllm.url())])
}

/// The bodies of the chat requests.
fn asked(engine: &FakeServer) -> Vec<Value> {
    let requests = engine.requests();
    let chats = requests.iter().filter(|request| request.path == "/v1/chat/completions");
    chats.map(|chat| serde_json::from_slice(&chat.body).expect("JSON")).collect()
}

#[tokio::test]
async fn json_has_turns_and_tool_results() {
    let vllm = calculating().await;
    let arguments = ["ask", "-a", "orchestrator", "--tools", "calculator", "--json", "What is 17 * 23?"];
    let ran = home(&vllm).run(&arguments).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let object: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let expected = json!({
        "content": "It is 391.",
        "turns": 2,
        "tool_results": [{ "tool_name": "calculator", "content": "391", "success": true }],
        "usage": { "prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28 },
        "model": "smollm2",
        "engine": "vllm",
        "finish_reason": "stop",
    });
    assert_eq!(object, expected);

    let asked = asked(&vllm);
    let offered = asked[0]["tools"].as_array().expect("tools");
    let names: Vec<&Value> = offered.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["calculator"], "only what was selected");
    assert_eq!(asked[1]["messages"][2]["content"], "391");
}

#[tokio::test]
async fn an_agents_answer_streams_and_its_steps_show_when_asked_for() {
    let vllm = calculating().await;
    let home = home(&vllm);
    let quiet = home.run(&["ask", "--tools", "calculator", "What is 17 * 23?"]).await;
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(0), "It is 391.\n", ""));
    assert_eq!(asked(&vllm).len(), 2, "each turn is generated once");

    let loud = home.run(&["ask", "-v", "--tools", "calculator", "What is 17 * 23?"]).await;
    assert_eq!((loud.code, loud.stdout.as_str()), (Some(0), "It is 391.\n"));
    for needle in ["→ calculator {\"expression\":\"17 * 23\"}", "← calculator in "] {
        assert!(loud.stderr.contains(needle), "'{needle}' is missing in: {}", loud.stderr);
    }
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_before_any_request() {
    let vllm = calculating().await;
    let ran = home(&vllm).run(&["ask", "--tools", "calculater", "What is 17 * 23?"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert_eq!(ran.stderr, "error: there is no tool 'calculater'; did you mean calculator?\n");
    assert!(asked(&vllm).is_empty());
}

#[tokio::test]
async fn a_chat_shows_tool_calls() {
    let vllm = calculating().await;
    let home = home(&vllm);
    let mut terminal = Terminal::start(&home, &["chat", "--tools", "calculator"]);
    terminal.line("What is 17 * 23?").await;
    terminal.sees("→ calculator {\"expression\":\"17 * 23\"}").await;
    terminal.sees("← calculator in ").await;
    terminal.sees("It is 391.").await;
    terminal.line("/agent none").await;
    terminal.sees("answers directly, without tools").await;
}
