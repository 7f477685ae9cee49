//! Concurrent questions, and the energy that is attributed to them. Tests set the counters.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use hob_core::{
    Delta, EngineError, FinishReason, GenerateRequest, Generation, GenerationStream, ModelInfo,
    RequestSource, RunEvents,
};
use hob_testkit::ScriptedEngine;

use super::counter::EnergyCounter;
use super::*;
use crate::inference::{Inference, InferenceLog};
use crate::inference_in_progress::RecordContext;
use crate::recorded_engine::RecordedEngine;
use crate::recorder::Recorder;

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

impl EnergyCounter for Dial {
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

/// Longer than any of these tests takes on a busy machine; none of them waits for it to pass.
const LONG: Duration = Duration::from_secs(60);

/// Meters whose reader looks when a test says so.
fn meters(dials: &[&Dial]) -> (EnergyMeters, Reader) {
    let counters = dials.iter().map(|dial| Box::new((*dial).clone()) as Box<dyn EnergyCounter>).collect();
    let (meter_set, reader) = MeterSet::new(EnergyCounters::new(counters));
    (EnergyMeters { found: Arc::new(OnceLock::from(meter_set)) }, reader)
}

/// A set of meters with one dial, its reader, and times in seconds from now on.
fn meter_set(dial: &Dial) -> (Arc<MeterSet>, Reader, impl Fn(u64) -> Instant) {
    let (start, counters) = (Instant::now(), EnergyCounters::new(vec![Box::new(dial.clone())]));
    let (meter_set, reader) = MeterSet::new(counters);
    (meter_set, reader, move |second| start + Duration::from_secs(second))
}

fn joules(microjoules: u64) -> Option<Energy> {
    Some(Energy::from_microjoules(microjoules))
}

#[test]
fn concurrent_calls_share_and_idle_time_is_not_counted() {
    let dial = dial("processor", 0);
    let (meter_set, mut reader, at) = meter_set(&dial);
    reader.take_reading(at(0));
    dial.shows(1_000);
    let long = MeterSet::begin(&meter_set);
    reader.take_reading(at(10));
    dial.shows(1_100);
    let short = MeterSet::begin(&meter_set);
    reader.take_reading(at(11));
    dial.shows(1_300);
    reader.take_reading(at(12));
    assert_eq!(short.end_at(at(12)), joules(100));
    reader.take_reading(at(12));
    dial.shows(1_305);
    reader.take_reading(at(13));
    assert_eq!(long.end_at(at(13)), joules(205));
    dial.shows(9_000);
    let later = MeterSet::begin(&meter_set);
    reader.take_reading(at(20));
    dial.shows(9_004);
    reader.take_reading(at(21));
    assert_eq!(later.end_at(at(21)), joules(4));
}

#[test]
fn a_dropped_call_gets_no_more_energy() {
    let dial = dial("processor", 0);
    let (meter_set, mut reader, now) = meter_set(&dial);
    drop(MeterSet::begin(&meter_set));
    let other = MeterSet::begin(&meter_set);
    reader.take_reading(now(1));
    dial.shows(50);
    reader.take_reading(now(2));
    assert_eq!(other.end_at(now(2)), joules(50));
    assert!(!lock(&meter_set.state).shares.is_any_under_way());
}

#[test]
fn a_missing_meter_loses_the_figure_and_not_the_answer() {
    let dial = dial("card", 0);
    let (meter_set, mut reader, at) = meter_set(&dial);
    let unlucky = MeterSet::begin(&meter_set);
    reader.take_reading(at(0));
    dial.disappears();
    reader.take_reading(at(1));
    assert_eq!(unlucky.end_at(at(1)), None);
    let unlucky = MeterSet::begin(&meter_set);
    reader.take_reading(at(2));
    dial.shows(10);
    reader.take_reading(at(3));
    assert_eq!(unlucky.end_at(at(3)), None, "there was no reading at its start");
    let lucky = MeterSet::begin(&meter_set);
    reader.take_reading(at(4));
    dial.shows(17);
    reader.take_reading(at(5));
    assert_eq!(lucky.end_at(at(5)), joules(7));
}

/// A counter that reports its readings to a test, which may delay them.
struct Observed {
    dial: Dial,
    read: SyncSender<()>,
    /// Readings continue when the other end is dropped.
    held: Receiver<()>,
}

impl EnergyCounter for Observed {
    fn name(&self) -> String {
        self.dial.name()
    }

    /// Each time it shows 5 more.
    fn read(&mut self) -> Result<u64, Box<dyn Error + Send + Sync>> {
        // A test may have heard enough.
        let _ = self.read.try_send(());
        let _ = self.held.recv();
        self.dial.shows(self.dial.microjoules.load(Ordering::Relaxed) + 5);
        self.dial.read()
    }

    fn wraps_after(&self) -> Option<u64> {
        None
    }
}

/// Meters with their own thread, the receiver of their readings, and a guard that delays them until it is dropped.
fn observed() -> (EnergyMeters, Receiver<()>, SyncSender<()>) {
    let ((read, heard), (hold, held)) = (sync_channel(1), sync_channel(1));
    let counter = Observed { dial: dial("card", 0), read, held };
    let meters = EnergyMeters::found_by(|| FoundMeters {
        counters: vec![Box::new(counter)],
        ..FoundMeters::default()
    });
    while meters.names().is_none() {
        thread::yield_now();
    }
    (meters, heard, hold)
}

#[test]
fn a_driver_that_hangs_blocks_no_call() {
    let (meters, heard, _hold) = observed();
    let (tell, told) = sync_channel(1);
    thread::spawn(move || {
        let engine = ScriptedEngine::saying(&["hi"]);
        let first = meters.begin(&engine).unwrap();
        heard.recv().unwrap();
        // From here on the driver hangs.
        let second = meters.begin(&engine).unwrap();
        tell.send([first.end(), second.end(), meters.begin(&engine).unwrap().end()]).unwrap();
    });
    assert_eq!(told.recv_timeout(LONG), Ok([None; 3]), "without a reading nothing is known");
}

#[test]
fn during_a_call_the_meters_are_read_in_the_background() {
    let (meters, heard, hold) = observed();
    drop(hold);
    let engine = ScriptedEngine::saying(&["hi"]);
    // A machine that stands still for a moment makes a figure late, and then there is none.
    let measured = (0..1_000).find_map(|_| {
        let share = meters.begin(&engine).unwrap();
        (0..4).for_each(|_| heard.recv_timeout(LONG).unwrap());
        share.end()
    });
    let measured = measured.expect("a figure").microjoules();
    assert!(measured > 0 && measured % 5 == 0, "{measured}");
}

/// Keeps what was recorded of energy.
#[derive(Default)]
struct Notebook(Mutex<Vec<Option<Energy>>>);

impl InferenceLog for Notebook {
    fn record(&self, inference: Inference) {
        self.0.lock().push(inference.energy);
    }
}

#[tokio::test]
async fn an_answer_is_recorded_with_its_energy() {
    let dial = dial("processor", 0);
    let (meters, reader) = meters(&[&dial]);
    // Valid for an hour.
    let reading = Mutex::new((reader, Instant::now() + Duration::from_secs(3600)));
    let engine = ScriptedEngine::new(move |_| {
        let (reader, now) = &mut *reading.lock();
        reader.take_reading(*now);
        dial.shows(dial.microjoules.load(Ordering::Relaxed) + 5);
        *now += Duration::from_secs(1);
        reader.take_reading(*now);
        let finish = Delta::Finish { choice: 0, reason: FinishReason::Stop };
        vec![Ok(Delta::text("hi")), Ok(finish), Ok(Delta::Done { usage: None })]
    });
    let notebook = Arc::new(Notebook::default());
    let context = RecordContext {
        run: "run".into(),
        source: RequestSource::Server,
        agent: None,
        events: RunEvents::without_subscribers(),
        recorder: Arc::new(Recorder {
            meters,
            ..Recorder::to(Arc::clone(&notebook) as Arc<dyn InferenceLog>)
        }),
        trace_parent: None,
        key: None,
        end_user: None,
        details: Default::default(),
        tally: None,
    };
    let engine = RecordedEngine::new(Arc::new(engine), context);
    let question = GenerateRequest { model: "m".into(), ..GenerateRequest::default() };
    engine.generate(&question).await.unwrap();
    // One that is left before its end has used what it has used.
    drop(engine.stream(&question).await.unwrap());
    assert_eq!(*notebook.0.lock(), [joules(5), joules(5)]);
}

#[test]
fn only_engines_on_this_machine_are_measured() {
    let (meters, _reader) = meters(&[&dial("processor", 0), &dial("card", 0)]);
    assert_eq!(meters.names(), Some("processor, card"));
    let inside = ScriptedEngine::saying(&["hi"]);
    assert_eq!(inside.address(), "");
    assert!(meters.begin(&inside).is_some());
    assert!(EnergyMeters::default().begin(&inside).is_none());
    let measures = |key: &str, address: &str| meters.begin(&EngineAt::new(key, address)).is_some();
    for here in ["http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000/v1"] {
        assert!(measures("vllm", here), "{here}");
        assert!(!measures("litellm", here), "it is not known where LiteLLM asks: {here}");
    }
    for elsewhere in ["http://192.168.1.20:8000", "https://gpu.example.com", "http://box:8000"] {
        assert!(!measures("vllm", elsewhere), "{elsewhere}");
    }
    let several = |hosts: &[&str]| {
        let member = |host: &&str| Arc::new(EngineAt::new("vllm", host)) as Arc<dyn Engine>;
        let members: Vec<Arc<dyn Engine>> = hosts.iter().map(member).collect();
        let address = hosts.join(", ");
        meters.begin(&EngineAt { members, ..EngineAt::new("vllm", &address) }).is_some()
    };
    assert!(several(&["http://localhost:8000", "http://localhost:8001"]));
    assert!(!several(&["http://localhost:8000", "http://192.168.1.20:8000"]));
}

/// An engine at an address, or several of them under one name. Answers nothing.
struct EngineAt {
    key: String,
    address: String,
    members: Vec<Arc<dyn Engine>>,
}

impl EngineAt {
    fn new(key: &str, address: &str) -> Self {
        EngineAt { key: key.to_owned(), address: address.to_owned(), members: Vec::new() }
    }

    fn unreachable(&self) -> EngineError {
        let (engine, address) = (self.key.clone(), self.address.clone());
        EngineError::Unreachable { engine, address, reason: "it is not there".into() }
    }
}

#[async_trait]
impl Engine for EngineAt {
    fn key(&self) -> &str {
        &self.key
    }

    fn address(&self) -> &str {
        &self.address
    }

    fn members(&self) -> Vec<Arc<dyn Engine>> {
        self.members.clone()
    }

    async fn generate(&self, _request: &GenerateRequest) -> Result<Generation, EngineError> {
        Err(self.unreachable())
    }

    async fn stream(&self, _request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        Err(self.unreachable())
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        Err(self.unreachable())
    }

    async fn health(&self) -> bool {
        false
    }
}
