//! The energy of answers, from the meters of this machine. Nothing is estimated; without a meter there is no figure.
//!
//! | file | what |
//! |---|---|
//! | `counter` | counters, and the energy between two readings |
//! | `rapl` | processors, on Linux |
//! | `nvml` | NVIDIA cards |
//! | `energy_shares` | the shares of concurrent calls |
//!
//! Meters count whole processors and cards. The figure of a call is therefore everything that they used while it was active,
//! including idle power and other programs, divided by the number of active calls. Energy without an active call is not counted.
//!
//! Reading a meter may take long, with a broken driver forever. So one thread reads, and no call waits for it.

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

use self::counter::{EnergyCounters, FoundMeters};
use self::energy_shares::{EnergyShares, ShareId};

use crate::inference::Energy;

/// The pause between two readings. The meters are not more precise.
const PAUSE: Duration = Duration::from_millis(50);

/// Engines that forward requests to other machines.
const FORWARDING_ENGINES: [&str; 2] = ["cloud", "litellm"];

fn find_meters() -> FoundMeters {
    let (mut found, cards) = (rapl::find(Path::new(rapl::POWERCAP)), nvml::find());
    found.counters.extend(cards.counters);
    found.refused.extend(cards.refused);
    found
}

/// The meters of this machine, and why others cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnergySurvey {
    pub meters: Vec<String>,
    pub refused: Vec<String>,
}

/// Finds the meters. Blocks, perhaps for a second.
pub fn survey() -> EnergySurvey {
    let FoundMeters { counters, refused } = find_meters();
    EnergySurvey { meters: counters.iter().map(|counter| counter.name()).collect(), refused }
}

/// The meters of this machine. Cheap to clone. The default has none.
#[derive(Clone, Default)]
pub struct EnergyMeters {
    /// Empty until they are found.
    found: Arc<OnceLock<Arc<MeterSet>>>,
}

impl EnergyMeters {
    /// Searches for meters in the background. A call before they are found has no figure.
    pub(crate) fn open() -> Self {
        Self::found_by(find_meters)
    }

    fn found_by(find: impl FnOnce() -> FoundMeters + Send + 'static) -> Self {
        let meters = EnergyMeters::default();
        let found = Arc::clone(&meters.found);
        // Not joined, because a driver cannot be interrupted. It ends with the last clone.
        let search = thread::Builder::new().name("energy".to_owned()).spawn(move || {
            let FoundMeters { counters, refused } = find();
            for reason in refused {
                tracing::debug!(reason, "cannot use an energy meter");
            }
            if !counters.is_empty() {
                let (meter_set, reader) = MeterSet::new(EnergyCounters::new(counters));
                let _ = found.set(meter_set);
                drop(found);
                reader.run();
            }
        });
        if let Err(error) = search {
            tracing::debug!(%error, "energy is not measured");
        }
        meters
    }

    /// The meters, if any.
    pub fn names(&self) -> Option<&str> {
        self.found.get().map(|meter_set| meter_set.names.as_str())
    }

    /// A call to this engine begins. `None` if its energy cannot be measured: there are no meters, or the engine runs elsewhere.
    pub(crate) fn begin(&self, engine: &dyn Engine) -> Option<EnergyShare> {
        let meter_set = self.found.get()?;
        works_here(engine).then(|| MeterSet::begin(meter_set))
    }
}

/// Whether the engine runs on this machine. The embedded engine has no address; for several servers under one name, it is unknown
/// which will answer.
fn works_here(engine: &dyn Engine) -> bool {
    let members = engine.members();
    if !members.is_empty() {
        return members.iter().all(|member| works_here(member.as_ref()));
    }
    let address = engine.address();
    !FORWARDING_ENGINES.contains(&engine.key()) && (address.is_empty() || is_on_this_machine(address))
}

/// The only reader of the meters.
struct Reader {
    counters: EnergyCounters,
    state: Arc<Mutex<MeterState>>,
    /// A call is active. Closed with the [`MeterSet`].
    woken: Receiver<()>,
}

impl Reader {
    /// Runs until the [`MeterSet`] is dropped.
    fn run(mut self) {
        while self.woken.recv().is_ok() {
            loop {
                self.take_reading(Instant::now());
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

    /// Reads the counters, and shares the energy since the last reading.
    fn take_reading(&mut self, now: Instant) {
        lock(&self.state).shares.begin_reading(now);
        let used = self.counters.advance(now);
        lock(&self.state).shares.end_reading(used);
    }
}

/// Shared by calls and the reader. The lock is never held while a meter is read.
struct MeterState {
    shares: EnergyShares,
    /// Whether the reader waits.
    reader_sleeps: bool,
}

fn lock(state: &Mutex<MeterState>) -> MutexGuard<'_, MeterState> {
    state.lock()
}

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
            // Fails only if the reader was already woken, or a driver has crashed it: then there is no figure.
            let _ = meter_set.wake.try_send(());
        }
        EnergyShare { meter_set: Arc::clone(meter_set), id }
    }
}

/// The share of one active call.
pub(crate) struct EnergyShare {
    meter_set: Arc<MeterSet>,
    id: ShareId,
}

impl EnergyShare {
    /// The call has ended. Returns its energy, if known.
    pub(crate) fn end(self) -> Option<Energy> {
        self.end_at(Instant::now())
    }

    fn end_at(self, now: Instant) -> Option<Energy> {
        self.leave(now).map(Energy::from_microjoules)
    }

    /// Only the first call returns a value.
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
