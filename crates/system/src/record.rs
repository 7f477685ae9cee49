//! The record of inferences: opens it, keeps it within its retention, and does without it when there is none to be had.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_config::Config;
use hob_core::{Inference, InferenceLog};
use hob_store::savings::{Price, Prices, Savings, Served, savings};
use hob_store::{Moment, Schema, Store, StoreError, Telemetry, TelemetryWriter, Zone};

/// The file in the configuration directory.
pub(crate) const DATABASE: &str = "hob.db";

/// The longest wait for the last records at the end.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// The longest wait of a report for records that are not written yet. Most often they are in a millisecond.
const LATEST_RECORDS: Duration = Duration::from_millis(250);

/// The record, or nothing: an answer never depends on it.
#[derive(Clone)]
pub struct Record {
    kept: Result<Kept, NotKept>,
    prices: Arc<Prices>,
}

#[derive(Clone)]
struct Kept {
    telemetry: Telemetry,
    writer: Arc<TelemetryWriter>,
}

/// Why there is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotKept {
    NotWanted,
    /// The log says why.
    CannotBeOpened,
}

impl Default for Record {
    /// Keeps nothing.
    fn default() -> Self {
        Record { kept: Err(NotKept::NotWanted), prices: Arc::new(Prices::standard()) }
    }
}

impl Record {
    /// Opens the record in `home`, where it is wanted. One that cannot be opened is told of, and done without.
    pub fn open(config: &Config, home: &Path) -> Self {
        let kept = if config.telemetry.enabled {
            Self::try_open(config, home).map_err(|error| {
                tracing::warn!(%error, "nothing is recorded");
                NotKept::CannotBeOpened
            })
        } else {
            Err(NotKept::NotWanted)
        };
        Record { kept, prices: Arc::new(prices(config)) }
    }

    fn try_open(config: &Config, home: &Path) -> Result<Kept, Box<dyn std::error::Error + Send + Sync>> {
        let telemetry = open_telemetry(config, home)?;
        let retention_days = u32::try_from(config.telemetry.retention_days).unwrap_or(u32::MAX);
        let writer = TelemetryWriter::start(telemetry.clone(), retention_days)?;
        Ok(Kept { writer: Arc::new(writer), telemetry })
    }

    /// What was recorded, for reports; `None` when nothing is.
    pub fn telemetry(&self) -> Option<&Telemetry> {
        self.kept.as_ref().ok().map(|kept| &kept.telemetry)
    }

    /// What local answers have saved so far, those of this moment too, with days as they are in `zone`; zeros when nothing is
    /// recorded. Blocks.
    pub fn savings(&self, now: SystemTime, zone: &Zone) -> Result<Savings, StoreError> {
        match &self.kept {
            Ok(kept) => {
                // What the disk does not take now is told by a later report.
                kept.writer.flush(LATEST_RECORDS);
                kept.telemetry.savings(now, zone)
            }
            Err(_) => Ok(savings(Served::default(), &self.prices, Moment::of(now), zone)),
        }
    }

    /// What the cloud asks for its tokens.
    pub(crate) fn prices(&self) -> &Prices {
        &self.prices
    }

    /// Waits a moment for records that are not written yet. Blocks.
    pub(crate) fn settle(&self) {
        if let Ok(kept) = &self.kept {
            kept.writer.flush(LATEST_RECORDS);
        }
    }

    /// Why there are no figures and how to get them; `None` when calls are recorded.
    pub fn why_not(&self) -> Option<&'static str> {
        match self.kept {
            Ok(_) => None,
            Err(NotKept::NotWanted) => Some(
                "calls are not recorded, so there are no figures; set [telemetry] enabled = true for some",
            ),
            Err(NotKept::CannotBeOpened) => Some(
                "calls are not recorded, because the database cannot be opened; the server's log says why",
            ),
        }
    }

    /// Records that were lost because they came faster than they could be written.
    pub fn dropped(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.writer.dropped())
    }

    /// Writes what is still under way.
    pub async fn close(self) {
        if let Ok(Kept { writer, .. }) = self.kept {
            // A failure is the blocking pool's end, which comes only with the program's.
            let _ = tokio::task::spawn_blocking(move || writer.flush(LAST_RECORDS)).await;
        }
    }
}

impl InferenceLog for Record {
    fn record(&self, inference: Inference) {
        if let Ok(kept) = &self.kept {
            kept.writer.record(inference);
        }
    }
}

/// The record in `home`, for those who only read it.
pub fn open_telemetry(config: &Config, home: &Path) -> Result<Telemetry, StoreError> {
    Ok(Telemetry::new(Store::open(&home.join(DATABASE), Schema::HOB)?, prices(config)))
}

/// The same where there is a record already; `None` where nothing was ever recorded. Creates nothing.
pub fn find_telemetry(config: &Config, home: &Path) -> Result<Option<Telemetry>, StoreError> {
    if home.join(DATABASE).exists() { open_telemetry(config, home).map(Some) } else { Ok(None) }
}

fn prices(config: &Config) -> Prices {
    let mut prices = Prices::standard();
    for (model, price) in &config.savings.prices {
        prices.set(model, Price { input: price.input, output: price.output });
    }
    prices
}
