//! `POST /api/chat`: the bodies of whole and streamed answers.

use hob_core::{Delta, EngineError, FinishReason, ToolCallDelta, Usage};
use hob_testkit::ScriptedEngine;
use serde_json::json;

use super::{lines, object, post, server, timeless, warnings};

fn giving(deltas: Vec<Delta>) -> ScriptedEngine {
    ScriptedEngine::new(move |_| deltas.iter().cloned().map(Ok).collect())
}

fn finish(reason: FinishReason) -> Delta {
    Delta::Finish { choice: 0, reason }
}

fn done() -> Delta {
    Delta::Done {
        usage: Some(Usage {
            prompt_tokens: 7,
            completion_tokens: 2,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        }),
    }
}

fn call(index: u32, id: Option<&str>, name: Option<&str>, arguments: &str) -> Delta {
    Delta::ToolCall(ToolCallDelta {
        choice: 0,
        index,
        id: id.map(str::to_owned),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    })
}

#[tokio::test]
async fn a_stream_is_lines_of_text_and_a_last_one_with_counts() {
    let (server, _) = server(ScriptedEngine::saying(&["Hel", "lo"])).await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    let answer: Vec<_> =
        lines(post(&server, "/api/chat", &body).await).await.into_iter().map(timeless).collect();
    let piece = |text: &str| json!({ "model": "m", "created_at": "[time]", "message": { "role": "assistant", "content": text }, "done": false });
    let last = json!({
        "model": "m", "created_at": "[time]", "message": { "role": "assistant", "content": "" }, "done": true,
        "done_reason": "stop", "total_duration": 0, "load_duration": 0, "prompt_eval_count": 3, "prompt_eval_duration": 0,
        "eval_count": 2, "eval_duration": 0,
    });
    assert_eq!(answer, [piece("Hel"), piece("lo"), last]);
}

#[tokio::test]
async fn a_whole_answer_has_the_same_fields() {
    let (server, _) = server(ScriptedEngine::saying(&["Hel", "lo"])).await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "stream": false });
    let (status, answer) = object(post(&server, "/api/chat", &body).await).await;
    assert!(answer["total_duration"].as_u64().unwrap() > 0);
    assert_eq!(
        (status, timeless(answer)),
        (
            200,
            json!({
                "model": "m", "created_at": "[time]", "message": { "role": "assistant", "content": "Hello" }, "done": true,
                "done_reason": "stop", "total_duration": 0, "load_duration": 0, "prompt_eval_count": 3,
                "prompt_eval_duration": 0, "eval_count": 2, "eval_duration": 0,
            })
        )
    );
}

#[tokio::test]
async fn thoughts_come_apart_from_the_answer_unless_they_are_turned_off() {
    let deltas = vec![
        Delta::Reasoning { choice: 0, text: "hm".into() },
        Delta::text("4"),
        finish(FinishReason::Stop),
        done(),
    ];
    let (server, _) = server(giving(deltas)).await;
    let asking = |think, stream| json!({ "model": "m", "messages": [{ "role": "user", "content": "2+2?" }], "think": think, "stream": stream });
    let messages = async |think| {
        let stream = lines(post(&server, "/api/chat", &asking(think, true)).await).await;
        stream.iter().map(|line| line["message"].clone()).collect::<Vec<_>>()
    };
    let words = |text: &str| json!({ "role": "assistant", "content": text });
    let thought = json!({ "role": "assistant", "content": "", "thinking": "hm" });
    assert_eq!(messages(true).await, [thought, words("4"), words("")]);
    assert_eq!(messages(false).await, [words("4"), words("")]);

    let (_, whole) = object(post(&server, "/api/chat", &asking(true, false)).await).await;
    assert_eq!(whole["message"], json!({ "role": "assistant", "content": "4", "thinking": "hm" }));
    let (_, whole) = object(post(&server, "/api/chat", &asking(false, false)).await).await;
    assert_eq!(whole["message"], words("4"));
}

#[tokio::test]
async fn a_call_is_one_line_with_its_arguments_as_an_object() {
    let deltas = vec![
        call(0, Some("c1"), Some("weather"), "{\"city\":"),
        call(0, None, None, "\"Rome\"}"),
        call(1, Some("c2"), Some("now"), ""),
        finish(FinishReason::ToolCalls),
        done(),
    ];
    let (server, _) = server(giving(deltas)).await;
    let tools = json!([{ "type": "function", "function": { "name": "weather", "parameters": { "type": "object" } } }]);
    let asking = |stream| json!({ "model": "m", "messages": [{ "role": "user", "content": "?" }], "tools": tools, "stream": stream });
    let first =
        json!({ "id": "c1", "function": { "index": 0, "name": "weather", "arguments": { "city": "Rome" } } });
    let second = json!({ "id": "c2", "function": { "index": 1, "name": "now", "arguments": {} } });

    let stream = lines(post(&server, "/api/chat", &asking(true)).await).await;
    let calls: Vec<_> = stream.iter().map(|line| line["message"]["tool_calls"].clone()).collect();
    assert_eq!(calls, [json!([first]), json!([second]), json!(null)]);
    assert_eq!((&stream[2]["done"], &stream[2]["done_reason"]), (&json!(true), &json!("stop")));

    let (_, whole) = object(post(&server, "/api/chat", &asking(false)).await).await;
    assert_eq!(
        whole["message"],
        json!({ "role": "assistant", "content": "", "tool_calls": [first, second] })
    );
    assert_eq!(whole["done_reason"], "stop");
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_text() {
    let deltas =
        vec![call(0, Some("c1"), Some("weather"), "{\"city\":\"Ro"), finish(FinishReason::Length), done()];
    let (server, _) = server(giving(deltas)).await;
    let text = "{\"name\":\"weather\",\"arguments\":{\"city\":\"Ro}";
    for stream in [true, false] {
        let body =
            json!({ "model": "m", "messages": [{ "role": "user", "content": "?" }], "stream": stream });
        let response = post(&server, "/api/chat", &body).await;
        let answer = if stream { lines(response).await } else { vec![object(response).await.1] };
        assert_eq!(answer[0]["message"], json!({ "role": "assistant", "content": text }));
        assert_eq!(answer.last().unwrap()["done_reason"], "length");
    }
}

#[tokio::test]
async fn calls_whose_pieces_come_in_turns_are_whole() {
    let (server, _) = server(ScriptedEngine::new(|_| {
        let begin = |index, id: &str| ToolCallDelta {
            index,
            id: Some(id.into()),
            name: Some("look".into()),
            arguments: "{\"where\":".into(),
            ..ToolCallDelta::default()
        };
        let rest =
            |index, rest: &str| ToolCallDelta { index, arguments: rest.into(), ..ToolCallDelta::default() };
        let pieces = [begin(0, "a"), begin(1, "b"), rest(0, "\"left\"}"), rest(1, "\"right\"}")];
        let mut deltas: Vec<_> = pieces.map(|piece| Ok(Delta::ToolCall(piece))).into();
        deltas.push(Ok(Delta::Finish { choice: 0, reason: FinishReason::ToolCalls }));
        deltas.push(Ok(Delta::Done { usage: None }));
        deltas
    }))
    .await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    let answer = lines(post(&server, "/api/chat", &body).await).await;
    let call = |index: u32, id: &str, side: &str| {
        let function = json!({ "index": index, "name": "look", "arguments": { "where": side } });
        json!({ "role": "assistant", "content": "", "tool_calls": [{ "id": id, "function": function }] })
    };
    let messages: Vec<_> = answer.iter().map(|line| line["message"].clone()).collect();
    let end = json!({ "role": "assistant", "content": "" });
    assert_eq!(messages, [call(0, "a", "left"), call(1, "b", "right"), end]);
    assert_eq!(answer[2]["done_reason"], "stop");
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_and_never_with_done() {
    let (server, _) = server(ScriptedEngine::new(|_| {
        let cable = EngineError::Interrupted { engine: "scripted".into(), reason: "cable".into() };
        vec![Ok(Delta::text("half an ans")), Err(cable)]
    }))
    .await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    let answer = lines(post(&server, "/api/chat", &body).await).await;
    assert_eq!(answer.len(), 2);
    assert_eq!(answer[0]["done"], false);
    assert_eq!(answer[1], json!({ "error": "scripted broke off its answer: cable" }));
}

#[tokio::test]
async fn trouble_before_the_first_piece_is_a_status_with_an_error() {
    let (server, engine) = server(ScriptedEngine::saying(&["hi"])).await;
    let body = |model: &str| json!({ "model": model, "messages": [{ "role": "user", "content": "hi" }] });
    let (status, answer) = object(post(&server, "/api/chat", &body("nope")).await).await;
    assert_eq!((status, answer), (404, json!({ "error": "model 'nope' not found: scripted has m" })));
    engine.set_gone(true);
    let (status, answer) = object(post(&server, "/api/chat", &body("m")).await).await;
    assert_eq!(status, 502);
    assert!(answer["error"].as_str().unwrap().starts_with("cannot reach scripted"), "{answer}");
    assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
}

#[tokio::test]
async fn a_request_without_messages_loads_the_model_and_with_keep_alive_zero_unloads_it() {
    let (server, engine) = server(ScriptedEngine::saying(&["hi"])).await;
    let words = json!({ "role": "assistant", "content": "" });
    for (body, reason) in [
        (json!({ "model": "m", "messages": [] }), "load"),
        (json!({ "model": "m" }), "load"),
        (json!({ "model": "m:latest", "messages": [], "keep_alive": "5m" }), "load"),
        (json!({ "model": "m", "keep_alive": 0 }), "unload"),
        (json!({ "model": "m", "messages": [], "keep_alive": "0s" }), "unload"),
    ] {
        let (status, answer) = object(post(&server, "/api/chat", &body).await).await;
        let expected = json!({
            "model": body["model"], "created_at": "[time]", "message": words, "done": true, "done_reason": reason,
        });
        assert_eq!((status, timeless(answer)), (200, expected), "{body}");
    }
    assert_eq!(engine.loaded(), ["load m", "load m", "load m", "unload m", "unload m"]);
    assert!(engine.requests().is_empty());
    let missing = json!({ "model": "nope", "messages": [] });
    assert_eq!(post(&server, "/api/chat", &missing).await.status(), 404);
}

#[tokio::test]
async fn a_client_may_add_a_tag_that_no_engine_lists() {
    let (server, engine) = server(ScriptedEngine::saying(&["hi"]).with_models(&["m", "own:latest"])).await;
    for (asked, reached) in [("m:latest", "m"), ("own:latest", "own:latest"), ("default", "m")] {
        let body =
            json!({ "model": asked, "messages": [{ "role": "user", "content": "hi" }], "stream": false });
        let (status, answer) = object(post(&server, "/api/chat", &body).await).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(engine.requests().last().unwrap().model, reached);
        // The name is the caller's, unless that stands for another.
        assert_eq!(answer["model"], if asked == "default" { "m" } else { asked });
    }
}

#[tokio::test]
async fn what_an_engine_cannot_follow_is_named_and_no_reason_to_refuse() {
    let body = json!({
        "model": "m", "messages": [{ "role": "user", "content": "hi" }], "think": true, "keep_alive": "5m",
        "options": { "num_ctx": 4096, "top_k": 20, "made_up": 1 }, "tool_choice": "auto",
    });
    let (server, engine) = server(ScriptedEngine::saying(&["hi"]).called("vllm")).await;
    let response = post(&server, "/api/chat", &body).await;
    assert_eq!(
        warnings(&response),
        ["ignored=options.made_up", "ignored=tool_choice", "ignored=num_ctx", "ignored=keep_alive"]
    );
    assert_eq!(response.status(), 200);
    let extra = json!(engine.requests()[0].extra);
    let expected = json!({ "top_k": 20, "reasoning_effort": "medium", "chat_template_kwargs": { "enable_thinking": true } });
    assert_eq!(extra, expected);
}

#[tokio::test]
async fn fields_have_the_names_of_this_api() {
    let (thinking, _engine) = server(ScriptedEngine::saying(&["hi"])).await;
    for stream in [false, true] {
        let body = json!({
            "model": "m", "messages": [{ "role": "user", "content": "hi" }], "think": true, "stream": stream,
        });
        assert_eq!(warnings(&post(&thinking, "/api/chat", &body).await), ["ignored=think"]);
    }
    let (blind, _engine) = server(ScriptedEngine::new(|_| {
        vec![Err(EngineError::Unsupported {
            engine: "scripted".into(),
            field: "image_url".into(),
            hint: None,
        })]
    }))
    .await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "stream": false });
    let (status, answer) = object(post(&blind, "/api/chat", &body).await).await;
    assert_eq!((status, answer), (400, json!({ "error": "scripted does not support 'images'" })));
}

#[tokio::test]
async fn an_answer_that_the_caller_began_is_continued_or_the_answer_says_that_it_is_not() {
    let body = json!({ "model": "m", "stream": false, "messages": [
        { "role": "user", "content": "hi" }, { "role": "assistant", "content": "The" },
    ] });
    for (key, expected, extra) in [
        ("embedded", Vec::<&str>::new(), json!({ "continue_final_message": true })),
        ("litellm", vec!["ignored=prefill"], json!({})),
    ] {
        let (server, engine) = server(ScriptedEngine::saying(&["hi"]).called(key)).await;
        assert_eq!(warnings(&post(&server, "/api/chat", &body).await), expected, "{key}");
        assert_eq!(json!(engine.requests()[0].extra), extra, "{key}");
    }
}
