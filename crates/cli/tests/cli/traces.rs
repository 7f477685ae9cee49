//! Traces as a collector sees them: from the header of a request through `hob serve` to the engine.

use hob_testkit::{FakeServer, Reply};
use serde_json::Value;

use crate::fakes;
use crate::home::{Home, NOWHERE, engines_config};
use crate::http;
use crate::running::Running;

const QUESTION: &str =
    r#"{"model":"smollm2","agent":"simple","messages":[{"role":"user","content":"Capital?"}]}"#;
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn home(engine: &str, collector: &str) -> Home {
    let config = engines_config(&[("ollama", engine)]);
    Home::with_config(&format!("{config}[telemetry]\notlp_endpoint = \"{collector}\"\n"))
}

async fn ask(server: &Running) -> String {
    let header = format!("connection: close\r\ntraceparent: 00-{TRACE}-00f067aa0ba902b7-01");
    http::chat_with(server.address(), &header, QUESTION).await.all().await
}

#[tokio::test]
async fn a_trace_goes_from_the_caller_through_hob_to_the_engine() {
    let (ollama, collector) = (fakes::ollama().await, FakeServer::replying(Reply::json(200, "{}")).await);
    let home = home(&ollama.url(), &collector.url());
    let server = Running::start(&home, &[]).await;
    assert!(ask(&server).await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.terminate().await.code, Some(0));

    let requests = collector.requests();
    let bodies = requests.iter().map(|request| serde_json::from_slice::<Value>(&request.body).expect("JSON"));
    let spans: Vec<Value> = bodies
        .flat_map(|body| {
            body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
        })
        .collect();
    let names: Vec<&str> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names, ["chat smollm2", "invoke_agent simple"], "sent before the end");
    assert!(spans.iter().all(|span| span["traceId"] == TRACE), "{spans:?}");
    assert_eq!(spans[1]["parentSpanId"], "00f067aa0ba902b7");

    let asked =
        ollama.requests().into_iter().find(|request| request.path == "/api/chat").expect("a question");
    let span = spans[0]["spanId"].as_str().expect("an id");
    assert_eq!(asked.header("traceparent"), Some(format!("00-{TRACE}-{span}-01").as_str()));
}

#[tokio::test]
async fn an_unreachable_collector_causes_one_log_line() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url(), NOWHERE);
    let server = Running::start(&home, &[]).await;
    for _ in 0..3 {
        assert!(ask(&server).await.starts_with("HTTP/1.1 200"));
    }
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stderr.matches("traces are dropped").count(), 1, "{}", ended.stderr);
}
