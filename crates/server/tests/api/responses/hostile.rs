//! Hostile bodies: each is a 400 that names the field, and the server continues to answer.

use serde_json::{Value, json};

use super::{StoringServer, asking, error_of};

#[tokio::test]
async fn a_wrong_type_anywhere_is_a_400() {
    let server = StoringServer::saying(&["Hello"]).await;
    let valid = asking(json!({
        "instructions": "x", "tools": [{ "type": "function", "name": "f" }], "tool_choice": "auto", "parallel_tool_calls": true,
        "text": { "format": { "type": "text" } }, "reasoning": { "effort": "low" }, "include": [], "max_output_tokens": 5,
        "truncation": "auto", "metadata": {}, "store": true, "background": false, "stream": false, "temperature": 1,
        "top_p": 1, "top_logprobs": 0, "previous_response_id": null, "conversation": null,
    }));
    for field in valid.as_object().unwrap().keys() {
        for wrong in [json!({ "x": [] }), json!([[]]), json!(-1), json!(true), json!("")] {
            let mut body = valid.clone();
            body[field] = wrong.clone();
            let response = server.post("/v1/responses", &body).await;
            let status = response.status().as_u16();
            let text = response.text().await.unwrap();
            assert!([200, 400, 404].contains(&status), "{field}={wrong}: {status} {text}");
            if status != 200 {
                let error: Value = serde_json::from_str(&text).unwrap();
                assert!(error["error"]["message"].is_string(), "{field}={wrong}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_deep_or_large_is_refused_by_name() {
    let server = StoringServer::saying(&["Hello"]).await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let body = format!(r#"{{"model":"m","input":[{deep}]}}"#);
    let request = server.server.client.post(server.server.url("/v1/responses"));
    let response = request.header("content-type", "application/json").body(body).send().await.unwrap();
    assert_eq!(response.status(), 400);
    let many: Vec<Value> = (0..20_001).map(|_| json!({ "role": "user", "content": "" })).collect();
    let refused = error_of(server.create(json!({ "input": many })).await).await;
    assert_eq!((refused.0, refused.1), (400, json!("input")));
    let tools: Vec<Value> =
        (0..1_025).map(|number| json!({ "type": "function", "name": format!("f{number}") })).collect();
    let refused = error_of(server.create(json!({ "tools": tools })).await).await;
    assert_eq!((refused.0, refused.1), (400, json!("tools")));
    let long = json!([{ "type": "function", "name": "x".repeat(300) }]);
    let refused = error_of(server.create(json!({ "tools": long })).await).await;
    assert_eq!((refused.0, refused.1), (400, json!("tools[0].name")));
    for body in ["", "{", "[]", "null", "7"] {
        let request = server.server.client.post(server.server.url("/v1/responses"));
        let response =
            request.header("content-type", "application/json").body(body.to_owned()).send().await.unwrap();
        assert_eq!(response.status(), 400, "{body:?}");
    }
    assert_eq!(server.create(json!({})).await.status(), 200);
}

#[tokio::test]
async fn an_input_that_is_too_large_to_store_is_answered_all_the_same() {
    let server = StoringServer::saying(&["Hello"]).await;
    let input = "x".repeat(17 << 20);
    let response = server.create(json!({ "input": input })).await;
    assert_eq!(super::warnings_of(&response), ["ignored=store"]);
    assert_eq!(super::json_of(response).await["store"], false);
    let refused = error_of(server.create(json!({ "input": input, "background": true })).await).await;
    assert_eq!((refused.0, refused.1), (400, json!("input")));
}
