//! The recorded calls, according to the configuration.

use std::path::Path;
use std::sync::Arc;

use hob_config::Config;
use hob_db::DatabaseError;
use hob_telemetry::{
    Price, Prices, TelemetryOptions, TelemetryService, TelemetryStore, find_telemetry_store,
};

use crate::databases::hob_database;

/// Opens the database in `home` that calls are recorded in.
pub fn open_record(config: &Config, home: &Path) -> TelemetryService {
    TelemetryService::open(&telemetry_options(config), hob_database(home))
}

/// The records in `home`, for reading only; `None` if nothing was ever recorded. Creates nothing.
pub fn find_telemetry(home: &Path) -> Result<Option<Arc<dyn TelemetryStore>>, DatabaseError> {
    find_telemetry_store(&hob_database(home).into())
}

pub fn telemetry_options(config: &Config) -> TelemetryOptions {
    let telemetry = &config.telemetry;
    TelemetryOptions {
        enabled: telemetry.enabled,
        retention_days: u32::try_from(telemetry.retention_days).unwrap_or(u32::MAX),
        metrics: telemetry.metrics,
        energy: telemetry.energy,
        prices: prices(config),
    }
}

fn prices(config: &Config) -> Prices {
    let mut prices = Prices::standard();
    for (model, price) in &config.savings.prices {
        prices.set(model, Price { input: price.input, output: price.output });
    }
    prices
}
