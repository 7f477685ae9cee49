//! A model in memory, as the cache of models sees it: its memory, its users and its thread.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hob_core::RunningModel;
use tokio::sync::watch;

use crate::cards::Card;
use crate::load_queue::{Resident, Turn};
use crate::model_memory::MemoryParts;
use crate::model_thread::{Loading, SharedThread};

pub(crate) struct Entry {
    /// Distinguishes this loading from earlier ones.
    pub(crate) number: u64,
    /// The file that was loaded.
    pub(crate) path: PathBuf,
    /// Its memory, as planned until it is loaded.
    pub(crate) memory: MemoryParts,
    pub(crate) is_loaded: bool,
    /// The graphics cards without the models of this process, as they were when the loading was planned.
    pub(crate) planned_on: Vec<Card>,
    pub(crate) users: usize,
    pub(crate) last_used: Instant,
    pub(crate) loaded_at: Instant,
    pub(crate) load_time: Duration,
    pub(crate) turn: Turn,
    pub(crate) loading: watch::Receiver<Loading>,
    pub(crate) thread: SharedThread,
}

impl Entry {
    /// As the queue for memory sees it.
    pub(crate) fn resident<'a>(&'a self, id: &'a str) -> Resident<'a> {
        Resident {
            id,
            bytes: self.memory.main,
            cards: &self.memory.cards,
            users: self.users,
            last_used: self.last_used,
            loaded_at: self.loaded_at,
            load_time: self.load_time,
            turn: &self.turn,
        }
    }

    /// The memory that it uses now, and when it is unloaded if it stays idle.
    pub(crate) fn running(&self, id: &str, keep_alive: Duration) -> RunningModel {
        let idle = if self.users > 0 { Duration::ZERO } else { self.last_used.elapsed() };
        let left = keep_alive.saturating_sub(idle);
        let expires = SystemTime::now().checked_add(left).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        RunningModel {
            id: id.to_owned(),
            size: Some(self.memory.total()),
            size_vram: (!self.memory.cards.is_empty()).then(|| self.memory.on_cards()),
            expires: expires.and_then(|since| i64::try_from(since.as_secs()).ok()),
            devices: self.memory.cards.clone(),
        }
    }
}
