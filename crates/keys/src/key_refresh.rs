//! Refreshes the keys in memory: a running server notices changes of keys by other processes, and settles with the store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_core::Backoff;
use hob_db::{ChangeWatch, DbResult};
use jiff::SignedDuration;

use crate::key::KeyError;
use crate::key_snapshot::KeySnapshot;
use crate::limits::Period;
use crate::service::{KeyService, blocking};

/// How often the keys of other processes are looked for, overdrafts are written, and shares that are not needed are given back.
const POLL: Duration = Duration::from_millis(500);

/// The longest wait while the store fails.
const LONGEST_POLL: Duration = Duration::from_secs(5);

/// How often old windows are deleted.
const CLEANING: Duration = Duration::from_secs(60 * 60);

/// How long what was taken of a limit is kept, after the beginning of its window.
fn kept(period: Period) -> SignedDuration {
    match period {
        Period::Minute => SignedDuration::from_hours(1),
        Period::Day | Period::Month => SignedDuration::from_hours(24 * 400),
    }
}

impl KeyService {
    /// Reads the keys again.
    pub async fn reload(self: &Arc<Self>) -> Result<(), KeyError> {
        let this = Arc::clone(self);
        blocking(move || Ok(this.load()?)).await
    }

    /// Blocks.
    fn load(&self) -> DbResult<()> {
        let _loading = self.loading.lock();
        let changes = self.parts.store.changes()?;
        let stored = self.parts.store.list()?;
        let snapshot = KeySnapshot::new(stored, changes, &self.snapshot.load(), &self.parts);
        self.snapshot.store(Arc::new(snapshot));
        Ok(())
    }

    /// Reads the keys after a change of this process, which is made even if they cannot be read now: the caller gets its result, such as
    /// a secret that cannot be shown later, and the next refresh reads them. Blocks.
    pub(crate) fn load_after_change(&self) {
        if let Err(error) = self.load() {
            tracing::warn!(
                %error,
                "a change of a key has no effect here until the keys can be read again. 'hob doctor' checks \
                 the database"
            );
        }
    }

    /// Follows the changes of other processes, settles with the store, and deletes old windows.
    pub(crate) async fn follow(self: &Arc<Self>) {
        let mut watch = None;
        let mut failures = Backoff { first: POLL, longest: LONGEST_POLL }.delays();
        let mut wait = POLL;
        let mut cleaned_at: Option<Instant> = None;
        loop {
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
                () = self.refresh.asked() => {}
            }
            let is_asked = self.refresh.begin();
            let this = Arc::clone(self);
            let cleans = cleaned_at.is_none_or(|at| at.elapsed() >= CLEANING);
            let looked = hob_db::spawn_blocking(move || {
                let looked =
                    this.look(&mut watch, is_asked).and_then(|()| if cleans { this.clean() } else { Ok(()) });
                (watch, looked)
            });
            let (seen, looked) = match looked.await {
                Ok((seen, looked)) => (seen, looked.map_err(KeyError::from)),
                Err(_) => (None, Err(KeyError::Panicked)),
            };
            (watch, wait) = match looked {
                Ok(()) => {
                    if failures.has_failed() {
                        tracing::info!("the keys can be read again");
                        failures.reset();
                    }
                    if cleans {
                        cleaned_at = Some(Instant::now());
                    }
                    (seen, POLL)
                }
                Err(error) => {
                    if !failures.has_failed() {
                        tracing::warn!(
                            %error,
                            "the keys cannot be read; those that are known stay valid, and Hob tries again. \
                             'hob doctor' checks the database"
                        );
                    }
                    (None, failures.next_delay())
                }
            };
            self.refresh.end();
        }
    }

    /// A caller that asks gets the keys as they are stored now. A watch may learn of a change later: a server announces it. Blocks.
    fn look(&self, watch: &mut Option<ChangeWatch>, is_asked: bool) -> DbResult<()> {
        for account in self.accounts() {
            account.metered.write_overdrafts()?;
        }
        if watch.is_none() {
            *watch = self.parts.store.watch()?;
        }
        let may_have_changed = match watch {
            Some(watch) => watch.has_changed()?,
            None => true,
        };
        if (may_have_changed || is_asked) && self.parts.store.changes()? != self.snapshot.load().changes {
            self.load()?;
        }
        // Last: while the store fails, shares stay here, where they can be spent.
        self.identities.retire_idle()?;
        self.accounts().iter().try_for_each(|account| account.metered.give_back_excess())
    }

    /// Blocks.
    fn clean(&self) -> DbResult<()> {
        let now = self.parts.clock.now();
        Period::ALL
            .into_iter()
            .try_for_each(|period| self.parts.store.forget_windows(period, (now - kept(period)).as_second()))
    }
}
