//! The server between a client and three engines, on a simulated network that loses, delays and cuts. The engines and the server crash
//! and start again.
//!
//! One seed decides everything that happens, so a failure can be repeated: `HOB_SIM_SEED=7 ./dev test --simulation`.

#![cfg(simulation)]

#[path = "../../../engines/tests/simulation/engine.rs"]
mod engine;
#[path = "../../../engines/tests/simulation/ledger.rs"]
mod ledger;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use futures::StreamExt;
use futures::future::join_all;
use hob_agents::ToolSet;
use hob_app::{AskService, AskServiceParts};
use hob_config::ServerConfig;
use hob_core::{Backoff, Delta, Engine, EventBus, GenerateRequest, Message, Role};
use hob_engines::multi_host::BreakerOptions;
use hob_engines::{Endpoint, EndpointOptions, MultiHost, MultiHostOptions, OpenAiCompat, Resend, Style};
use hob_net::install_crypto;
use hob_server::Server;
use hob_telemetry::NoInferenceLog;
use hob_testkit::Dice;
use hob_testkit::simulation::{CALLER, SimulatedFaults, for_each_seed, simulation};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::engine::{PORT, SimulatedEngine, pieces};
use crate::ledger::Ledger;

const CLIENT: &str = "client";
const SERVER_PORT: u16 = 8080;
const ENGINES: usize = 3;

/// Questions while there are faults, questions afterwards, and questions that the server answers while it stops.
const QUESTIONS: u64 = 24;
const CALM_QUESTIONS: usize = 40;
const LAST_QUESTIONS: usize = 6;

/// The questions at once while there are faults.
const WORKERS: u64 = 3;

/// The questions that the server works on at once. A slot that does not return is missed by the later questions.
const SLOTS: usize = 8;

/// How long the client waits for the next bytes: longer than the server needs with every engine at its slowest.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time that a question may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than an idle connection is kept, than a breaker stays open, and than the server waits for a client.
const REST: Duration = Duration::from_secs(6);

/// Long enough for a question to reach the server, and shorter than most answers.
const UNTIL_ARRIVED: Duration = Duration::from_millis(200);

/// What the machines of a simulation share.
#[derive(Clone, Default)]
struct Course {
    ledger: Ledger,
    shutdown: CancellationToken,
    /// The answers that the server cut off; `None` until it has stopped.
    cut: Rc<Cell<Option<usize>>>,
}

fn endpoint(name: &str, port: u16, resend: Resend) -> EndpointOptions {
    EndpointOptions { resend, ..EndpointOptions::new("vllm", format!("http://{name}:{port}")) }
}

fn compatible(options: EndpointOptions) -> Arc<dyn Engine> {
    Arc::new(OpenAiCompat::new(Style::VLLM, Endpoint::new(options).expect("an endpoint")))
}

/// Three servers as one engine.
fn engines(resend: Resend) -> Arc<dyn Engine> {
    let host = |number: usize| {
        compatible(EndpointOptions {
            timeout: Duration::from_secs(2),
            ..endpoint(&format!("engine-{number}"), PORT, resend)
        })
    };
    let pauses = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(1) };
    let options = MultiHostOptions {
        resend,
        breaker: BreakerOptions { pauses, ..BreakerOptions::default() },
        health_check_after: Duration::from_millis(500),
    };
    MultiHost::of((0..ENGINES).map(host).collect(), options).expect("hosts")
}

/// Hob on its machine, until it is asked to stop.
async fn serve(resend: Resend, course: Course) -> turmoil::Result {
    let parts = AskServiceParts {
        engine: engines(resend),
        default_model: None,
        agent: None,
        tools: ToolSet::default(),
        max_turns: 10,
        bus: EventBus::new(),
        log: Arc::new(NoInferenceLog),
    };
    let config = ServerConfig {
        host: "0.0.0.0".to_owned(),
        port: SERVER_PORT,
        api_key: Some("key".to_owned().into()),
        allowed_hosts: vec![CALLER.to_owned()],
        max_in_flight: SLOTS,
        max_waiting: 100,
        header_timeout: Duration::from_secs(4),
        body_timeout: Duration::from_secs(2),
        write_timeout: Duration::from_secs(2),
        shutdown_grace: REST / 2,
        ..ServerConfig::default()
    };
    let server = Server::bind(Arc::new(AskService::new(parts)), &config).await?;
    let stopped = server.run(course.shutdown.clone()).await;
    course.cut.set(Some(stopped.cut));
    Ok(())
}

/// Whether the client leaves before the answer ends.
fn leaves(question: u64) -> bool {
    question.is_multiple_of(14)
}

fn stays(first: u64, count: usize) -> impl Iterator<Item = u64> {
    (first..).filter(|question| !leaves(*question)).take(count)
}

/// Asks the server a question, and checks the answer. Whether it is complete.
async fn ask(hob: &dyn Engine, question: u64) -> bool {
    let request = GenerateRequest {
        model: "m".to_owned(),
        messages: vec![Message::new(Role::User, format!("question {question}"))],
        ..GenerateRequest::default()
    };
    let expected = pieces(question).concat();
    let answered = async {
        if question.is_multiple_of(2) {
            return stream(hob, &request, &expected, leaves(question)).await;
        }
        hob.generate(&request).await.is_ok_and(|generation| {
            assert_eq!(generation.answer.content, expected, "an answer that is not complete looks complete");
            true
        })
    };
    timeout(PATIENCE, answered).await.expect("every question ends")
}

/// The same as a stream. A client that `leaves` takes only the first piece.
async fn stream(hob: &dyn Engine, request: &GenerateRequest, expected: &str, leaves: bool) -> bool {
    let Ok(mut stream) = hob.stream(request).await else { return false };
    let mut text = String::new();
    while let Some(Ok(delta)) = stream.deltas.next().await {
        match delta {
            Delta::Text(piece) => text.push_str(&piece.text),
            Delta::Done { .. } => {
                assert_eq!(text, expected, "a stream that is not complete looks complete");
                return true;
            }
            _ => {}
        }
        if leaves {
            return false;
        }
    }
    assert!(expected.starts_with(&text), "{text:?} is not the beginning of {expected:?}");
    false
}

/// A program that uses Hob: asks while there are faults, then without, and then while Hob stops.
async fn client(course: Course) -> turmoil::Result {
    let Course { ledger, shutdown, cut } = course;
    let key = (header::AUTHORIZATION, HeaderValue::from_static("Bearer key"));
    let hob = compatible(EndpointOptions {
        timeout: CLIENT_TIMEOUT,
        headers: HeaderMap::from_iter([key]),
        ..endpoint(CALLER, SERVER_PORT, Resend::Never)
    });
    let hob = hob.as_ref();
    let worker = |worker: u64| {
        let ledger = ledger.clone();
        async move {
            for question in (worker..QUESTIONS).step_by(WORKERS as usize) {
                let is_complete = ask(hob, question).await;
                ledger.note(format!("question {question} is answered: {is_complete}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    };
    join_all((0..WORKERS).map(worker)).await;
    ledger.begin_calm();
    sleep(REST).await;
    let answers = join_all(stays(1_001, CALM_QUESTIONS).map(|question| ask(hob, question))).await;
    let answered = answers.into_iter().filter(|is_complete| *is_complete).count();
    assert_eq!(answered, CALM_QUESTIONS, "every question is answered after the faults");
    assert_eq!(ledger.engines_in_calm(), ENGINES, "every engine is used again");

    // The next questions use new connections, so none of them meets the end of an idle one.
    sleep(REST).await;
    let stop = async {
        sleep(UNTIL_ARRIVED).await;
        shutdown.cancel();
    };
    let last = join_all(stays(2_001, LAST_QUESTIONS).map(|question| ask(hob, question)));
    let (answers, ()) = tokio::join!(last, stop);
    let answered = answers.into_iter().filter(|is_complete| *is_complete).count();
    assert_eq!(answered, LAST_QUESTIONS, "a server that stops completes its answers");
    sleep(REST).await;
    assert_eq!(cut.get(), Some(0), "the server has stopped");
    assert_eq!(ledger.open_in_calm(), 0, "no connection to an engine is left");
    Ok(())
}

/// Runs one simulation, checks the promises, and returns what happened.
fn simulate(seed: u64) -> Vec<String> {
    install_crypto();
    let course = Course::default();
    let resend = if seed.is_multiple_of(2) { Resend::Never } else { Resend::Unanswered };
    let mut sim = simulation(seed);
    let names = (0..ENGINES).map(|number| format!("engine-{number}"));
    for (number, name) in names.clone().enumerate() {
        let dice = Rc::new(RefCell::new(Dice::new(seed ^ ((number as u64 + 1) << 32))));
        let engine = SimulatedEngine { number, ledger: course.ledger.clone(), dice };
        sim.host(name, move || engine.clone().serve());
    }
    let of_server = course.clone();
    sim.host(CALLER, move || serve(resend, of_server.clone()));
    sim.client(CLIENT, client(course.clone()));
    let ledger = &course.ledger;
    let mut faults = SimulatedFaults::new(seed, names).with_client(CLIENT).with_restarts();
    let mut has_ended = false;
    while !sim.step().expect("no machine fails") {
        match (ledger.is_calm(), has_ended) {
            (false, _) => faults.step(&mut sim).into_iter().for_each(|fault| ledger.note(fault)),
            (true, false) => {
                faults.end(&mut sim);
                has_ended = true;
            }
            (true, true) => {}
        }
    }
    // Two hosts, and each of them once more if it closes a kept connection without an answer.
    let most = if resend == Resend::Never { 1 } else { 4 };
    let repeated = ledger.most_worked_on().filter(|(_, count)| *count > most);
    assert_eq!(repeated, None, "a question, and how often engines worked on it");
    ledger.log()
}

#[test]
fn the_server_keeps_its_promises_on_a_bad_network() {
    for_each_seed(|seed| _ = simulate(seed));
}

#[test]
fn the_same_seed_has_the_same_course() {
    assert_eq!(simulate(3), simulate(3));
}
