//! What answers cost in energy: what the machine's own meters count while a question is under way. Nothing is ever estimated;
//! without a meter there is no figure.
//!
//! | file | what |
//! |---|---|
//! | `counter` | counters, and what they say was used between two looks |
//! | `rapl` | processors, by Linux |
//! | `nvml` | NVIDIA's cards, by their driver |
//! | `ledger` | who is given what when several questions are under way |
//!
//! Meters count whole processors and cards. A question's figure is therefore all that they used while it was under way, their
//! idling and other programs included, divided by the questions under way at the same time. Energy that is used while there
//! is no question is put down to nobody.

mod counter;
mod ledger;
mod nvml;
mod rapl;

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use hob_core::{Energy, Engine};
use hob_engine::select::is_on_this_machine;

use self::counter::{Counter, Counters, FRESH};
use self::ledger::{Joined, Ledger};

/// How often the meters are looked at during a long answer. The smallest counters begin anew after 65 kJ, which nothing
/// uses in this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

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
        let meters = Meters::default();
        let found = Arc::clone(&meters.found);
        // A thread that nobody joins, because nothing can hurry a driver. It ends by itself, with the last of the meters.
        let looking = thread::Builder::new().name("energy".to_owned()).spawn(move || {
            let Found { counters, refused } = Found::on_this_machine();
            for reason in refused {
                tracing::debug!(reason, "a meter of energy cannot be used");
            }
            if !counters.is_empty() {
                let (panel, over) = Panel::new(Counters::new(counters, FRESH));
                let kept = Arc::downgrade(&panel);
                // Set once, here and nowhere else.
                let _ = found.set(panel);
                drop(found);
                keep_up(&kept, &over);
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
        works_here(engine).then(|| Panel::begin(panel, Instant::now()))
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

/// Looks at the meters from time to time while a question is under way, until there are none any more.
fn keep_up(panel: &Weak<Panel>, over: &mpsc::Receiver<()>) {
    while over.recv_timeout(LONGEST_PAUSE) == Err(RecvTimeoutError::Timeout) {
        let Some(panel) = panel.upgrade() else { return };
        if panel.ledger().is_anybody_under_way() {
            panel.look(Instant::now());
        }
    }
}

/// The meters and who is put down for what they count.
struct Panel {
    names: String,
    /// Nobody waits for this lock: a driver that hangs holds up one question and no more.
    counters: Mutex<Counters>,
    /// Only ever held for a moment.
    ledger: Mutex<Ledger>,
    /// Ends the thread that keeps up.
    _over: mpsc::Sender<()>,
}

impl Panel {
    /// The panel, and what tells that it is gone.
    fn new(counters: Counters) -> (Arc<Self>, mpsc::Receiver<()>) {
        let (over, gone) = mpsc::channel();
        let panel = Panel {
            names: counters.names().join(", "),
            counters: Mutex::new(counters),
            ledger: Mutex::default(),
            _over: over,
        };
        (Arc::new(panel), gone)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shares what was used until now among those under way. Somebody who looks already looks for all.
    fn look(&self, now: Instant) {
        let mut counters = match self.counters.try_lock() {
            Ok(counters) => counters,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if !counters.is_fresh(now) {
            let used = counters.advance(now);
            self.ledger().share(used);
        }
    }

    fn begin(panel: &Arc<Self>, now: Instant) -> Share {
        panel.look(now);
        let joined = panel.ledger().join();
        Share { panel: Arc::clone(panel), joined: Some(joined) }
    }
}

/// One question's part in what the meters count, for as long as it lasts.
pub(crate) struct Share {
    panel: Arc<Panel>,
    /// `None` once it is over.
    joined: Option<Joined>,
}

impl Share {
    /// The question is over: what it was given, where that is known.
    pub(crate) fn end(self) -> Option<Energy> {
        self.end_at(Instant::now())
    }

    fn end_at(mut self, now: Instant) -> Option<Energy> {
        self.panel.look(now);
        self.leave().map(Energy::from_microjoules)
    }

    fn leave(&mut self) -> Option<u64> {
        let joined = self.joined.take()?;
        self.panel.ledger().leave(joined)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
#[path = "energy_tests.rs"]
mod tests;
