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
//! is no question is put down to nobody.
//!
//! Reading a meter may take long, and with a driver that hangs it takes for ever. So one thread reads, and nobody waits for it:
//! a question that begins or ends only notes that, and what has not been read by its end is not in its figure.

mod counter;
mod energy_shares;
mod nvml;
mod rapl;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hob_core::Engine;
use hob_net::is_on_this_machine;

use self::counter::{Counter, Counters};
use self::energy_shares::{Ledger, Place};

use crate::inference::Energy;

/// How long the meters are left alone between two looks while a question is under way. They count no finer.
const PAUSE: Duration = Duration::from_millis(50);

/// Engines that pass questions on to others, wherever they run themselves.
const PASS_ON: [&str; 2] = ["cloud", "litellm"];

/// What there is on a machine.
#[derive(Default)]
struct Found {
    counters: Vec<Box<dyn Counter>>,
    /// Why others cannot be used, a sentence each.
    refused: Vec<String>,
}

impl Found {
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
    let Found { counters, refused } = Found::on_this_machine();
    EnergySurvey { meters: counters.iter().map(|counter| counter.name()).collect(), refused }
}

/// The meters of this machine. Cheap to clone; by default there are none.
#[derive(Clone, Default)]
pub struct Meters {
    /// Empty until they are found, which most often is never.
    found: Arc<OnceLock<Arc<Panel>>>,
}

impl Meters {
    /// Looks for the meters of this machine. Nobody waits for that: a question that is asked before it is over has no figure.
    pub(crate) fn open() -> Self {
        Self::found_by(Found::on_this_machine)
    }

    fn found_by(find: impl FnOnce() -> Found + Send + 'static) -> Self {
        let meters = Meters::default();
        let found = Arc::clone(&meters.found);
        // A thread that nobody joins, because nothing can hurry a driver. It ends by itself, with the last of the meters.
        let looking = thread::Builder::new().name("energy".to_owned()).spawn(move || {
            let Found { counters, refused } = find();
            for reason in refused {
                tracing::debug!(reason, "a meter of energy cannot be used");
            }
            if !counters.is_empty() {
                let (panel, reader) = Panel::new(Counters::new(counters));
                // Set once, here and nowhere else.
                let _ = found.set(panel);
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
        self.found.get().map(|panel| panel.names.as_str())
    }

    /// A question to this engine begins. `None` where its energy cannot be measured: there are no meters, or the engine does
    /// its work elsewhere.
    pub(crate) fn begin(&self, engine: &dyn Engine) -> Option<Share> {
        let panel = self.found.get()?;
        works_here(engine).then(|| Panel::begin(panel))
    }
}

/// Whether the engine does its work on this machine. One that is inside this program has no address; of several servers
/// under one name, nobody knows in advance which will answer.
fn works_here(engine: &dyn Engine) -> bool {
    if !engine.members().is_empty() {
        return engine.members().iter().all(|member| works_here(member.as_ref()));
    }
    let address = engine.address();
    !PASS_ON.contains(&engine.key()) && (address.is_empty() || is_on_this_machine(address))
}

/// Reads the meters. Nobody else does, and nobody waits for it.
struct Reader {
    counters: Counters,
    desk: Arc<Mutex<Desk>>,
    /// Somebody is under way. Ends with the panel.
    woken: Receiver<()>,
}

impl Reader {
    /// Until there is no panel any more.
    fn run(mut self) {
        while self.woken.recv().is_ok() {
            loop {
                self.look(Instant::now());
                if self.woken.recv_timeout(PAUSE) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
                let mut desk = at(&self.desk);
                if !desk.ledger.is_anybody_under_way() {
                    desk.reader_sleeps = true;
                    break;
                }
            }
        }
    }

    /// Shares what was used since the last look among those that were under way since then.
    fn look(&mut self, now: Instant) {
        at(&self.desk).ledger.begin_look(now);
        let used = self.counters.advance(now);
        at(&self.desk).ledger.end_look(used);
    }
}

/// What questions and the reader tell each other. Its lock is only ever held for a moment, and never while a meter is read.
struct Desk {
    ledger: Ledger,
    /// Whether the reader waits to be woken.
    reader_sleeps: bool,
}

fn at(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The meters, as questions see them.
struct Panel {
    names: String,
    desk: Arc<Mutex<Desk>>,
    wake: SyncSender<()>,
}

impl Panel {
    fn new(counters: Counters) -> (Arc<Self>, Reader) {
        let (wake, woken) = sync_channel(1);
        let names = counters.names().join(", ");
        let desk = Arc::new(Mutex::new(Desk { ledger: Ledger::default(), reader_sleeps: true }));
        let reader = Reader { counters, desk: Arc::clone(&desk), woken };
        (Arc::new(Panel { names, desk, wake }), reader)
    }

    fn begin(panel: &Arc<Self>) -> Share {
        let mut desk = at(&panel.desk);
        let place = desk.ledger.join();
        let sleeps = std::mem::replace(&mut desk.reader_sleeps, false);
        drop(desk);
        if sleeps {
            // Refused only by a reader that has been woken already, or that a driver has brought down: then there is no figure.
            let _ = panel.wake.try_send(());
        }
        Share { panel: Arc::clone(panel), place }
    }
}

/// One question's part in what the meters count, for as long as it lasts.
pub(crate) struct Share {
    panel: Arc<Panel>,
    place: Place,
}

impl Share {
    /// The question is over: what it was given, where that is known.
    pub(crate) fn end(self) -> Option<Energy> {
        self.end_at(Instant::now())
    }

    fn end_at(self, now: Instant) -> Option<Energy> {
        self.leave(now).map(Energy::from_microjoules)
    }

    /// Only the first time says something.
    fn leave(&self, now: Instant) -> Option<u64> {
        at(&self.panel.desk).ledger.leave(self.place, now)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.leave(Instant::now());
    }
}

#[cfg(test)]
#[path = "energy_tests.rs"]
mod tests;
