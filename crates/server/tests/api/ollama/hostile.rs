//! Requests that are wrong, huge or strange: each is an error that names the field, in Ollama's form.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::{Engine, Prompt};
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::{object, post, server};
use crate::fixtures::{calculating, offered, reached_from_network};
use crate::support::{TestServer, WAIT_LIMIT};

#[tokio::test]
async fn what_is_wrong_is_named() {
    let (server, engine) = server(ScriptedEngine::saying(&["hi"])).await;
    let message = |fields: Value| {
        let mut message = json!({ "role": "user", "content": "hi" });
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({ "messages": [message] })
    };
    for (fields, words) in [
        (json!({ "model": 7 }), "model: expected a string, got the number 7"),
        (json!({ "model": " " }), "model is required: the name of a model, or 'default'"),
        (json!({ "messages": {} }), "messages: expected an array, got an object"),
        (
            message(json!({ "role": "robot" })),
            "'robot' is not a role. Roles are system, user, assistant and tool",
        ),
        (message(json!({ "role": null })), "a message needs a 'role'"),
        (message(json!({ "content": ["x"] })), "messages[0].content: expected a string, got an array"),
        (
            message(json!({ "images": ["AAAA"] })),
            "messages[0].images[0] is not an image: send a PNG, JPEG, GIF, WebP or BMP file in base64",
        ),
        (
            message(json!({ "images": ["https://example.org/cat.png"] })),
            "messages[0].images[0] is not an image: send a PNG, JPEG, GIF, WebP or BMP file in base64",
        ),
        (
            message(json!({ "tool_calls": [{ "function": {} }] })),
            "messages[0].tool_calls[0].function.name is missing",
        ),
        (json!({ "format": "xml" }), "format: expected \"json\" or a JSON Schema"),
        (json!({ "format": true }), "format: expected \"json\" or a JSON Schema"),
        (json!({ "think": "hard" }), "think: expected true, false, low, medium, high or max, got 'hard'"),
        (json!({ "think": 3 }), "think: expected true, false, or one of low, medium, high and max"),
        (
            json!({ "keep_alive": "soon" }),
            "keep_alive: expected a number of seconds, or a text such as \"5m\"",
        ),
        (json!({ "keep_alive": [] }), "keep_alive: expected a number of seconds, or a text such as \"5m\""),
        (json!({ "stream": "yes" }), "stream: expected true or false, got the string \"yes\""),
        (json!({ "options": 1 }), "options: expected an object, got the number 1"),
        (
            json!({ "options": { "temperature": "hot" } }),
            "options.temperature: expected a number, got the string \"hot\"",
        ),
        (json!({ "options": { "temperature": 3 } }), "temperature must be between 0.0 and 2.0, got 3"),
        (json!({ "options": { "top_p": 2 } }), "options.top_p must be between 0 and 1, got 2"),
        (
            json!({ "options": { "num_predict": 1e12 } }),
            "options.num_predict must be less than 2^32, got 1000000000000",
        ),
        (json!({ "options": { "top_k": 1.5 } }), "options.top_k: expected a whole number of at most 31 bits"),
        (
            json!({ "options": { "num_ctx": "4k" } }),
            "options.num_ctx: expected a whole number of at most 31 bits",
        ),
        (
            json!({ "options": { "repeat_penalty": 0 } }),
            "options.repeat_penalty: expected a number between 0.01 and 100",
        ),
        (json!({ "options": { "use_mmap": 1 } }), "options.use_mmap: expected true or false"),
        (json!({ "options": { "stop": vec!["x"; 65] } }), "options.stop has 65 sequences; the limit is 64"),
        (json!({ "options": { "stop": 1 } }), "options.stop: expected a string or an array of strings"),
        (json!({ "logprobs": true, "top_logprobs": 21 }), "top_logprobs must be between 0 and 20, got 21"),
        (
            json!({ "tools": [{ "type": "web_search" }] }),
            "'web_search' is not a supported type of tool. Supported is 'function'",
        ),
        (json!({ "agent": "nobody" }), "there is no agent 'nobody'"),
    ] {
        let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (status, answer) = object(post(&server, "/api/chat", &body).await).await;
        assert_eq!((status, answer.as_object().unwrap().len()), (400, 1), "{fields}: {answer}");
        assert!(answer["error"].as_str().unwrap().starts_with(words), "{fields}: {answer}");
    }
    assert!(engine.requests().is_empty());
}

#[tokio::test]
async fn a_body_that_is_no_json_or_too_deep_is_refused() {
    let (server, _) = server(ScriptedEngine::saying(&["hi"])).await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let deep = format!(r#"{{"model":"m","format":{{"x":{deep}}}}}"#);
    let many = format!(r#"{{"model":"m","context":[{}1]}}"#, "1,".repeat(100_000));
    for body in ["", "{bad", "[]", "7", deep.as_str(), many.as_str()] {
        for path in ["/api/chat", "/api/generate", "/api/embed", "/api/embeddings"] {
            let response = server.client.post(server.url(path)).body(body.to_owned()).send().await.unwrap();
            let (status, answer) = object(response).await;
            assert_eq!((status, answer.as_object().unwrap().len()), (400, 1), "{path} {body:.40}: {answer}");
            assert!(answer["error"].is_string());
        }
    }
}

#[tokio::test]
async fn a_schema_that_would_exhaust_an_engine_is_refused_by_its_name() {
    let (server, _) = server(ScriptedEngine::saying(&["hi"])).await;
    let mut schema = json!({ "type": "string" });
    for _ in 0..40 {
        schema = json!({ "type": "object", "properties": { "a": schema } });
    }
    let body = json!({ "model": "m", "prompt": "hi", "format": schema });
    let (status, answer) = object(post(&server, "/api/generate", &body).await).await;
    assert_eq!(status, 400);
    assert!(answer["error"].as_str().unwrap().starts_with("format"), "{answer}");
}

#[tokio::test]
async fn a_template_cannot_make_a_prompt_that_fills_the_memory() {
    let (server, engine) = server(ScriptedEngine::saying(&["hi"])).await;
    // Half a megabyte, twenty thousand times.
    let body = json!({
        "model": "m", "prompt": "x".repeat(1 << 19), "template": "{{.Prompt}}".repeat(20_000), "stream": false,
    });
    let answered = tokio::time::timeout(WAIT_LIMIT, post(&server, "/api/generate", &body)).await;
    let (status, answer) = object(answered.expect("it is refused at once")).await;
    assert_eq!(status, 400);
    assert!(
        answer["error"].as_str().unwrap().starts_with("template: it makes a prompt of more than 8"),
        "{answer}"
    );
    assert!(engine.requests().is_empty());
    // As often as a real template does.
    let body =
        json!({ "model": "m", "prompt": "hi", "template": "{{.Prompt}}".repeat(100), "stream": false });
    assert_eq!(post(&server, "/api/generate", &body).await.status(), 200);
    assert_eq!(engine.completion_requests()[0].prompt, Prompt::Text("hi".repeat(100)));
}

#[tokio::test]
async fn many_calls_and_results_are_read_as_fast_as_few() {
    let (server, engine) = server(ScriptedEngine::saying(&["hi"])).await;
    let ask = async |calls: usize, results: usize| {
        let calls = vec![json!({ "function": { "name": "a" } }); calls];
        let result = json!({ "role": "tool", "content": "", "tool_name": "a" });
        let mut messages = vec![json!({ "role": "assistant", "tool_calls": calls })];
        messages.resize(1 + results, result);
        let body = json!({ "model": "m", "messages": messages, "stream": false });
        let answered = tokio::time::timeout(WAIT_LIMIT, post(&server, "/api/chat", &body)).await;
        object(answered.expect("it is read at once")).await
    };
    let (status, answer) = ask(10_000, 10_000).await;
    let message = "messages[0].tool_calls has 10,000 calls; the limit is 1,024";
    assert_eq!((status, answer), (400, json!({ "error": message })));
    assert_eq!(ask(1_024, 10_000).await.0, 200);
    let asked = engine.requests().remove(0);
    let answered: Vec<_> = asked.messages[1..].iter().map(|message| message.tool_call_id.clone()).collect();
    let expected: Vec<_> = (0..10_000).map(|at| (at < 1_024).then(|| format!("call_0_{at}"))).collect();
    assert_eq!(answered, expected);
}

#[tokio::test]
async fn a_stranger_may_ask_and_neither_unload_nor_change_how_an_engine_runs() {
    let engine = calculating();
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let body = json!({
        "model": "m", "messages": [{ "role": "user", "content": "17 * 23?" }], "stream": false,
        "options": { "num_gpu": 0, "temperature": 0.1 }, "agent": "none",
    });
    let response = post(&server, "/api/chat", &body).await;
    assert_eq!(super::warnings(&response), ["ignored=num_gpu"]);
    assert_eq!(response.status(), 200);
    let asked = engine.requests().remove(0);
    assert!(asked.extra.is_empty() && asked.hints.is_empty() && offered(&asked).is_empty());
    let (status, answer) =
        object(post(&server, "/api/generate", &json!({ "model": "m", "keep_alive": 0 })).await).await;
    assert_eq!(status, 403);
    assert!(
        answer["error"].as_str().unwrap().starts_with("Unloading a model is for the owner only"),
        "{answer}"
    );
    for path in ["/api/pull", "/api/copy"] {
        let (status, answer) = object(post(&server, path, &json!({ "model": "m" })).await).await;
        assert_eq!(status, 403, "{path}");
        assert!(answer["error"].as_str().unwrap().starts_with(path), "{answer}");
    }
}

#[tokio::test]
async fn a_missing_key_is_refused_in_ollamas_form() {
    let config = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() };
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = TestServer::start_with(Arc::clone(&engine) as Arc<dyn Engine>, config).await;
    let (status, answer) = object(server.client.get(server.url("/api/tags")).send().await.unwrap()).await;
    assert_eq!((status, answer.as_object().unwrap().len()), (401, 1));
    assert!(answer["error"].as_str().unwrap().starts_with("this server needs a key"), "{answer}");
    let keyed = server.client.get(server.url("/api/tags")).bearer_auth("s3cret").send().await.unwrap();
    assert_eq!(keyed.status(), 200);
}

#[tokio::test]
async fn an_agent_answers_where_the_caller_names_one() {
    let engine = calculating();
    let parts = crate::fixtures::parts(Arc::clone(&engine) as Arc<dyn Engine>);
    let server = TestServer::start_system(parts, crate::fixtures::loopback_config()).await;
    let body = json!({ "model": "m", "prompt": "What is 17 * 23?", "agent": "orchestrator" });
    let answer = super::lines(post(&server, "/api/generate", &body).await).await;
    let text: String = answer.iter().map(|line| line["response"].as_str().unwrap()).collect();
    assert_eq!(text, "It is 391.");
    let steps: Vec<&str> = answer.iter().filter_map(|line| line["hob_step"]["name"].as_str()).collect();
    assert!(!steps.is_empty(), "{answer:?}");
}
