//! The first steps on a new machine: an engine, a model, a question, a document.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_app::startup::memory::{MemoryWiring, open_memory};
use hob_app::startup::telemetry::telemetry_options;
use hob_app::{AskService, AskServiceParts, Databases, ModelManagement, hob_database};
use hob_config::Config;
use hob_core::{CollectionName, Engine};
use hob_engines::pool::EnginePool;
use hob_engines::{Endpoint, EndpointOptions, Ollama};
use hob_memory::{IndexRequest, MemoryBackend, MemoryService};
use hob_server::ServerParts;
use hob_telemetry::TelemetryService;
use hob_testkit::{FakeServer, Reply};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::axe::{assert_accessible, assert_accessible_on_all_screens};
use super::chromium::{Browser, Device};
use crate::admin::embedded_engine::{EngineServer, engine_inside, engine_that_is_away, offered};
use crate::admin::savings::call;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, plain_parts};

const PROGRESS: &str = "{\"status\":\"pulling manifest\"}\n\
    {\"status\":\"pulling abc\",\"digest\":\"sha256:abc\",\"total\":10,\"completed\":4}\n\
    {\"status\":\"success\"}\n";

/// A machine with an Ollama that has no model until one is pulled.
struct NewMachine {
    _home: TempDir,
    record: TelemetryService,
    memory: Arc<MemoryService>,
    http: TestServer,
    _ollama: FakeServer,
}

impl NewMachine {
    async fn start(download: &'static str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let has_model = AtomicBool::new(false);
        let ollama = FakeServer::start(move |request| match request.path.as_str() {
            "/api/tags" if has_model.load(Ordering::Relaxed) => Reply::transcript("ollama/tags"),
            "/api/tags" => Reply::json(200, r#"{"models":[]}"#),
            "/api/pull" => {
                has_model.store(download.contains("success"), Ordering::Relaxed);
                Reply::ndjson(download)
            }
            _ => Reply::new(200, "text/plain", ""),
        })
        .await;
        let mut config = Config::default();
        config.engine.ollama.host = ollama.url();
        let engine: Arc<dyn Engine> =
            Arc::new(Ollama::new(Endpoint::new(EndpointOptions::new("ollama", ollama.url())).unwrap()));
        let pool = Arc::new(EnginePool::new(Arc::clone(&engine), Vec::new()));
        let models = ModelManagement::open(&config, home.path(), Arc::clone(&pool)).unwrap();
        let record = TelemetryService::open(&telemetry_options(&config), hob_database(home.path()));
        let databases = Databases::in_files(home.path());
        let memory = open_memory(&config, home.path(), databases.memory, MemoryWiring::default()).unwrap();
        let system =
            AskService::new(AskServiceParts { log: Arc::new(record.clone()), ..plain_parts(engine) });
        let system = Arc::new(system.with_pool(pool).with_memory(Arc::clone(&memory)));
        let parts = ServerParts {
            model_management: Some(Arc::new(models)),
            record: record.clone(),
            ..ServerParts::from(system)
        };
        let http = TestServer::start_parts(parts, loopback_config()).await;
        NewMachine { _home: home, record, memory, http, _ollama: ollama }
    }

    async fn index_a_document(&self) {
        let documents = tempfile::tempdir().unwrap();
        let path = documents.path().join("gate.md");
        std::fs::write(&path, "The code of the gate is 1111.").unwrap();
        let request = IndexRequest {
            backend: Some(MemoryBackend::Sqlite),
            collection: CollectionName::parse("default").unwrap(),
            listener: Arc::new(|_| {}),
            stop: CancellationToken::new(),
        };
        self.memory.index_with(&path, request).await.unwrap();
    }
}

/// The page knows that an engine answers.
const READY: &str = "document.getElementById('connection-text').textContent === 'ready'";

/// Chooses a model for the embedded engine, if the page still asks for it.
async fn choose(browser: &Browser, model: &str) {
    let choose = "const models = document.getElementById('first-model');
        if (!models) return;
        models.value = {model};
        models.dispatchEvent(new Event('change'));
        document.getElementById('first-engine').click();";
    browser.run(&choose.replace("{model}", &json!(model).to_string())).await;
}

/// The titles of the steps that are done.
async fn done(browser: &Browser) -> serde_json::Value {
    browser.run("return [...document.querySelectorAll('#first-run .done h3')].map((title) => title.firstChild.textContent)").await
}

#[tokio::test]
async fn three_steps_lead_to_the_first_document_and_then_are_gone() {
    let machine = NewMachine::start(PROGRESS).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&machine.http.url("/")).await;
    browser.shows("first-run", "Get a model").await;
    assert_eq!(done(&browser).await, json!([]));
    assert_accessible_on_all_screens(&browser).await;

    browser.click("#first-pull").await;
    browser.until("document.querySelectorAll('#first-run .done').length === 1").await;
    assert_eq!(done(&browser).await, json!(["Get a model"]));

    machine.record.store().unwrap().record_batch(&[call(None, None)], machine.record.prices()).unwrap();
    browser.reload().await;
    browser.until("document.querySelectorAll('#first-run .done').length === 2").await;
    assert_eq!(done(&browser).await, json!(["Get a model", "Ask the first question"]));
    let link = browser.run("return document.querySelector('#first-run a').getAttribute('href')").await;
    assert_eq!(link, "documents");

    machine.index_a_document().await;
    browser.reload().await;
    browser.until("document.getElementById('first-run').dataset.known === 'true'").await;
    assert_eq!(browser.text("first-run").await, "");
}

#[tokio::test]
async fn a_download_that_fails_says_why_and_can_be_repeated() {
    let failing = "{\"status\":\"pulling manifest\"}\n{\"error\":\"the disk is full\"}\n";
    let machine = NewMachine::start(failing).await;
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&machine.http.url("/")).await;
    browser.shows("first-run", "Get a model").await;
    browser.click("#first-pull").await;
    browser.shows("first-note", "the disk is full").await;
    browser.shows("first-pull", "Download").await;
    assert_eq!(done(&browser).await, json!([]));
}

#[tokio::test]
async fn a_model_that_arrives_during_the_first_look_is_noticed() {
    const LISTS: &str =
        "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/v1/models')).length";
    let machine = NewMachine::start(PROGRESS).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.hold_requests_of_next_page("v1/savings").await;
    browser.go(&machine.http.url("/")).await;
    // The look has the models, and waits for the calls.
    browser.until(&format!("firstRun.turn > 0 && liveStream.isOpen && {LISTS} >= 2")).await;
    let pulled = json!({ "model": "qwen3:0.6b", "stream": false });
    let request = machine.http.client.post(machine.http.url("/api/pull")).json(&pulled);
    assert_eq!(request.send().await.unwrap().status(), 200);
    // The page has heard of it, and asks for the models again.
    browser.until(&format!("{LISTS} >= 3")).await;
    browser.release_requests().await;
    browser.until("document.querySelectorAll('#first-run .done').length === 1").await;
    assert_eq!(done(&browser).await, json!(["Get a model"]));
}

#[tokio::test]
async fn the_steps_stay_away_once_they_are_hidden() {
    let machine = NewMachine::start(PROGRESS).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&machine.http.url("/")).await;
    browser.shows("first-run", "Get a model").await;
    browser.click("#first-dismiss").await;
    assert_eq!(browser.text("first-run").await, "");
    browser.reload().await;
    browser.until("document.getElementById('connection').dataset.state === 'good'").await;
    assert_eq!(browser.text("first-run").await, "");
}

/// A look at the server that begins now, and gets its last answer when the test calls `endLook`.
const SLOW_LOOK: &str = "
    const ask = askServer;
    window.askServer = (path, options) => {
        if (path !== 'v1/savings' || window.endLook) return ask(path, options);
        return new Promise((done) => { window.endLook = () => ask(path, options).then(done); });
    };
    lookAtFirstRun().then(() => { window.hasEnded = true; });";

#[tokio::test]
async fn without_an_engine_the_first_step_is_to_get_one() {
    let away = engine_that_is_away();
    let server = EngineServer::start(Arc::clone(&away) as _, offered(&engine_inside())).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/")).await;
    browser.shows("first-run", "Get an engine").await;
    browser.shows("first-engine", "Use the embedded engine").await;
    assert_accessible_on_all_screens(&browser).await;
    browser.run(SLOW_LOOK).await;
    browser.until("window.endLook !== undefined").await;
    // The engine starts.
    away.set_gone(false);
    browser.until(READY).await;
    let has_engine = "!document.getElementById('first-run').textContent.includes('Get an engine')";
    browser.until(has_engine).await;
    browser.shows("first-run", "Ask the first question").await;
    browser.run("window.endLook()").await;
    browser.until("window.hasEnded").await;
    assert_eq!(browser.run(&format!("return {has_engine}")).await, json!(true), "an old answer is not shown");
}

async fn use_the_embedded_engine_on(device: Device) {
    let inside = engine_inside();
    let server = EngineServer::start(engine_that_is_away(), offered(&inside)).await;
    inside.set_load_failure(Some("it needs 9.0 GB of memory, but the limit for models is 4.0 GB."));
    let browser = Browser::open(device).await;
    browser.go(&server.http.url("/")).await;
    browser.shows("first-engine", "Use the embedded engine").await;
    let choices = browser
        .run("return [...document.getElementById('first-model').options].map(({ value }) => value)")
        .await;
    assert_eq!(choices, json!(["tiny", "small", "qwen3:0.6b"]));
    choose(&browser, "small").await;
    browser.shows("first-note", "'small' cannot be loaded: it needs 9.0 GB of memory").await;
    assert_eq!(server.settings(), "");
    assert_accessible(&browser, "an engine that cannot be used").await;
    browser.assert_fits_the_screen("with a failure").await;

    inside.set_load_failure(None);
    browser.click("#first-engine").await;
    browser.until(READY).await;
    browser.until("document.querySelectorAll('#first-run .done').length === 1").await;
    assert_eq!(done(&browser).await, json!(["Get a model"]));
    assert_eq!(browser.text("notice").await, "");
    assert!(server.settings().contains("default = \"embedded\""), "{}", server.settings());
    browser.run("document.getElementById('question').focus()").await;
    browser.press("Hello\u{e007}").await;
    browser.shows("thread", "from inside").await;
    assert_eq!(inside.requests().pop().unwrap().model, "small");
}

#[tokio::test]
async fn the_embedded_engine_answers_the_first_question_without_a_restart() {
    use_the_embedded_engine_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn the_embedded_engine_answers_the_first_question_without_a_restart_on_a_phone() {
    use_the_embedded_engine_on(Device::PHONE).await;
}

#[tokio::test]
async fn two_tabs_that_choose_the_embedded_engine_both_continue() {
    let server = EngineServer::start(engine_that_is_away(), offered(&engine_inside())).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/")).await;
    browser.shows("first-engine", "Use the embedded engine").await;
    let first = browser.open_tab().await;
    browser.bring_to_front().await;
    browser.go(&server.http.url("/")).await;
    browser.shows("first-engine", "Use the embedded engine").await;
    choose(&browser, "small").await;
    let second = browser.turn_to(first).await;
    // This tab has not heard of it, because it was hidden.
    choose(&browser, "tiny").await;
    browser.bring_to_front().await;
    browser.until(READY).await;
    browser.until("document.querySelectorAll('#first-run .done').length === 1").await;
    browser.turn_to(second).await;
    browser.bring_to_front().await;
    browser.until(READY).await;
    // The page asks for the steps after the connection is ready.
    browser.until("!document.getElementById('first-run').textContent.includes('Get an engine')").await;
}

#[tokio::test]
async fn a_build_without_the_embedded_engine_says_so() {
    let server = EngineServer::start(engine_that_is_away(), None).await;
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&server.http.url("/")).await;
    browser.shows("first-problem", "built without the embedded engine").await;
    assert_eq!(browser.text("first-engine").await, "");
    assert_accessible(&browser, "no embedded engine").await;
}

#[tokio::test]
async fn on_a_machine_that_was_used_before_an_engine_that_is_away_brings_no_first_steps() {
    let server = EngineServer::start(engine_that_is_away(), offered(&engine_inside())).await;
    let record = &server.record;
    record.store().unwrap().record_batch(&[call(None, None)], record.prices()).unwrap();
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/")).await;
    browser.shows("notice", "No engine answers.").await;
    browser.until("document.getElementById('first-run').dataset.known === 'false'").await;
    assert_eq!(browser.text("first-run").await, "");
}
