//! Engines that hang, close, send garbage or send slowly, one after the other, behind one server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hob_testkit::{FakeServer, Recorded, Reply};
use reqwest::Method;
use serde_json::json;

use super::client::Client;
use super::report;
use crate::home::{Home, engines_config};
use crate::running::Running;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conduct {
    Good,
    Hangs,
    HangsInTheMiddle,
    Closes,
    ClosesInTheMiddle,
    SendsGarbage,
    SendsAnotherStatus,
    SendsByteByByte,
}

const WHOLE: &str = r#"{"id":"x","object":"chat.completion","created":1,"model":"smollm2","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

const STREAMED: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"smollm2\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"smollm2\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn reply(request: &Recorded, conduct: Conduct) -> Reply {
    let is_streamed = request.text().contains("\"stream\":true");
    let good = |text: &str| if is_streamed { Reply::sse(text) } else { Reply::json(200, text) };
    let text = if is_streamed { STREAMED } else { WHOLE };
    let half = &text[..text.len() / 2];
    match conduct {
        Conduct::Good => good(text),
        Conduct::Hangs => Reply::silence(),
        Conduct::HangsInTheMiddle => good(half).then_silence(),
        Conduct::Closes => good("").then_cut(),
        Conduct::ClosesInTheMiddle => good(half).then_cut(),
        Conduct::SendsGarbage => good("\u{0}\u{1}garbage{{{\n\n"),
        Conduct::SendsAnotherStatus => Reply::json(500, "<html>"),
        Conduct::SendsByteByByte => good(text).in_packets_of(1).with_pause(Duration::from_millis(1)),
    }
}

/// Open files and sockets of a process.
fn descriptors(server: &Running) -> usize {
    let directory = format!("/proc/{}/fd", server.pid().as_raw_nonzero());
    std::fs::read_dir(directory).expect("Linux").count()
}

#[tokio::test]
#[ignore = "takes minutes: ./dev test --faults"]
async fn a_server_outlives_every_conduct_of_its_engine_and_keeps_nothing_open() {
    let mut figure = report("engines", "bad answers");
    let conduct = Arc::new(Mutex::new(Conduct::Good));
    let of_engine = Arc::clone(&conduct);
    let engine = FakeServer::start(move |request| match request.path.as_str() {
        "/v1/models" => Reply::transcript("vllm/models"),
        "/health" => Reply::json(200, ""),
        _ => reply(request, *of_engine.lock().unwrap_or_else(PoisonError::into_inner)),
    })
    .await;
    let set = |now: Conduct| *conduct.lock().unwrap_or_else(PoisonError::into_inner) = now;
    let home = Home::with_config(&engines_config(&[("vllm", &engine.url())]));
    let server = Running::start(&home, &[]).await;
    let client = Client::of(server.address());
    let ask = async |stream: bool| {
        let messages = json!([{ "role": "user", "content": "Hello" }]);
        let body = json!({ "model": "default", "agent": "none", "stream": stream, "messages": messages });
        let answer = client.send(Method::POST, "/v1/chat/completions", Some(&body)).await.expect("it runs");
        let text = answer.body.as_str().map_or_else(|| answer.body.to_string(), str::to_owned);
        let is_complete = if stream { text.contains("[DONE]") } else { answer.status == 200 };
        (is_complete && !text.contains("\"error\""), answer)
    };
    for stream in [false, true] {
        assert!(ask(stream).await.0, "the engine is good");
    }
    let before = descriptors(&server);
    for conduct in [
        Conduct::Hangs,
        Conduct::HangsInTheMiddle,
        Conduct::Closes,
        Conduct::ClosesInTheMiddle,
        Conduct::SendsGarbage,
        Conduct::SendsAnotherStatus,
        Conduct::SendsByteByByte,
    ] {
        for stream in [false, true] {
            set(conduct);
            figure.count += 1;
            let is_hanging = matches!(conduct, Conduct::Hangs | Conduct::HangsInTheMiddle);
            let patience = Duration::from_secs(if is_hanging { 2 } else { 60 });
            let asked = tokio::time::timeout(patience, ask(stream)).await;
            match (conduct, asked) {
                // A client that does not wait any longer leaves, and so does the server.
                (Conduct::Hangs | Conduct::HangsInTheMiddle, Err(_)) => {}
                (Conduct::SendsByteByByte, Ok((is_complete, answer))) => {
                    assert!(is_complete, "{conduct:?}, streamed {stream}: {answer:?}");
                }
                (_, Ok((is_complete, answer))) => {
                    assert!(!is_complete, "{conduct:?}, streamed {stream}: looks complete: {answer:?}");
                }
                (_, Err(_)) => panic!("{conduct:?}, streamed {stream}: no answer"),
            }
            set(Conduct::Good);
            let recovered = async {
                // A host that failed often rests for a while.
                while !ask(stream).await.0 {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            let limit = Duration::from_secs(120);
            tokio::time::timeout(limit, recovered).await.expect("good answers after bad ones");
        }
    }
    let closed = async {
        while descriptors(&server) > before + 4 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let open = tokio::time::timeout(Duration::from_secs(120), closed).await;
    assert!(open.is_ok(), "{} descriptors are open, {before} were", descriptors(&server));
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
