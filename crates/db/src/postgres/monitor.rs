//! Watches a database on another machine. Knows nothing of what is stored there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hob_core::{Backoff, ReadinessCheck};
use tokio_util::sync::CancellationToken;

use super::database::PostgresDatabase;
use crate::{DbResult, spawn_blocking};

/// How often a database that works is asked.
const INTERVAL: Duration = Duration::from_secs(5);

/// How soon one that failed is asked again.
const RETRY: Backoff = Backoff { first: Duration::from_secs(1), longest: INTERVAL };

/// Asks the database from time to time, and remembers the answer.
pub struct DatabaseMonitor {
    database: PostgresDatabase,
    /// Why the database was never usable; `None` once it was. Later failures do not change it: all replicas share the database, and a
    /// load balancer with no ready server would not answer the requests that need no database either.
    never_usable: Arc<ArcSwapOption<String>>,
    /// The last result.
    is_up: Arc<AtomicBool>,
    stop: CancellationToken,
}

impl DatabaseMonitor {
    pub fn new(database: PostgresDatabase) -> Self {
        let never_usable = ArcSwapOption::from_pointee("Hob has not connected to it yet".to_owned());
        DatabaseMonitor {
            database,
            never_usable: Arc::new(never_usable),
            is_up: Arc::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Asks once, and then until [`DatabaseMonitor::stop`], one question at a time. Fails if waiting does not help.
    pub async fn start(&self) -> DbResult<()> {
        let first = probe(&self.database).await;
        if let Err(error) = &first
            && !error.is_temporary()
        {
            return first;
        }
        let watch = Watch {
            database: self.database.clone(),
            never_usable: Arc::clone(&self.never_usable),
            is_up: Arc::clone(&self.is_up),
            was_usable: true,
        };
        // Ends with its token.
        tokio::spawn(self.stop.clone().run_until_cancelled_owned(watch.run(first)));
        Ok(())
    }

    pub fn stop(&self) {
        self.stop.cancel();
    }
}

impl ReadinessCheck for DatabaseMonitor {
    fn name(&self) -> &'static str {
        "database"
    }

    fn problem(&self) -> Option<String> {
        self.never_usable.load().as_deref().cloned()
    }

    fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }
}

struct Watch {
    database: PostgresDatabase,
    never_usable: Arc<ArcSwapOption<String>>,
    is_up: Arc<AtomicBool>,
    /// The last result, so that a change is logged once.
    was_usable: bool,
}

impl Watch {
    /// Never ends by itself.
    async fn run(mut self, first: DbResult<()>) {
        let mut delays = RETRY.delays();
        let mut result = first;
        loop {
            self.note(&result);
            let pause = match result {
                Ok(()) => {
                    delays.reset();
                    INTERVAL
                }
                Err(_) => delays.next_delay(),
            };
            tokio::time::sleep(pause).await;
            result = probe(&self.database).await;
        }
    }

    fn note(&mut self, result: &DbResult<()>) {
        self.is_up.store(result.is_ok(), Ordering::Relaxed);
        let was_usable = std::mem::replace(&mut self.was_usable, result.is_ok());
        match result {
            Ok(()) => {
                self.never_usable.store(None);
                if !was_usable {
                    tracing::info!(server = self.database.server(), "the database can be used again");
                }
            }
            Err(error) => {
                if self.never_usable.load().is_some() {
                    self.never_usable.store(Some(Arc::new(error.to_string())));
                }
                if was_usable {
                    tracing::warn!(
                        "{error} Requests that must store something are refused; others are answered."
                    );
                }
            }
        }
    }
}

async fn probe(database: &PostgresDatabase) -> DbResult<()> {
    let database = database.clone();
    let ask = move || database.read(|transaction| transaction.query_one("SELECT 1", &[]).map(drop));
    // A panic was reported already; the next question shows whether it happens again.
    spawn_blocking(ask).await.unwrap_or(Ok(()))
}
