//! Random bodies from the API description. A body that fits its schema is refused only for a reason that the description names,
//! and every status is one that it lists.

mod schema_values;

use std::cell::Cell;
use std::sync::Arc;

use hob_channels::ChannelStatus;
use hob_testkit::ScriptedEngine;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::schema_values::{UNLISTED, odd_value, values};
use super::{channels, memory, tasks};
use crate::admin::openapi::document_of;
use crate::fixtures::loopback_config;
use crate::responses::StoringServer;
use crate::support::TestServer;

/// Enough to generate every field of a schema a few times, within a few seconds.
const CASES: u32 = 96;
/// How many bodies must be accepted: most, except for unknown names, self-referencing schemas and missing vectors.
const AT_LEAST_HALF: u32 = CASES / 2;
/// A stranger may send no address, no field of a part that is not listed, and no name of documents.
const AT_LEAST_A_QUARTER: u32 = CASES / 4;
const AT_LEAST_NONE: u32 = 0;

/// One path of the server.
struct Route<'a> {
    server: &'a TestServer,
    runtime: &'a Runtime,
    document: &'a Value,
    path: &'static str,
    /// Who asks: the owner, or a stranger.
    is_strangers: bool,
}

impl Route<'_> {
    /// The same for a caller without rights.
    fn for_stranger(&self) -> Self {
        Route { is_strangers: true, ..*self }
    }

    fn operation(&self) -> &Value {
        &self.document["paths"][self.path]["post"]
    }

    fn schema(&self) -> &Value {
        &self.operation()["requestBody"]["content"]["application/json"]["schema"]
    }

    fn post(&self, body: &Value) -> (u16, Value) {
        self.runtime.block_on(async {
            let request = self.server.client.post(self.server.url(self.path)).json(body);
            let request = match self.is_strangers {
                true => request.header("x-forwarded-for", "203.0.113.7"),
                false => request,
            };
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            let text = response.text().await.unwrap();
            // Of a stream, only the status is checked.
            (status, serde_json::from_str(&text).unwrap_or_default())
        })
    }

    fn is_listed(&self, status: u16) -> bool {
        self.operation()["responses"].get(status.to_string()).is_some()
    }

    /// Whether the document says that such a body may be refused although it fits its schema.
    fn names(&self, answer: &Value) -> bool {
        let reasons = self.operation()["x-also-refused"].as_array().map_or(&[][..], Vec::as_slice);
        match &answer["error"] {
            // The errors of some APIs have only a sentence.
            Value::String(sentence) => {
                let sentence = without_indices(sentence);
                reasons.iter().any(|reason| sentence.contains(reason["param"].as_str().unwrap()))
            }
            _ => {
                let param = without_indices(&param(answer));
                reasons.iter().any(|reason| is_meant(reason["param"].as_str().unwrap(), &param))
            }
        }
    }

    /// Bodies that fit the schema. `prepare` adds what the document cannot know, such as the name of a model.
    fn good(&self, prepare: fn(&mut Value)) -> impl Strategy<Value = Value> + use<> {
        let root = json!({ "$ref": self.schema()["$ref"], "components": self.document["components"] });
        let validator = jsonschema::draft202012::new(&root).unwrap();
        let bodies = values(self.document, self.schema(), 0).prop_map(move |mut body| {
            prepare(&mut body);
            body
        });
        bodies.prop_filter("a body that fits", move |body| validator.is_valid(body))
    }

    /// Sends bodies that fit the schema and checks the answers. At least this many must be accepted, or the test would show little.
    fn check_good(&self, prepare: fn(&mut Value), at_least: u32) {
        let accepted = Cell::new(0);
        run(&self.good(prepare), |body| {
            let (status, answer) = self.post(&body);
            prop_assert!(
                self.is_listed(status),
                "{status} is not listed for {}: {answer} for {body}",
                self.path
            );
            prop_assert!(status != 500, "{answer} for {body}");
            prop_assert!(status != 400 || self.names(&answer), "{}: {answer} for {body}", self.path);
            accepted.set(accepted.get() + u32::from(status < 300));
            Ok(())
        });
        assert!(accepted.get() >= at_least, "{}: only {} were accepted", self.path, accepted.get());
    }

    /// Sends bodies with one value replaced, and checks the answers.
    fn check_changed(&self, prepare: fn(&mut Value)) {
        let changed = (self.good(prepare), any::<prop::sample::Index>(), odd_value());
        run(&changed, |(mut body, at, odd)| {
            let count = positions(&body).len();
            let position = positions(&body)[at.index(count)].clone();
            *body.pointer_mut(&position).unwrap() = odd;
            let (status, answer) = self.post(&body);
            prop_assert!(
                self.is_listed(status),
                "{status} is not listed for {}: {answer} for {body}",
                self.path
            );
            prop_assert!(status != 500, "{answer} for {body}");
            Ok(())
        });
    }
}

fn run<S: Strategy>(strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config =
        Config { cases: CASES, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    if let Err(error) = TestRunner::new(config).run(strategy, test) {
        panic!("{error}");
    }
}

/// The field that an error names. Anthropic's errors begin with it, because they have no place of its own for it.
fn param(answer: &Value) -> String {
    let error = &answer["error"];
    let named = error["param"].as_str();
    let begins_with = || error["message"].as_str()?.split([':', ' ']).next();
    named.or_else(begins_with).unwrap_or_default().to_owned()
}

/// Whether the document names this field. A `*` at the end stands for every field below that no schema lists.
fn is_meant(named: &str, param: &str) -> bool {
    match named.strip_suffix('*') {
        Some(above) => {
            param.strip_prefix(above).is_some_and(|below| below.rsplit('.').next() == Some(UNLISTED))
        }
        None => named == param,
    }
}

/// `messages[3].name` → `messages[].name`.
fn without_indices(param: &str) -> String {
    let mut digits = false;
    let keep = |c: &char| {
        digits = *c == '[' || (digits && c.is_ascii_digit());
        !(digits && c.is_ascii_digit())
    };
    param.chars().filter(keep).collect()
}

/// The paths of all values of a body, including the body itself.
fn positions(value: &Value) -> Vec<String> {
    let mut positions = vec![String::new()];
    let mut below = |name: &str, value: &Value| {
        positions.extend(positions_below(name, value));
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| below(&at.to_string(), item)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| below(name, field)),
        _ => {}
    }
    positions
}

fn positions_below(name: &str, value: &Value) -> impl Iterator<Item = String> {
    let name = name.replace('~', "~0").replace('/', "~1");
    positions(value).into_iter().map(move |rest| format!("/{name}{rest}"))
}

fn set(body: &mut Value, field: &str, value: Value) {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

fn as_it_is(_: &mut Value) {}

/// Sets the only available model.
fn ask_the_model(body: &mut Value) {
    set(body, "model", json!("m"));
}

/// The same, without what the document says may be refused: unknown names of agents, tools and functions.
fn ask_plainly(body: &mut Value) {
    ask_the_model(body);
    for field in ["agent", "tool_choice", "functions", "function_call"] {
        set(body, field, Value::Null);
    }
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        if message["role"] == "function" {
            set(message, "role", json!("tool"));
        }
    }
}

/// Starts a server with `start` and checks one of its routes. The result of `start` lives until the check has ended.
fn check_route<S: AsRef<TestServer>>(
    path: &'static str,
    start: impl Future<Output = S>,
    check: impl FnOnce(&Route<'_>),
) {
    let runtime = Runtime::new().unwrap();
    let started = runtime.block_on(start);
    let server = started.as_ref();
    let document = runtime.block_on(document_of(server));
    check(&Route { server, runtime: &runtime, document: &document, path, is_strangers: false });
}

async fn server_with_channels() -> channels::ChannelServer {
    channels::server(ChannelStatus::Connected, loopback_config()).await
}

#[test]
fn a_chat_request_that_fits_the_document_is_answered() {
    let start = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"])));
    check_route("/v1/chat/completions", start, |route| {
        route.check_good(ask_plainly, AT_LEAST_HALF);
        route.check_good(ask_the_model, AT_LEAST_NONE);
        route.check_changed(ask_the_model);
        route.for_stranger().check_good(ask_plainly, AT_LEAST_A_QUARTER);
        route.for_stranger().check_changed(ask_the_model);
    });
}

/// Puts in the one model there is, and takes out what names something that is nowhere: agents, tools, calls and stored things.
fn ask_for_a_response(body: &mut Value) {
    ask_the_model(body);
    for field in ["agent", "tool_choice", "previous_response_id", "conversation", "background"] {
        set(body, field, Value::Null);
    }
    if let Some(items) = body["input"].as_array_mut() {
        items.retain(|item| item["call_id"].is_null() && item["type"] != "item_reference");
        items.push(json!({ "role": "user", "content": "hi" }));
    }
}

#[test]
fn a_response_that_fits_the_document_is_created() {
    check_route("/v1/responses", StoringServer::saying(&["Hel", "lo"]), |route| {
        route.check_good(ask_for_a_response, AT_LEAST_HALF);
        route.check_good(ask_the_model, AT_LEAST_NONE);
        route.check_changed(ask_the_model);
    });
}

#[test]
fn a_conversation_that_fits_the_document_is_begun() {
    check_route("/v1/conversations", StoringServer::saying(&["hi"]), |route| {
        route.check_good(as_it_is, AT_LEAST_HALF);
        route.check_changed(as_it_is);
    });
}

#[test]
fn a_request_of_anthropics_api_that_fits_the_document_is_answered() {
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let start = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"])));
        check_route(path, start, |route| {
            route.check_good(ask_plainly, AT_LEAST_HALF);
            route.check_good(ask_the_model, AT_LEAST_NONE);
            route.check_changed(ask_the_model);
            route.for_stranger().check_good(ask_plainly, AT_LEAST_A_QUARTER);
            route.for_stranger().check_changed(ask_the_model);
        });
    }
}

#[test]
fn a_request_for_embeddings_that_fits_the_document_is_answered() {
    let engine = ScriptedEngine::saying(&["hi"]).with_embedding_models(&["e"]);
    check_route("/v1/embeddings", TestServer::start(Arc::new(engine)), |route| {
        let ask = |body: &mut Value| set(body, "model", json!("e"));
        route.check_good(ask, CASES);
        route.check_changed(ask);
    });
}

#[test]
fn a_text_that_fits_the_document_is_continued() {
    // Answers that are too many, or fewer than are asked for, are not the document's to tell.
    let plainly = |body: &mut Value| {
        ask_the_model(body);
        for field in ["n", "best_of"] {
            set(body, field, Value::Null);
        }
    };
    let start = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"])));
    check_route("/v1/completions", start, |route| {
        route.check_good(plainly, AT_LEAST_HALF);
        route.check_good(ask_the_model, AT_LEAST_NONE);
        route.check_changed(ask_the_model);
    });
}

#[test]
fn documents_that_fit_the_document_are_put_in_order() {
    let engine = ScriptedEngine::saying(&["hi"]).with_rerank();
    check_route("/v1/rerank", TestServer::start(Arc::new(engine)), |route| {
        route.check_good(ask_the_model, CASES);
        route.check_changed(ask_the_model);
    });
}

#[test]
fn a_text_that_fits_the_document_is_split_and_joined() {
    let start = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"])));
    check_route("/tokenize", start, |route| {
        route.check_good(ask_the_model, AT_LEAST_HALF);
        route.check_changed(ask_the_model);
    });
    let start = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"])));
    check_route("/detokenize", start, |route| {
        route.check_good(ask_the_model, CASES);
        route.check_changed(ask_the_model);
    });
}

#[test]
fn a_message_that_fits_the_document_is_sent() {
    check_route("/v1/channels/send", server_with_channels(), |route| {
        route.check_good(as_it_is, CASES);
        route.check_changed(as_it_is);
    });
}

#[test]
fn a_search_that_fits_the_document_is_answered() {
    let start = memory::memory_server(Some("# Garden gate\n\nThe code is 4711."));
    check_route("/v1/memory/search", start, |route| {
        route.check_good(as_it_is, AT_LEAST_HALF);
        route.check_changed(as_it_is);
    });
}

#[test]
fn a_task_that_fits_the_document_is_created_if_its_schedule_is_valid() {
    // The document cannot list the names of agents, tools, channels and time zones.
    let plan = |body: &mut Value| {
        set(body, "schedule_type", json!("cron"));
        set(body, "schedule_value", json!("@daily"));
        for field in ["agent", "tools", "first_calls", "channel", "conversation_id", "timezone", "key"] {
            set(body, field, Value::Null);
        }
    };
    check_route("/v1/tasks", tasks::TaskServer::open(), |route| {
        route.check_good(plan, CASES);
        route.check_good(as_it_is, AT_LEAST_NONE);
        route.check_changed(plan);
    });
}

#[test]
fn a_rating_that_fits_the_document_is_refused_only_for_the_missing_answer() {
    check_route("/v1/feedback", server_with_channels(), |route| {
        run(&route.good(as_it_is), |body| {
            let (status, answer) = route.post(&body);
            prop_assert!([200, 404].contains(&status), "{answer} for {body}");
            Ok(())
        });
        route.check_changed(as_it_is);
    });
}

#[test]
fn a_chat_of_an_ollama_client_that_fits_the_document_is_answered() {
    let start = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"])));
    check_route("/api/chat", start, |route| {
        let plainly = |body: &mut Value| {
            ask_the_model(body);
            set(body, "agent", Value::Null);
        };
        route.check_good(plainly, AT_LEAST_HALF);
        route.check_good(ask_the_model, AT_LEAST_NONE);
        route.check_changed(ask_the_model);
    });
}

#[test]
fn a_prompt_of_an_ollama_client_that_fits_the_document_is_answered() {
    let start = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"])));
    check_route("/api/generate", start, |route| {
        let plainly = |body: &mut Value| {
            ask_the_model(body);
            for field in ["agent", "raw", "suffix", "template"] {
                set(body, field, Value::Null);
            }
        };
        route.check_good(plainly, AT_LEAST_HALF);
        route.check_good(ask_the_model, AT_LEAST_NONE);
        route.check_changed(ask_the_model);
    });
}

#[test]
fn texts_of_an_ollama_client_that_fit_the_document_become_vectors() {
    for path in ["/api/embed", "/api/embeddings"] {
        let engine = ScriptedEngine::saying(&["hi"]).with_embedding_models(&["e"]);
        check_route(path, TestServer::start(Arc::new(engine)), |route| {
            let ask = |body: &mut Value| set(body, "model", json!("e"));
            route.check_good(ask, CASES);
            route.check_changed(ask);
        });
    }
}
