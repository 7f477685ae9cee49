//! What answers cost in energy: what the machine's own meters count while a question is under way. Nothing is ever estimated;
//! without a meter there is no figure.
//!
//! | file | what |
//! |---|---|
//! | `counter` | counters, and what they say was used between two looks |
//! | `rapl` | processors, by Linux |
//! | `nvml` | NVIDIA's cards, by their driver |
//! | `energy_shares` | who is given what when several questions are under way |
//!
//! Meters count whole processors and cards. A question's figure is therefore all that they used while it was under way, their
//! idling and other programs included, divided by the questions under way at the same time. Energy that is used while there
//! is no question is not counted.
//!
//! Reading a meter may take long, and with a driver that hangs it takes for ever. So one thread reads, and no question waits for it:
//! a question that begins or ends only notes that, and what has not been read by its end is not in its figure.

mod counter;
mod energy_shares;
mod nvml;
mod rapl;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use hob_core::Engine;
use hob_net::is_on_this_machine;
use parking_lot::{Mutex, MutexGuard};

use self::counter::{EnergyCounter, EnergyCounters};
use self::energy_shares::{EnergyShares, ShareId};

use crate::inference::Energy;

/// How long the meters are left alone between two looks while a question is under way. They count no finer.
const PAUSE: Duration = Duration::from_millis(50);

/// Engines that pass questions on to others, wherever they run themselves.
const PASS_ON: [&str; 2] = ["cloud", "litellm"];

/// What there is on a machine.
#[derive(Default)]
struct FoundMeters {
    counters: Vec<Box<dyn EnergyCounter>>,
    /// Why others cannot be used, a sentence each.
    refused: Vec<String>,
}

impl FoundMeters {
    /// May take a second.
    fn on_this_machine() -> Self {
        let (mut found, cards) = (rapl::find(Path::new(rapl::POWERCAP)), nvml::find());
        found.counters.extend(cards.counters);
        found.refused.extend(cards.refused);
        found
    }
}

/// What measures energy here, and what might but does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnergySurvey {
    pub meters: Vec<String>,
    /// A sentence each.
    pub refused: Vec<String>,
}

/// Looks around. Blocks, perhaps for a second.
pub fn survey() -> EnergySurvey {
    let FoundMeters { counters, refused } = FoundMeters::on_this_machine();
    EnergySurvey { meters: counters.iter().map(|counter| counter.name()).collect(), refused }
}

/// The meters of this machine. Cheap to clone; by default there are none.
#[derive(Clone, Default)]
pub struct EnergyMeters {
    /// Empty until they are found, which most often is never.
    found: Arc<OnceLock<Arc<MeterSet>>>,
}

impl EnergyMeters {
    /// Looks for the meters of this machine. Does not wait for the result: a question that is asked before it is there has no figure.
    pub(crate) fn open() -> Self {
        Self::found_by(FoundMeters::on_this_machine)
    }

    fn found_by(find: impl FnOnce() -> FoundMeters + Send + 'static) -> Self {
        let meters = EnergyMeters::default();
        let found = Arc::clone(&meters.found);
        // The thread is never joined, because a driver cannot be interrupted. It ends by itself, with the last of the meters.
        let looking = thread::Builder::new().name("energy".to_owned()).spawn(move || {
            let FoundMeters { counters, refused } = find();
            for reason in refused {
                tracing::debug!(reason, "a meter of energy cannot be used");
            }
            if !counters.is_empty() {
                let (meter_set, reader) = MeterSet::new(EnergyCounters::new(counters));
                // Set once, here and nowhere else.
                let _ = found.set(meter_set);
                drop(found);
                reader.run();
            }
        });
        if let Err(error) = looking {
            tracing::debug!(%error, "energy is not measured");
        }
        meters
    }

    /// What is measured and by whom; `None` where nothing is.
    pub fn names(&self) -> Option<&str> {
        self.found.get().map(|meter_set| meter_set.names.as_str())
    }

    /// A question to this engine begins. `None` where its energy cannot be measured: there are no meters, or the engine does
    /// its work elsewhere.
    pub(crate) fn begin(&self, engine: &dyn Engine) -> Option<EnergyShare> {
        let meter_set = self.found.get()?;
        works_here(engine).then(|| MeterSet::begin(meter_set))
    }
}

/// Whether the engine does its work on this machine. One that is inside this program has no address; of several servers
/// under one name, it is not known in advance which will answer.
fn works_here(engine: &dyn Engine) -> bool {
    if !engine.members().is_empty() {
        return engine.members().iter().all(|member| works_here(member.as_ref()));
    }
    let address = engine.address();
    !PASS_ON.contains(&engine.key()) && (address.is_empty() || is_on_this_machine(address))
}

/// The only reader of the meters. No question waits for it.
struct Reader {
    counters: EnergyCounters,
    state: Arc<Mutex<MeterState>>,
    /// A question is under way. Ends with the [`MeterSet`].
    woken: Receiver<()>,
}

impl Reader {
    /// Until the [`MeterSet`] is dropped.
    fn run(mut self) {
        while self.woken.recv().is_ok() {
            loop {
                self.look(Instant::now());
                if self.woken.recv_timeout(PAUSE) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
                let mut state = lock(&self.state);
                if !state.shares.is_any_under_way() {
                    state.reader_sleeps = true;
                    break;
                }
            }
        }
    }

    /// Shares what was used since the last look among those that were under way since then.
    fn look(&mut self, now: Instant) {
        lock(&self.state).shares.begin_look(now);
        let used = self.counters.advance(now);
        lock(&self.state).shares.end_look(used);
    }
}

/// What questions and the reader share. Its lock is only ever held for a moment, and never while a meter is read.
struct MeterState {
    shares: EnergyShares,
    /// Whether the reader waits to be woken.
    reader_sleeps: bool,
}

fn lock(state: &Mutex<MeterState>) -> MutexGuard<'_, MeterState> {
    state.lock()
}

/// The meters, as questions see them.
struct MeterSet {
    names: String,
    state: Arc<Mutex<MeterState>>,
    wake: SyncSender<()>,
}

impl MeterSet {
    fn new(counters: EnergyCounters) -> (Arc<Self>, Reader) {
        let (wake, woken) = sync_channel(1);
        let names = counters.names().join(", ");
        let state = Arc::new(Mutex::new(MeterState { shares: EnergyShares::default(), reader_sleeps: true }));
        let reader = Reader { counters, state: Arc::clone(&state), woken };
        (Arc::new(MeterSet { names, state, wake }), reader)
    }

    fn begin(meter_set: &Arc<Self>) -> EnergyShare {
        let mut state = lock(&meter_set.state);
        let id = state.shares.join();
        let sleeps = std::mem::replace(&mut state.reader_sleeps, false);
        drop(state);
        if sleeps {
            // Refused only by a reader that has been woken already, or that a driver has brought down: then there is no figure.
            let _ = meter_set.wake.try_send(());
        }
        EnergyShare { meter_set: Arc::clone(meter_set), id }
    }
}

/// One question's part in what the meters count, for as long as it lasts.
pub(crate) struct EnergyShare {
    meter_set: Arc<MeterSet>,
    id: ShareId,
}

impl EnergyShare {
    /// The question is over: what it was given, where that is known.
    pub(crate) fn end(self) -> Option<Energy> {
        self.end_at(Instant::now())
    }

    fn end_at(self, now: Instant) -> Option<Energy> {
        self.leave(now).map(Energy::from_microjoules)
    }

    /// Only the first time says something.
    fn leave(&self, now: Instant) -> Option<u64> {
        lock(&self.meter_set.state).shares.leave(self.id, now)
    }
}

impl Drop for EnergyShare {
    fn drop(&mut self) {
        self.leave(Instant::now());
    }
}

#[cfg(test)]
#[path = "energy_tests.rs"]
mod tests;
