//! Traces of complete requests, as a collector receives them.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hob_agents::builtin::Calculator;
use hob_agents::{ToolSet, agent};
use hob_core::{
    AgentPreference, Caller, CallerRole, Engine, EventBus, GenerateRequest, KeyRing, Message, Permit, Reach,
    RequestSource, Role, Tool, TraceParent,
};
use hob_db::Database;
use hob_engines::{Endpoint, EndpointOptions, OpenAiCompat, Style};
use hob_keys::{AuditActor, KeyName, KeyOptions, KeyPatch, KeyRole, KeyService, NewKey, SqliteKeyStore};
use hob_telemetry::{NoInferenceLog, Recorder, TraceExporter};
use hob_testkit::{FakeServer, Recorded, Reply};
use serde_json::{Value, json};

use crate::ask::{AskService, AskServiceParts};

const SECRET: &str = "a question that is nobody's business";
const INCOMING: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A vLLM that calls the calculator once and then answers with the result.
fn vllm(request: &Recorded) -> Reply {
    let text = request.text();
    let message = match request.path.as_str() {
        "/v1/models" => return Reply::json(200, r#"{"data":[{"id":"m"}]}"#),
        _ if text.contains("\"stream\":true") => {
            return Reply::sse(
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n\
                 data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            );
        }
        _ if text.contains("\"tools\"") && !text.contains("\"role\":\"tool\"") => json!({
            "message": { "role": "assistant", "content": null, "tool_calls": [{
                "id": "c1", "type": "function",
                "function": { "name": "calculator", "arguments": "{\"expression\":\"17 * 23\"}" },
            }] },
            "finish_reason": "tool_calls",
        }),
        _ => json!({ "message": { "role": "assistant", "content": "It is 391." }, "finish_reason": "stop" }),
    };
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13 });
    Reply::json(200, json!({ "model": "m-q4", "choices": [message], "usage": usage }).to_string())
}

struct TestSetup {
    engine: FakeServer,
    collector: FakeServer,
    traces: TraceExporter,
    system: AskService,
}

impl TestSetup {
    async fn open() -> Self {
        Self::with(FakeServer::start(vllm).await, FakeServer::replying(Reply::json(200, "{}")).await)
    }

    fn with(engine: FakeServer, collector: FakeServer) -> Self {
        let traces = TraceExporter::open(Some(&collector.url()));
        let endpoint = Endpoint::new(EndpointOptions::new("vllm", engine.url())).unwrap();
        let answering: Arc<dyn Engine> = Arc::new(OpenAiCompat::new(Style::VLLM, endpoint));
        let system = AskService::new(AskServiceParts {
            engine: answering,
            default_model: None,
            agent: agent("orchestrator"),
            tools: ToolSet::new([Arc::new(Calculator) as Arc<dyn Tool>]).unwrap(),
            max_turns: 5,
            bus: EventBus::new(),
            log: Arc::new(NoInferenceLog),
        });
        let system = AskService { recorder: Arc::new(recorder(&traces)), ..system };
        TestSetup { engine, collector, traces, system }
    }

    /// The trace headers that the engine received, in the order of its requests.
    fn trace_headers(&self) -> Vec<Option<TraceParent>> {
        let asked = self.engine.requests().into_iter().filter(|request| request.method == "POST");
        asked.map(|request| TraceParent::parse(request.header("traceparent")?)).collect()
    }

    /// Everything that reached the collector.
    async fn close(self) -> Vec<Value> {
        self.traces.close().await;
        let requests = self.collector.requests();
        let bodies = requests.iter().map(|request| {
            assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
            assert_eq!(request.header("content-type"), Some("application/json"));
            assert!(!request.text().contains(SECRET), "{}", request.text());
            serde_json::from_slice::<Value>(&request.body).unwrap()
        });
        bodies
            .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone())
            .collect()
    }
}

fn recorder(traces: &TraceExporter) -> Recorder {
    Recorder { tracer: traces.tracer().clone(), ..Recorder::to(Arc::new(NoInferenceLog)) }
}

fn asking() -> GenerateRequest {
    GenerateRequest {
        model: "m".into(),
        messages: vec![Message::new(Role::User, SECRET)],
        ..GenerateRequest::default()
    }
}

fn caller(traceparent: &str) -> Caller {
    Caller {
        trace_parent: TraceParent::parse(traceparent),
        ..Caller::trusted(RequestSource::Server, "run-1")
    }
}

fn attributes(span: &Value) -> Vec<(String, String)> {
    let attributes = span["attributes"].as_array().unwrap().iter();
    attributes
        .map(|attribute| {
            let value = attribute["value"].as_object().unwrap().values().next().unwrap();
            let text =
                value.as_str().map_or_else(|| value["values"][0]["stringValue"].to_string(), str::to_owned);
            (attribute["key"].as_str().unwrap().to_owned(), text)
        })
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn a_trace_of_an_agent_has_its_engine_calls_and_tool_calls() {
    let setup = TestSetup::open().await;
    let caller = Caller { request_id: Some("req_7".into()), ..caller(INCOMING) };
    setup.system.complete(asking(), &caller).await.unwrap();
    let headers = setup.trace_headers();
    let spans = setup.close().await;

    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chat m", "execute_tool calculator", "chat m", "invoke_agent orchestrator"]);
    let request = &spans[3];
    assert_eq!((&request["parentSpanId"], &request["kind"]), (&json!("00f067aa0ba902b7"), &json!(2)));
    assert_eq!(request["status"], json!({}));
    assert!(attributes(request).contains(&("hob.request_id".to_owned(), "req_7".to_owned())));
    for span in &spans {
        assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
        assert!(time("startTimeUnixNano") > 0 && time("endTimeUnixNano") >= time("startTimeUnixNano"));
    }
    for part in &spans[..3] {
        assert_eq!(part["parentSpanId"], request["spanId"]);
    }
    assert_eq!(
        attributes(&spans[0]),
        pairs(&[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "vllm"),
            ("gen_ai.request.model", "m"),
            ("gen_ai.agent.name", "orchestrator"),
            ("gen_ai.response.model", "m-q4"),
            ("gen_ai.usage.input_tokens", "10"),
            ("gen_ai.usage.output_tokens", "3"),
            ("gen_ai.response.finish_reasons", "\"tool_calls\""),
        ])
    );
    assert_eq!(
        attributes(&spans[1]),
        pairs(&[
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "calculator"),
            ("gen_ai.tool.call.id", "c1"),
        ])
    );
    // The engine receives the id of the span that its work belongs to.
    let expected: Vec<Option<String>> =
        [&spans[0], &spans[2]].map(|span| Some(span["spanId"].as_str().unwrap().to_owned())).into();
    let received: Vec<Option<String>> =
        headers.iter().map(|header| Some(format!("{:016x}", header.as_ref()?.span))).collect();
    assert_eq!(received, expected);
}

#[tokio::test]
async fn the_spans_of_a_request_name_its_key() {
    let setup = TestSetup::open().await;
    let store = SqliteKeyStore::new(Database::in_memory(&[hob_keys::MIGRATIONS]).unwrap());
    let keys = Arc::new(KeyService::new(KeyOptions::new(Arc::new(store))));
    let new =
        NewKey { name: KeyName::parse("ana").unwrap(), role: KeyRole::Member, rules: KeyPatch::default() };
    keys.create(new, AuditActor::terminal()).await.unwrap();
    let TestSetup { engine, collector, traces, system } = setup;
    let setup = TestSetup { engine, collector, traces, system: system.with_keys(keys as Arc<dyn KeyRing>) };
    let permit = Permit { key: Some("ana".into()), ..Permit::up_to(Reach::Pure) };
    let caller = Caller { agent: AgentPreference::None, permit, role: CallerRole::Member, ..caller("") };
    setup.system.complete(asking(), &caller).await.unwrap();
    let spans = setup.close().await;
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chat m", "server request"]);
    for span in &spans {
        assert!(attributes(span).contains(&("hob.key".to_owned(), "ana".to_owned())), "{span}");
    }
}

#[tokio::test]
async fn a_stream_ends_its_spans_and_a_dropped_stream_is_cancelled() {
    let setup = TestSetup::open().await;
    let whole = setup.system.stream(asking(), &caller("")).await.unwrap();
    assert!(whole.deltas.all(|delta| async move { delta.is_ok() }).await);
    let left = setup.system.stream(asking(), &caller("")).await.unwrap();
    drop(left);
    let spans = setup.close().await;
    let endings: Vec<_> =
        spans.iter().map(|span| (span["name"].as_str().unwrap(), span["status"]["code"].as_u64())).collect();
    assert_eq!(
        endings,
        [("chat m", None), ("server request", None), ("chat m", Some(2)), ("server request", Some(2)),]
    );
    assert!(attributes(&spans[3]).contains(&("error.type".to_owned(), "cancelled".to_owned())));
    assert_ne!(spans[0]["traceId"], spans[2]["traceId"], "a trace each");
    assert_eq!(spans[0]["parentSpanId"], spans[1]["spanId"]);
    assert_eq!(spans[1].get("parentSpanId"), None);
}

#[tokio::test]
async fn a_span_has_the_error_type_but_not_the_engines_message() {
    let engine = FakeServer::start(|request| match request.path.as_str() {
        "/v1/models" => Reply::json(200, r#"{"data":[{"id":"m"}]}"#),
        _ => Reply::json(400, json!({ "error": { "message": SECRET } }).to_string()),
    })
    .await;
    let setup = TestSetup::with(engine, FakeServer::replying(Reply::json(200, "{}")).await);
    let unknown = GenerateRequest { model: "nobody".into(), ..asking() };
    let direct = Caller { agent: AgentPreference::None, ..caller("") };
    assert!(setup.system.complete(asking(), &direct).await.is_err());
    assert!(setup.system.complete(unknown, &direct).await.is_err());
    let spans = setup.close().await;
    let kinds: Vec<_> = spans.iter().map(|span| attributes(span).pop().unwrap()).collect();
    let kind = |word: &str| ("error.type".to_owned(), word.to_owned());
    // The span of the engine call has its tokens after its error.
    assert_eq!(kinds[1..], [kind("400"), kind("model_not_found")]);
    assert!(attributes(&spans[0]).contains(&kind("400")));
}

#[tokio::test]
async fn long_names_are_shortened_in_spans() {
    let setup = TestSetup::open().await;
    let unknown = GenerateRequest { model: "x".repeat(1 << 20), ..asking() };
    assert!(setup.system.complete(unknown, &caller("")).await.is_err());
    let spans = setup.close().await;
    assert_eq!(spans.len(), 1);
    assert!(spans[0].to_string().len() < 2_000);
}

#[tokio::test]
async fn an_unsampled_trace_is_passed_on_and_not_exported() {
    let setup = TestSetup::open().await;
    setup.system.complete(asking(), &caller(&INCOMING.replace("-01", "-00"))).await.unwrap();
    let headers = setup.trace_headers();
    assert_eq!(headers.len(), 2);
    for header in headers.into_iter().flatten() {
        assert_eq!((header.trace, header.sampled), (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, false));
    }
    assert_eq!(setup.close().await, Vec::<Value>::new());
}

#[tokio::test]
async fn an_unreachable_collector_loses_spans_but_no_answer() {
    let collector = FakeServer::replying(Reply::json(503, "{}")).await;
    let setup = TestSetup::with(FakeServer::start(vllm).await, collector);
    assert!(setup.system.complete(asking(), &caller("")).await.is_ok());
    let tracer = setup.traces.tracer().clone();
    setup.close().await;
    assert_eq!(tracer.dropped(), 4);
}

#[tokio::test]
async fn a_hanging_collector_does_not_delay_shutdown() {
    let setup = TestSetup::with(FakeServer::start(vllm).await, FakeServer::replying(Reply::silence()).await);
    assert!(setup.system.complete(asking(), &caller("")).await.is_ok());
    let closed = tokio::time::timeout(Duration::from_secs(8), setup.close()).await;
    assert!(closed.is_ok(), "well before the collector's own time is up");
}

#[tokio::test]
async fn without_a_collector_there_are_no_spans_and_no_trace_headers() {
    let setup = TestSetup::open().await;
    let silent = TraceExporter::open(None);
    let system = AskService { recorder: Arc::new(recorder(&silent)), ..setup.system };
    let setup = TestSetup { system, ..setup };
    setup.system.complete(asking(), &caller(INCOMING)).await.unwrap();
    assert_eq!(setup.trace_headers(), [None, None]);
    assert_eq!(setup.close().await, Vec::<Value>::new());
}
