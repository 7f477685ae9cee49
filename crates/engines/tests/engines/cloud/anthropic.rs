//! Anthropic's Messages API.

use hob_core::{Answer, AnswerWarning, Content, FinishReason, Generation, Temperature, Usage};
use serde_json::json;

use super::*;

const MODEL: &str = "claude-opus-4-6";

/// A stream as documented: named events, pings in between.
fn sse(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("x")))
        .collect()
}

fn opening() -> Value {
    json!({ "type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": MODEL,
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 25, "output_tokens": 1 },
    } })
}

fn block(index: u32, block: Value, deltas: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({ "type": "content_block_start", "index": index, "content_block": block })];
    events.extend(
        deltas.iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
    );
    events.push(json!({ "type": "content_block_stop", "index": index }));
    events
}

fn text(index: u32, words: &[&str]) -> Vec<Value> {
    let deltas: Vec<Value> = words.iter().map(|text| json!({ "type": "text_delta", "text": text })).collect();
    block(index, json!({ "type": "text", "text": "" }), &deltas)
}

fn closing(reason: &str) -> Vec<Value> {
    vec![
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 15 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn overloaded() -> Value {
    json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } })
}

fn finish(reason: FinishReason) -> Delta {
    Delta::Finish { choice: 0, reason }
}

const DONE: Delta = Delta::Done {
    usage: Some(Usage {
        prompt_tokens: 25,
        completion_tokens: 15,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    }),
};

#[tokio::test]
async fn a_conversation_with_tools_round_trips() {
    let server = FakeServer::replying(Reply::json(
        200,
        r#"{"id":"msg_2","type":"message","role":"assistant","model":"claude-opus-4-6","content":[
            {"type":"text","text":"And now Oslo."},
            {"type":"tool_use","id":"toolu_2","name":"weather","input":{"city":"Oslo"}}],
            "stop_reason":"tool_use","stop_sequence":null,
            "usage":{"input_tokens":40,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,"output_tokens":12}}"#,
    ))
    .await;
    let request = GenerateRequest {
        messages: vec![
            Message::new(Role::System, "Be kind."),
            Message::new(Role::User, "weather in Rome and Oslo?"),
            Message {
                content: Content::Empty,
                tool_calls: vec![call("toolu_1", "weather", "{\"city\":\"Rome\"}")],
                ..Message::new(Role::Assistant, "")
            },
            Message::tool_result("toolu_1", "11 degrees"),
        ],
        ..hi(MODEL)
    };
    let expected = Generation {
        model: MODEL.into(),
        answer: Answer {
            content: "And now Oslo.".into(),
            reasoning: None,
            tool_calls: vec![call("toolu_2", "weather", "{\"city\":\"Oslo\"}")],
            finish_reason: FinishReason::ToolCalls,
            sealed_reasoning: Vec::new(),
            later_thoughts: Vec::new(),
            logprobs: None,
        },
        alternatives: Vec::new(),
        usage: Some(Usage {
            prompt_tokens: 60,
            completion_tokens: 12,
            cached_tokens: Some(20),
            reasoning_tokens: None,
            load_time: None,
        }),
        warnings: Vec::new(),
    };
    assert_eq!(cloud(&server).generate(&request).await.unwrap(), expected);
    assert_eq!(
        sent(&server),
        json!({
            "model": MODEL,
            "max_tokens": 1024,
            "system": [{ "type": "text", "text": "Be kind." }],
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "weather in Rome and Oslo?" }] },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "toolu_1", "name": "weather", "input": { "city": "Rome" } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "toolu_1", "content": [{ "type": "text", "text": "11 degrees" }] },
                ] },
            ],
            "stream": false,
        })
    );
}

#[tokio::test]
async fn a_stream_is_complete_however_it_is_split_into_packets() {
    let ping = json!({ "type": "ping" });
    let weather = json!({ "type": "tool_use", "id": "toolu_1", "name": "weather", "input": {} });
    let arguments = ["", "{\"city\":", "\"Zürich\"}"]
        .map(|json| json!({ "type": "input_json_delta", "partial_json": json }));
    let events = [
        vec![opening(), ping.clone()],
        text(0, &["Grüße ", "👋"]),
        vec![ping],
        block(1, weather, &arguments),
        closing("tool_use"),
    ]
    .concat();
    let server = FakeServer::replying(Reply::sse(sse(&events)).in_packets_of(1)).await;
    let (deltas, error) = pieces(&cloud(&server), &hi(MODEL)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(
        deltas,
        [
            Delta::text("Grüße "),
            Delta::text("👋"),
            call_piece(0, Some("toolu_1"), Some("weather"), ""),
            call_piece(0, None, None, "{\"city\":"),
            call_piece(0, None, None, "\"Zürich\"}"),
            finish(FinishReason::ToolCalls),
            DONE,
        ]
    );
    assert_eq!(sent(&server)["stream"], json!(true));
}

#[tokio::test]
async fn an_error_in_the_middle_breaks_the_answer_and_never_looks_complete() {
    let events =
        [vec![opening()], text(0, &["half a sent"]), vec![overloaded()], closing("end_turn")].concat();
    let server = FakeServer::replying(Reply::sse(sse(&events))).await;
    let (deltas, error) = pieces(&cloud(&server), &hi(MODEL)).await;
    assert_eq!(deltas, [Delta::text("half a sent")]);
    assert_eq!(
        error.map(|error| error.to_string()).as_deref(),
        Some("cloud (Anthropic) answered 529: Overloaded")
    );
}

#[tokio::test]
async fn an_error_before_the_first_delta_has_its_status() {
    let server = FakeServer::replying(Reply::sse(sse(&[opening(), overloaded()]))).await;
    let (deltas, error) = pieces(&cloud(&server), &hi(MODEL)).await;
    assert_eq!(deltas, []);
    assert!(matches!(error, Some(EngineError::Refused { status: 529, .. })), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_is_cut_never_looks_complete() {
    let half = sse(&[vec![opening()], text(0, &["half"])].concat());
    let without_last_word =
        sse(&[vec![opening()], text(0, &["half"]), closing("end_turn")[..1].to_vec()].concat());
    for reply in [Reply::sse(half.clone()).then_cut(), Reply::sse(half), Reply::sse(without_last_word)] {
        let server = FakeServer::replying(reply).await;
        let (deltas, error) = pieces(&cloud(&server), &hi(MODEL)).await;
        assert_eq!(deltas.first(), Some(&Delta::text("half")));
        assert!(matches!(error, Some(EngineError::Interrupted { .. })), "{error:?}");
        assert!(!deltas.iter().any(|delta| matches!(delta, Delta::Done { .. })));
    }
}

#[tokio::test]
async fn a_caller_that_disconnects_ends_the_request() {
    let half = sse(&[vec![opening()], text(0, &["half"])].concat());
    let server = FakeServer::replying(Reply::sse(half).then_silence()).await;
    let mut stream = cloud(&server).stream(&hi(MODEL)).await.unwrap().deltas;
    assert_eq!(stream.next().await.unwrap().unwrap(), Delta::text("half"));
    drop(stream);
    server.hung_up(1).await;
}

#[tokio::test]
async fn errors_keep_their_status_and_text() {
    let refused = |status, kind: &str, message: &str| {
        Reply::json(
            status,
            json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" })
                .to_string(),
        )
    };
    assert_eq!(
        failure(MODEL, refused(401, "authentication_error", "invalid x-api-key")).await.0,
        "cloud (Anthropic) answered 401: invalid x-api-key"
    );
    assert_eq!(
        failure(MODEL, refused(404, "not_found_error", "model: claude-opus-4-6")).await.0,
        "cloud (Anthropic) has no model 'claude-opus-4-6'"
    );
    assert_eq!(
        failure(MODEL, refused(429, "rate_limit_error", "slow down").header("retry-after", "12")).await,
        ("cloud (Anthropic) answered 429: slow down".to_owned(), Some(12))
    );
    assert_eq!(
        failure(MODEL, refused(529, "overloaded_error", "Overloaded")).await.0,
        "cloud (Anthropic) answered 529: Overloaded"
    );
    assert_eq!(
        failure(MODEL, Reply::new(500, "text/html", "<html>oops</html>")).await.0,
        "cloud (Anthropic) answered 500: Internal Server Error"
    );
}

#[tokio::test]
async fn an_invalid_answer_is_an_error() {
    let (error, _) = failure(MODEL, Reply::json(200, r#"{"content":[{"type":"text"}]}"#)).await;
    assert!(error.starts_with("cloud (Anthropic) gave an answer that cannot be read: "), "{error}");
}

#[tokio::test]
async fn unsupported_requests_are_refused_before_anything_is_sent() {
    let server = FakeServer::replying(Reply::json(200, "{}")).await;
    let request = GenerateRequest { temperature: Some(Temperature::new(1.5).unwrap()), ..hi(MODEL) };
    let error = cloud(&server).generate(&request).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cloud (Anthropic) does not support 'temperature': Anthropic accepts 0.0 to 1.0"
    );
    assert_eq!(server.requests(), []);
}

/// Asks for an answer without a limit, and returns the limits that were sent and the warnings.
async fn unlimited(models: &'static str, refuses: u64) -> (Vec<u64>, Vec<AnswerWarning>) {
    let server = FakeServer::start(move |request| {
        if request.method == "GET" {
            return match models {
                "" => Reply::json(500, "{}"),
                models => Reply::json(200, models),
            };
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        if body["max_tokens"].as_u64() > Some(refuses) {
            let message = "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000";
            let error =
                json!({ "type": "error", "error": { "type": "invalid_request_error", "message": message } });
            return Reply::json(400, error.to_string());
        }
        Reply::json(200, r#"{"content":[{"type":"text","text":"4"}],"stop_reason":"end_turn"}"#)
    })
    .await;
    let defaults = hob_core::AnswerDefaults { max_tokens: None, ..hob_core::AnswerDefaults::default() };
    let request = GenerateRequest { defaults, ..hi("claude-opus-4-6") };
    let cloud = cloud(&server);
    let warnings = cloud.generate(&request).await.unwrap().warnings;
    assert_eq!(cloud.generate(&request).await.unwrap().warnings, warnings);
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| request.method == "GET").count(), 1, "asked once");
    let sent = requests.iter().filter(|request| request.method == "POST").map(|request| {
        serde_json::from_slice::<Value>(&request.body).unwrap()["max_tokens"].as_u64().unwrap()
    });
    (sent.collect(), warnings)
}

#[tokio::test]
async fn an_answer_without_a_limit_may_be_as_long_as_the_model_can_write() {
    let models = r#"{"data":[{"type":"model","id":"claude-opus-4-6","max_tokens":64000}]}"#;
    assert_eq!(unlimited(models, u64::MAX).await, (vec![64_000, 64_000], Vec::new()));
}

#[tokio::test]
async fn a_limit_that_hob_had_to_choose_is_told() {
    let limited = vec![AnswerWarning::LengthLimited(8_192)];
    assert_eq!(unlimited("", u64::MAX).await, (vec![8_192, 8_192], limited.clone()));
    // The prompt leaves no room for the longest answer.
    let models = r#"{"data":[{"type":"model","id":"claude-opus-4-6","max_tokens":64000}]}"#;
    assert_eq!(unlimited(models, 10_000).await, (vec![64_000, 8_192, 64_000, 8_192], limited));
}
