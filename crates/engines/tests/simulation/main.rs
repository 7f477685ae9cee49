//! Several engines on a simulated network that loses, delays and cuts, with servers that crash and misbehave.
//!
//! One seed decides everything that happens, so a failure can be repeated: `HOB_SIM_SEED=7 ./dev test --simulation`.

#![cfg(simulation)]

mod engine;
mod ledger;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use hob_core::{Backoff, Delta, Engine, GenerateRequest, Message, Role};
use hob_engines::multi_host::BreakerOptions;
use hob_engines::{Endpoint, EndpointOptions, MultiHost, MultiHostOptions, OpenAiCompat, Resend, Style};
use hob_testkit::Dice;
use hob_testkit::simulation::{CALLER, SimulatedFaults, for_each_seed, simulation};
use tokio::time::{sleep, timeout};

use crate::engine::{PORT, SimulatedEngine, pieces};
use crate::ledger::Ledger;

const ENGINES: usize = 3;

/// Questions while there are faults, and questions afterwards.
const QUESTIONS: u64 = 24;
const CALM_QUESTIONS: usize = 60;

/// The requests at once while there are faults.
const WORKERS: u64 = 3;

/// The longest time that a request may take, with every host at its slowest.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than the client keeps an idle connection, and than a breaker stays open.
const REST: Duration = Duration::from_secs(6);

/// Three servers as one engine.
fn engine(resend: Resend) -> Arc<dyn Engine> {
    let host = |number: usize| {
        let options = EndpointOptions {
            timeout: Duration::from_secs(2),
            resend,
            ..EndpointOptions::new("vllm", format!("http://engine-{number}:{PORT}"))
        };
        Arc::new(OpenAiCompat::new(Style::VLLM, Endpoint::new(options).expect("an endpoint")))
            as Arc<dyn Engine>
    };
    let pauses = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(1) };
    let options = MultiHostOptions {
        resend,
        breaker: BreakerOptions { pauses, ..BreakerOptions::default() },
        health_check_after: Duration::from_millis(500),
    };
    MultiHost::of((0..ENGINES).map(host).collect(), options).expect("hosts")
}

/// Whether the caller of a question leaves before the answer ends.
fn leaves(question: u64) -> bool {
    question.is_multiple_of(14)
}

/// Asks a question, and checks the answer. Whether it is complete.
async fn ask(engine: &dyn Engine, question: u64) -> bool {
    let request = GenerateRequest {
        model: "m".to_owned(),
        messages: vec![Message::new(Role::User, format!("question {question}"))],
        ..GenerateRequest::default()
    };
    let expected = pieces(question).concat();
    let answered = async {
        if question.is_multiple_of(2) {
            return stream(engine, &request, &expected, leaves(question)).await;
        }
        let answer = engine.generate(&request).await;
        answer.is_ok_and(|generation| {
            assert_eq!(generation.answer.content, expected, "an answer that is not complete looks complete");
            true
        })
    };
    timeout(PATIENCE, answered).await.expect("every request ends")
}

/// The same as a stream. A caller that `leaves` takes only the first piece.
async fn stream(engine: &dyn Engine, request: &GenerateRequest, expected: &str, leaves: bool) -> bool {
    let Ok(mut stream) = engine.stream(request).await else { return false };
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

/// What the caller of the engines does: questions while there are faults, then questions without, then nothing.
async fn caller(resend: Resend, ledger: Ledger) -> turmoil::Result {
    let engine = engine(resend);
    let engine = engine.as_ref();
    let worker = |worker: u64| {
        let ledger = ledger.clone();
        async move {
            for question in (worker..QUESTIONS).step_by(WORKERS as usize) {
                let is_complete = ask(engine, question).await;
                ledger.note(format!("question {question} is answered: {is_complete}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    };
    join_all((0..WORKERS).map(worker)).await;
    ledger.begin_calm();
    sleep(REST).await;
    let questions = (1_001..).filter(|question| !leaves(*question)).take(CALM_QUESTIONS);
    let answers = join_all(questions.map(|question| ask(engine, question))).await;
    assert!(
        answers.into_iter().all(|is_complete| is_complete),
        "every question is answered after the faults"
    );
    assert_eq!(ledger.engines_in_calm(), ENGINES, "every breaker has closed again");
    sleep(REST).await;
    assert_eq!(ledger.open_in_calm(), 0, "idle connections are closed");
    Ok(())
}

/// Runs one simulation, checks the promises, and returns what happened.
fn simulate(seed: u64) -> Vec<String> {
    let ledger = Ledger::default();
    let resend = if seed.is_multiple_of(2) { Resend::Never } else { Resend::Unanswered };
    let mut sim = simulation(seed);
    let names = (0..ENGINES).map(|number| format!("engine-{number}"));
    for (number, name) in names.clone().enumerate() {
        let dice = Rc::new(RefCell::new(Dice::new(seed ^ ((number as u64 + 1) << 32))));
        let engine = SimulatedEngine { number, ledger: ledger.clone(), dice };
        sim.host(name, move || engine.clone().serve());
    }
    sim.client(CALLER, caller(resend, ledger.clone()));
    let mut faults = SimulatedFaults::new(seed, names);
    let mut has_ended = false;
    while !sim.step().expect("no host fails") {
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
fn engines_keep_their_promises_on_a_bad_network() {
    for_each_seed(|seed| _ = simulate(seed));
}

#[test]
fn the_same_seed_has_the_same_course() {
    assert_eq!(simulate(3), simulate(3));
}
