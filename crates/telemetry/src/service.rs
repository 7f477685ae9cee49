//! The service of telemetry: opens the database, records calls, and reports on them.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use hob_core::{Moment, UtcDay, Zone};
use hob_db::{DatabaseError, DbResult, Storage};

use crate::call_page::{CallPage, CallQuery};
use crate::inference::{Inference, InferenceLog};
use crate::key_usage::{KeyUsage, REASON_CALLS, key_usage};
use crate::savings::{Prices, Savings, ServedTotals, savings};
use crate::store::{self, TelemetryStore};
use crate::timings::ModelSpeed;
use crate::writer::{TelemetryWriter, WriterOptions};

/// How long a report waits for records that are not written yet. On a busy disk, one write may wait for another one for seconds. A
/// database that fails ends the wait at once.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct TelemetryOptions {
    pub enabled: bool,
    /// Days that records are kept; 0 is forever.
    pub retention_days: u32,
    /// Whether to count for Prometheus.
    pub metrics: bool,
    /// Whether to measure energy, if the machine supports it.
    pub energy: bool,
    pub prices: Prices,
}

/// Records calls, if enabled. An answer never depends on it.
#[derive(Clone)]
pub struct TelemetryService {
    /// `None` if recording is disabled, or no thread could be started.
    kept: Option<Kept>,
    prices: Arc<Prices>,
}

#[derive(Clone)]
struct Kept {
    /// Empty while the database cannot be opened.
    store: Arc<OnceLock<Arc<dyn TelemetryStore>>>,
    writer: Arc<TelemetryWriter>,
}

impl Default for TelemetryService {
    fn default() -> Self {
        TelemetryService { kept: None, prices: Arc::new(Prices::standard()) }
    }
}

impl TelemetryService {
    /// Opens the records in `database`. If that fails, it is logged and retried, and records wait in the bounded queue.
    pub fn open(options: &TelemetryOptions, database: impl Into<Storage>) -> Self {
        let kept = options.enabled.then(|| Kept::open(options, database.into())).transpose();
        let kept = kept.unwrap_or_else(|error| {
            tracing::error!(
                %error,
                "calls are not recorded: no thread can be started. Raise the limit on threads (ulimit -u, or \
                 TasksMax= in the unit), and restart Hob"
            );
            None
        });
        TelemetryService { kept, prices: Arc::new(options.prices.clone()) }
    }

    /// The store, for reports; `None` if recording is disabled, or the database cannot be opened yet.
    pub fn store(&self) -> Option<&Arc<dyn TelemetryStore>> {
        self.kept.as_ref().and_then(|kept| kept.store.get())
    }

    /// The savings so far, including the latest calls, with days in `zone`. Blocks.
    pub fn savings(&self, now: SystemTime, zone: &Zone) -> DbResult<Savings> {
        // Records that cannot be written now are in a later report.
        self.settle();
        let served = match self.store() {
            Some(store) => store.served(UtcDay::of(now))?,
            None => ServedTotals::default(),
        };
        Ok(savings(served, &self.prices, Moment::of(now), zone))
    }

    /// What each key has used since a day, including the latest calls; most calls first. Blocks.
    pub fn key_usage(&self, since: Option<UtcDay>) -> DbResult<Vec<KeyUsage>> {
        self.settle();
        let Some(store) = self.store() else { return Ok(Vec::new()) };
        let figures = store.keys(since)?;
        let has_failed = figures.iter().any(|of| of.figures.failures > 0);
        let newest = if has_failed { store.recent(REASON_CALLS)? } else { Vec::new() };
        Ok(key_usage(figures, &newest))
    }

    /// A page of the recorded calls, including the latest. Blocks.
    pub fn call_page(&self, query: &CallQuery) -> DbResult<CallPage> {
        self.settle();
        match self.store() {
            Some(store) => store.call_page(query),
            None => Ok(CallPage { calls: Vec::new(), next: None }),
        }
    }

    /// How fast the models with the most calls since a day wrote. Blocks.
    pub fn speeds(&self, since: UtcDay, most: u32) -> DbResult<Vec<ModelSpeed>> {
        self.store().map_or(Ok(Vec::new()), |store| store.speeds(since, most))
    }

    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// Waits for records that are not written yet, for a bounded time. Blocks.
    pub fn settle(&self) {
        if let Some(kept) = &self.kept {
            kept.writer.flush(FLUSH_TIMEOUT);
        }
    }

    /// Why figures are missing, and what to do; `None` if all calls are recorded.
    pub fn why_not(&self) -> Option<String> {
        let Some(_) = &self.kept else {
            let why = "calls are not recorded. Set [telemetry] enabled = true";
            return Some(why.to_owned());
        };
        match (self.store(), self.dropped()) {
            (Some(_), 0) => None,
            (Some(_), dropped) => Some(format!(
                "{dropped} calls are missing, because they could not be written to the database. See the server's log"
            )),
            (None, _) => Some(
                "calls are not recorded, because the database cannot be opened. Hob retries; see its log"
                    .to_owned(),
            ),
        }
    }

    /// Whether calls are lost: some already were, or the database cannot be opened.
    pub fn is_losing(&self) -> bool {
        self.kept.is_some() && (self.store().is_none() || self.dropped() > 0)
    }

    /// The number of lost records.
    pub fn dropped(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.writer.dropped())
    }

    /// Writes the records that wait, and returns how many could not be written. Then moves the log into the database file.
    pub async fn close(self) -> u64 {
        let Some(Kept { writer, store }) = self.kept else { return 0 };
        let closing = hob_db::spawn_blocking(move || {
            let unsaved = writer.close();
            if let Some(Err(error)) = store.get().map(|store| store.checkpoint()) {
                tracing::debug!(%error, "the last records stay in the write-ahead log");
            }
            unsaved
        });
        // It fails only when the program ends.
        closing.await.unwrap_or(0)
    }
}

impl Kept {
    fn open(options: &TelemetryOptions, database: Storage) -> io::Result<Self> {
        let writing = WriterOptions {
            prices: Arc::new(options.prices.clone()),
            retention_days: options.retention_days,
        };
        let store = Arc::new(OnceLock::new());
        let opened = Arc::clone(&store);
        let open = move || {
            let store = store::open(&database)?;
            Ok(Arc::clone(opened.get_or_init(|| store)))
        };
        if let Err(error) = open() {
            let error: DatabaseError = error;
            tracing::warn!(
                %error,
                "calls cannot be recorded yet; Hob keeps trying. 'hob doctor' checks the database"
            );
        }
        Ok(Kept { store, writer: Arc::new(TelemetryWriter::start(open, writing)?) })
    }
}

impl InferenceLog for TelemetryService {
    fn record(&self, inference: Inference) {
        if let Some(kept) = &self.kept {
            kept.writer.record(inference);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use hob_core::{FinishReason, RequestSource, Usage};

    use hob_db::LazyDatabase;

    use super::*;
    use crate::inference::InferenceEnd;
    use crate::store::{MIGRATIONS, SqliteTelemetryStore};

    fn database(directory: &tempfile::TempDir) -> LazyDatabase {
        LazyDatabase::at(&directory.path().join("hob.db"), &[MIGRATIONS])
    }

    fn store(directory: &tempfile::TempDir) -> SqliteTelemetryStore {
        SqliteTelemetryStore::new(database(directory).open().unwrap())
    }

    fn options() -> TelemetryOptions {
        TelemetryOptions {
            enabled: true,
            retention_days: 0,
            metrics: true,
            energy: false,
            prices: Prices::standard(),
        }
    }

    fn inference() -> Inference {
        Inference {
            started: SystemTime::now(),
            run: Arc::from("run-1"),
            source: RequestSource::Ask,
            engine: "ollama".to_owned(),
            model: "m".to_owned(),
            agent: None,
            key: None,
            end_user: None,
            details: Default::default(),
            streamed: false,
            usage: Usage {
                prompt_tokens: 3,
                completion_tokens: 2,
                cached_tokens: None,
                reasoning_tokens: None,
                load_time: None,
            },
            estimated: false,
            latency: Duration::from_millis(20),
            first_token: None,
            energy: None,
            ending: InferenceEnd::Complete(FinishReason::Stop),
        }
    }

    fn calls(record: &TelemetryService) -> u64 {
        record.savings(SystemTime::now(), &Zone::UTC).unwrap().total_calls
    }

    #[tokio::test]
    async fn a_database_that_cannot_be_opened_at_the_start_gets_its_calls_when_it_can() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("hob.db");
        fs::create_dir(&path).unwrap();
        let record = TelemetryService::open(&options(), database(&home));
        record.record(inference());
        assert!(record.store().is_none() && record.is_losing());
        assert!(record.why_not().unwrap().contains("cannot be opened. Hob retries"));
        assert_eq!((calls(&record), record.dropped()), (0, 0), "nothing is lost yet");

        fs::remove_dir(&path).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while calls(&record) < 1 {
            assert!(Instant::now() < deadline, "it is never tried again");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!record.is_losing());
        assert_eq!(record.why_not(), None);
        assert_eq!(record.close().await, 0);
    }

    #[tokio::test]
    async fn calls_of_a_database_that_can_never_be_opened_are_counted_as_lost() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("hob.db")).unwrap();
        let record = TelemetryService::open(&options(), database(&home));
        for _ in 0..7 {
            record.record(inference());
        }
        let another = record.clone();
        assert_eq!(record.close().await, 7);
        assert_eq!(another.dropped(), 7);
    }

    #[tokio::test]
    async fn after_the_end_the_database_itself_has_everything() {
        let home = tempfile::tempdir().unwrap();
        let record = TelemetryService::open(&options(), database(&home));
        // A second connection keeps the database from being closed.
        let another = store(&home);
        record.record(inference());
        record.close().await;
        let copy = tempfile::tempdir().unwrap();
        fs::copy(home.path().join("hob.db"), copy.path().join("hob.db")).unwrap();
        let copied = store(&copy);
        assert_eq!(copied.overview(None).unwrap().figures.calls, 1);
        drop(another);
    }
}
