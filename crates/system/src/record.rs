//! The record of inferences: opens it, keeps it within its retention, and does without it when there is none to be had.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_config::Config;
use hob_core::{Inference, InferenceLog};
use hob_store::savings::{Price, Prices};
use hob_store::{Schema, Store, StoreError, Telemetry, TelemetryWriter};

/// The file in the configuration directory.
const FILE: &str = "hob.db";

/// The longest wait for the last records at the end.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// The record, or nothing: an answer never depends on it.
#[derive(Clone, Default)]
pub struct Record {
    kept: Option<Kept>,
}

#[derive(Clone)]
struct Kept {
    telemetry: Telemetry,
    writer: Arc<TelemetryWriter>,
}

impl Record {
    /// Opens the record in `home`, where it is wanted. One that cannot be opened is told of, and done without.
    pub fn open(config: &Config, home: &Path) -> Self {
        if !config.telemetry.enabled {
            return Record::default();
        }
        match Self::try_open(config, home) {
            Ok(kept) => Record { kept: Some(kept) },
            Err(error) => {
                tracing::warn!(%error, "nothing is recorded");
                Record::default()
            }
        }
    }

    fn try_open(config: &Config, home: &Path) -> Result<Kept, Box<dyn std::error::Error + Send + Sync>> {
        let telemetry = open_telemetry(config, home)?;
        if config.telemetry.retention_days > 0 {
            let days = u32::try_from(config.telemetry.retention_days).unwrap_or(u32::MAX);
            telemetry.prune(days, SystemTime::now())?;
        }
        Ok(Kept { writer: Arc::new(TelemetryWriter::start(telemetry.clone())?), telemetry })
    }

    /// What was recorded, for reports; `None` when nothing is.
    pub fn telemetry(&self) -> Option<&Telemetry> {
        self.kept.as_ref().map(|kept| &kept.telemetry)
    }

    /// Records that were lost because they came faster than they could be written.
    pub fn dropped(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.writer.dropped())
    }

    /// Writes what is still under way.
    pub async fn close(self) {
        if let Some(Kept { writer, .. }) = self.kept {
            // A failure is the blocking pool's end, which comes only with the program's.
            let _ = tokio::task::spawn_blocking(move || writer.flush(LAST_RECORDS)).await;
        }
    }
}

impl InferenceLog for Record {
    fn record(&self, inference: Inference) {
        if let Some(kept) = &self.kept {
            kept.writer.record(inference);
        }
    }
}

/// The record in `home`, for those who only read it.
pub fn open_telemetry(config: &Config, home: &Path) -> Result<Telemetry, StoreError> {
    Ok(Telemetry::new(Store::open(&home.join(FILE), Schema::HOB)?, prices(config)))
}

/// The same where there is a record already; `None` where nothing was ever recorded. Creates nothing.
pub fn find_telemetry(config: &Config, home: &Path) -> Result<Option<Telemetry>, StoreError> {
    if home.join(FILE).exists() { open_telemetry(config, home).map(Some) } else { Ok(None) }
}

fn prices(config: &Config) -> Prices {
    let mut prices = Prices::standard();
    for (model, price) in &config.savings.prices {
        prices.set(model, Price { input: price.input, output: price.output });
    }
    prices
}
