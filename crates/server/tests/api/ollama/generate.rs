//! `POST /api/generate`: a prompt, answered as a conversation.

use hob_core::{AnswerDefaults, CompletionRequest, Message, Prompt, Role};
use hob_testkit::ScriptedEngine;
use serde_json::json;

use super::{lines, object, post, server, timeless, warnings};

#[tokio::test]
async fn a_prompt_is_a_question_and_the_answer_is_a_response() {
    let (server, engine) = server(ScriptedEngine::saying(&["Hel", "lo"])).await;
    let body = json!({ "model": "m", "prompt": "Say hi", "system": "Be brief." });
    let answer: Vec<_> =
        lines(post(&server, "/api/generate", &body).await).await.into_iter().map(timeless).collect();
    let piece = |text: &str| json!({ "model": "m", "created_at": "[time]", "response": text, "done": false });
    let last = json!({
        "model": "m", "created_at": "[time]", "response": "", "done": true, "done_reason": "stop", "total_duration": 0,
        "load_duration": 0, "prompt_eval_count": 3, "prompt_eval_duration": 0, "eval_count": 2, "eval_duration": 0,
    });
    assert_eq!(answer, [piece("Hel"), piece("lo"), last]);
    let asked = &engine.requests()[0].messages;
    assert_eq!(*asked, [Message::new(Role::System, "Be brief."), Message::new(Role::User, "Say hi")]);
}

#[tokio::test]
async fn a_whole_response_has_everything_in_one_object() {
    let (server, _) = server(ScriptedEngine::saying(&["Hel", "lo"])).await;
    let body = json!({ "model": "m", "prompt": "Say hi", "stream": false, "context": [1, 2, 3] });
    let response = post(&server, "/api/generate", &body).await;
    assert_eq!(warnings(&response), ["ignored=context"]);
    let (status, answer) = object(response).await;
    assert_eq!(
        (status, timeless(answer)),
        (
            200,
            json!({
                "model": "m", "created_at": "[time]", "response": "Hello", "done": true, "done_reason": "stop",
                "total_duration": 0, "load_duration": 0, "prompt_eval_count": 3, "prompt_eval_duration": 0, "eval_count": 2,
                "eval_duration": 0,
            })
        )
    );
}

#[tokio::test]
async fn without_a_prompt_the_model_is_loaded_or_unloaded() {
    let (server, engine) = server(ScriptedEngine::saying(&["hi"])).await;
    for (body, reason) in [
        (json!({ "model": "m" }), "load"),
        (json!({ "model": "m", "prompt": "" }), "load"),
        (json!({ "model": "m", "prompt": "", "keep_alive": 0 }), "unload"),
    ] {
        let (status, answer) = object(post(&server, "/api/generate", &body).await).await;
        let expected = json!({ "model": "m", "created_at": "[time]", "response": "", "done": true, "done_reason": reason });
        assert_eq!((status, timeless(answer)), (200, expected), "{body}");
    }
    assert_eq!(engine.loaded(), ["load m", "load m", "unload m"]);
}

#[tokio::test]
async fn a_raw_prompt_a_template_and_a_suffix_are_texts_to_continue() {
    let (server, engine) = server(ScriptedEngine::saying(&["Hel", "lo"])).await;
    let text = |prompt: &str, suffix: Option<&str>| CompletionRequest {
        model: "m".into(),
        prompt: Prompt::from(prompt),
        suffix: suffix.map(str::to_owned),
        defaults: AnswerDefaults { max_tokens: None, ..AnswerDefaults::default() },
        ..CompletionRequest::default()
    };
    for (fields, asked) in [
        (json!({ "prompt": "Once upon", "raw": true }), text("Once upon", None)),
        (json!({ "prompt": "def f(", "suffix": "return x" }), text("def f(", Some("return x"))),
        (json!({ "suffix": "return x" }), text("", Some("return x"))),
        (
            json!({ "prompt": "Hi", "system": "Be brief.", "template": "{{ .System }}|{{ .Prompt }}|{{ .Response }}" }),
            text("Be brief.|Hi|", None),
        ),
    ] {
        for stream in [true, false] {
            let mut body = json!({ "model": "m", "stream": stream });
            body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let response = post(&server, "/api/generate", &body).await;
            let answer = if stream { lines(response).await } else { vec![object(response).await.1] };
            let written: String = answer.iter().map(|line| line["response"].as_str().unwrap()).collect();
            assert_eq!(written, "Hello", "{body}: {answer:?}");
            assert_eq!(answer.last().unwrap()["done_reason"], "stop");
            assert_eq!(engine.completion_requests().pop().unwrap(), asked, "{body}");
        }
    }
    let body = json!({
        "model": "m", "prompt": "Once upon", "raw": true, "suffix": "x", "think": true, "agent": "react", "stream": false,
        "options": { "num_predict": 4, "num_ctx": 2048 },
    });
    let response = post(&server, "/api/generate", &body).await;
    assert_eq!(warnings(&response), ["ignored=suffix", "ignored=think", "ignored=agent", "ignored=num_ctx"]);
    assert_eq!(engine.completion_requests().pop().unwrap().max_tokens(), Some(4));
}

#[tokio::test]
async fn what_has_no_place_in_a_text_is_named() {
    let (server, engine) = server(ScriptedEngine::saying(&["hi"])).await;
    for (fields, words) in [
        (
            json!({ "raw": true, "system": "x" }),
            "'system' has no place in a raw prompt: write it into 'prompt'",
        ),
        (
            json!({ "raw": true, "template": "x" }),
            "'template' has no place in a raw prompt: write it into 'prompt'",
        ),
        (
            json!({ "template": "{{ range .Messages }}{{ end }}" }),
            "template: Hob reads the variables .System, .Prompt, .Suffix and .Response, and conditions on them, but not {{ range .Messages }}",
        ),
        (
            json!({ "raw": true, "images": ["iVBORw0KGgoAAAANSUhEUg=="] }),
            "'images' can be sent with a question only, not with raw, template or suffix",
        ),
    ] {
        let mut body = json!({ "model": "m", "prompt": "hi" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answered = object(post(&server, "/api/generate", &body).await).await;
        assert_eq!(answered, (400, json!({ "error": words })));
    }
    assert!(engine.completion_requests().is_empty());
}
