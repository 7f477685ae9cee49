//! `POST /api/generate`: a prompt, answered as a conversation.

use hob_core::{Message, Role};
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
