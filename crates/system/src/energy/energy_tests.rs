//! Questions under way, and what is put down to them. Counters are dials that a test turns.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use hob_core::{Delta, FinishReason, GenerateRequest, Inference, InferenceLog, RunEvents, Source};
use hob_engine::{Endpoint, EndpointOptions, Fleet, FleetOptions, OpenAiCompat, Style};
use hob_testkit::ScriptedEngine;

use super::*;
use crate::metered::{Metered, Origin};
use crate::trace::Spans;

/// What a dial shows when it cannot be read.
const GONE: u64 = u64::MAX;

/// A counter whose number a test sets.
#[derive(Clone)]
pub(super) struct Dial {
    name: &'static str,
    microjoules: Arc<AtomicU64>,
    wraps_after: Option<u64>,
}

pub(super) fn dial(name: &'static str, microjoules: u64) -> Dial {
    Dial { name, microjoules: Arc::new(AtomicU64::new(microjoules)), wraps_after: None }
}

impl Dial {
    pub(super) fn wrapping_after(self, last: u64) -> Self {
        Dial { wraps_after: Some(last), ..self }
    }

    pub(super) fn shows(&self, microjoules: u64) {
        self.microjoules.store(microjoules, Ordering::Relaxed);
    }

    pub(super) fn disappears(&self) {
        self.shows(GONE);
    }
}

impl Counter for Dial {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn read(&mut self) -> Result<u64, Box<dyn Error + Send + Sync>> {
        match self.microjoules.load(Ordering::Relaxed) {
            GONE => Err("it is gone".into()),
            microjoules => Ok(microjoules),
        }
    }

    fn wraps_after(&self) -> Option<u64> {
        self.wraps_after
    }
}

fn counters(dials: &[&Dial], fresh_for: Duration) -> Counters {
    let counters = dials.iter().map(|dial| Box::new((*dial).clone()) as Box<dyn Counter>).collect();
    Counters::new(counters, fresh_for)
}

/// Meters that are looked at whenever a question begins or ends.
fn meters(dials: &[&Dial]) -> Meters {
    Meters { found: Arc::new(OnceLock::from(Panel::new(counters(dials, Duration::ZERO)).0)) }
}

/// A panel with one dial, and times in seconds from now on.
fn panel(dial: &Dial) -> (Arc<Panel>, impl Fn(u64) -> Instant) {
    let start = Instant::now();
    (Panel::new(counters(&[dial], FRESH)).0, move |second| start + Duration::from_secs(second))
}

fn joules(microjoules: u64) -> Option<Energy> {
    Some(Energy::from_microjoules(microjoules))
}

#[test]
fn questions_at_the_same_time_share_and_idle_time_is_nobodys() {
    let dial = dial("processor", 0);
    let (panel, at) = panel(&dial);
    Panel::begin(&panel, at(0)).end_at(at(1));
    dial.shows(1_000);
    let long = Panel::begin(&panel, at(10));
    dial.shows(1_100);
    let short = Panel::begin(&panel, at(11));
    dial.shows(1_300);
    assert_eq!(short.end_at(at(12)), joules(100));
    dial.shows(1_305);
    assert_eq!(long.end_at(at(13)), joules(205));
    dial.shows(9_000);
    let later = Panel::begin(&panel, at(20));
    dial.shows(9_004);
    assert_eq!(later.end_at(at(21)), joules(4));
}

#[test]
fn a_question_that_is_forgotten_takes_no_more_part() {
    let dial = dial("processor", 0);
    let (panel, at) = panel(&dial);
    drop(Panel::begin(&panel, at(0)));
    let other = Panel::begin(&panel, at(1));
    dial.shows(50);
    assert_eq!(other.end_at(at(2)), joules(50));
    assert!(!panel.ledger().is_anybody_under_way());
}

#[test]
fn a_meter_that_disappears_costs_the_figure_and_not_the_answer() {
    let dial = dial("card", 0);
    let (panel, at) = panel(&dial);
    let unlucky = Panel::begin(&panel, at(0));
    dial.disappears();
    assert_eq!(unlucky.end_at(at(1)), None);
    let unlucky = Panel::begin(&panel, at(2));
    dial.shows(10);
    assert_eq!(unlucky.end_at(at(3)), None, "when it began nobody could look");
    let lucky = Panel::begin(&panel, at(4));
    dial.shows(17);
    assert_eq!(lucky.end_at(at(5)), joules(7));
}

#[test]
fn many_questions_in_a_moment_are_one_look() {
    let dial = dial("processor", 0);
    let (panel, at) = panel(&dial);
    let first = Panel::begin(&panel, at(0));
    dial.shows(100);
    let moment = FRESH / 2;
    let second = Panel::begin(&panel, at(0) + moment);
    assert_eq!(second.end_at(at(0) + moment), None, "too short to be measured");
    assert_eq!(first.end_at(at(1)), joules(100));
}

#[test]
fn a_driver_that_hangs_holds_up_nobody_else() {
    let dial = dial("card", 0);
    let (panel, at) = panel(&dial);
    let share = Panel::begin(&panel, at(0));
    let hanging = panel.counters.lock().unwrap();
    assert_eq!(share.end_at(at(1)), None, "nobody looked, so nothing is known");
    drop(hanging);
}

/// Keeps what was recorded of energy.
#[derive(Default)]
struct Notebook(Mutex<Vec<Option<Energy>>>);

impl InferenceLog for Notebook {
    fn record(&self, inference: Inference) {
        self.0.lock().unwrap().push(inference.energy);
    }
}

#[tokio::test]
async fn an_answer_is_recorded_with_what_it_used() {
    let dial = dial("processor", 0);
    let turned = dial.clone();
    let engine = ScriptedEngine::new(move |_| {
        turned.shows(turned.microjoules.load(Ordering::Relaxed) + 5);
        let finish = Delta::Finish { choice: 0, reason: FinishReason::Stop };
        vec![Ok(Delta::text("hi")), Ok(finish), Ok(Delta::Done { usage: None })]
    });
    let notebook = Arc::new(Notebook::default());
    let origin = Origin {
        run: "run".into(),
        source: Source::Server,
        agent: None,
        events: RunEvents::unheard(),
        log: Arc::clone(&notebook) as Arc<dyn InferenceLog>,
        spans: Spans::default(),
        meters: meters(&[&dial]),
        trace_parent: None,
    };
    let engine = Metered::new(Arc::new(engine), origin);
    let question = GenerateRequest { model: "m".into(), ..GenerateRequest::default() };
    engine.generate(&question).await.unwrap();
    // One that is left before its end has used what it has used.
    drop(engine.stream(&question).await.unwrap());
    assert_eq!(*notebook.0.lock().unwrap(), [joules(5), joules(5)]);
}

#[test]
fn only_work_that_is_done_here_is_measured() {
    let meters = meters(&[&dial("processor", 0), &dial("card", 0)]);
    assert_eq!(meters.names(), Some("processor, card"));
    let inside = ScriptedEngine::saying(&["hi"]);
    assert_eq!(inside.address(), "");
    assert!(meters.begin(&inside).is_some());
    assert!(Meters::default().begin(&inside).is_none());
    let server = |style: Style, host: &str| -> Arc<dyn Engine> {
        let endpoint = Endpoint::new(EndpointOptions::new(style.key, host)).unwrap();
        Arc::new(OpenAiCompat::new(style, endpoint))
    };
    let measures = |style: Style, host: &str| meters.begin(server(style, host).as_ref()).is_some();
    for here in ["http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000/v1"] {
        assert!(measures(Style::VLLM, here), "{here}");
        assert!(!measures(Style::LITELLM, here), "nobody knows where LiteLLM asks: {here}");
    }
    for elsewhere in ["http://192.168.1.20:8000", "https://gpu.example.com", "http://box:8000"] {
        assert!(!measures(Style::VLLM, elsewhere), "{elsewhere}");
    }
    let several = |hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| server(Style::VLLM, host)).collect();
        meters.begin(Fleet::of(hosts, FleetOptions::default()).unwrap().as_ref()).is_some()
    };
    assert!(several(&["http://localhost:8000", "http://localhost:8001"]));
    assert!(!several(&["http://localhost:8000", "http://192.168.1.20:8000"]));
}
